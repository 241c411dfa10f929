package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// scenario runs the offices, on any servers and with any length of a night.
type scenario struct {
	out     io.Writer
	spec    string
	night   time.Duration // between two ticks
	connect func(ctx context.Context, office string) (*framework.Client, error)

	books    nightStore
	printing sync.Mutex // offices print from goroutines of their own
}

// office stands for one process of a service. Here it is a client and a scheduler.
type office struct {
	name   string
	client *framework.Client
	jobs   *scheduler.Scheduler
	stop   context.CancelFunc
	done   chan error
}

// run opens and closes offices, and reports the result of each night.
func (s *scenario) run(ctx context.Context) error {
	berlin, err := s.open(ctx, "Berlin")
	if err != nil {
		return err
	}
	lisbon, err := s.open(ctx, "Lisbon")
	if err != nil {
		return errors.Join(err, s.close(berlin))
	}
	err = s.sleep(ctx, 2)
	err = errors.Join(err, s.close(berlin))
	err = errors.Join(err, s.sleep(ctx, 1), s.close(lisbon))
	if err != nil {
		return err
	}
	s.printf("all offices are closed for three nights")
	if err := s.sleep(ctx, 3); err != nil {
		return err
	}
	cairo, err := s.open(ctx, "Cairo")
	if err != nil {
		return err
	}
	err = errors.Join(s.sleep(ctx, 1), s.endJobs(cairo))
	if err == nil {
		err = s.report(ctx, cairo)
	}
	return errors.Join(err, cairo.client.Close(context.Background()))
}

func (s *scenario) printf(format string, args ...any) {
	s.printing.Lock()
	defer s.printing.Unlock()
	fmt.Fprintf(s.out, "%s  %s\n", time.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}

// open starts an office.
func (s *scenario) open(ctx context.Context, name string) (*office, error) {
	client, err := s.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	o := &office{name: name, client: client, done: make(chan error, 1)}
	if o.jobs, err = newNightlyScheduler(client, s.spec, s.night, &s.books, s.observe(name)); err != nil {
		return nil, errors.Join(err, client.Close(ctx))
	}
	running, stop := context.WithCancel(ctx)
	o.stop = stop
	go func() { o.done <- o.jobs.Run(running) }()
	s.printf("%s opens", name)
	return o, nil
}

// observe returns a function that prints each night as it is closed or missed.
func (s *scenario) observe(office string) func(scheduler.Event) {
	const layout = "01-02 15:04:05"
	return func(e scheduler.Event) {
		switch e.Kind {
		case scheduler.EventFinished:
			how := "on time"
			if late := e.At.Sub(e.Run.Tick).Round(time.Second / 10); late >= s.night/8 {
				how = late.String() + " late"
			}
			if e.Err != nil {
				how = e.Err.Error()
			}
			s.printf("%s closes the books of %s, %s", office, e.Run.Tick.UTC().Format(layout), how)
		case scheduler.EventMissed:
			s.printf("%s: missed %d nights from %s on: %s", office, e.Gap.Count,
				e.Gap.From.UTC().Format(layout), e.Gap.Reason)
		}
	}
}

// close stops an office: another one takes over at once.
func (s *scenario) close(o *office) error {
	return errors.Join(s.endJobs(o), o.client.Close(context.Background()))
}

// endJobs stops an office's scheduler. A run that is under way ends first.
func (s *scenario) endJobs(o *office) error {
	s.printf("%s closes for good", o.name)
	o.stop()
	return <-o.done
}

// sleep waits until some nights and a part of the next morning are over.
func (s *scenario) sleep(ctx context.Context, nights int) error {
	schedule, err := scheduler.ParseSpec(s.spec, nil)
	if err != nil {
		return err
	}
	morning := time.Now()
	for range nights {
		morning = schedule.Next(morning)
	}
	select {
	case <-time.After(time.Until(morning.Add(s.night / 8))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// report prints how many nights there were, and what happened to them. It returns an error if a
// night was closed twice or is not counted. No scheduler may run.
func (s *scenario) report(ctx context.Context, o *office) error {
	state, err := o.jobs.State(ctx, jobName)
	if err != nil {
		return err
	}
	seen := map[time.Time]bool{}
	for _, e := range s.books.nights() {
		if seen[e.night] {
			return fmt.Errorf("the books of %v were closed twice", e.night)
		}
		seen[e.night] = true
	}
	schedule, err := scheduler.ParseSpec(s.spec, nil)
	if err != nil {
		return err
	}
	var due int64
	for t := schedule.Next(state.Registered); !t.After(state.Last); t = schedule.Next(t) {
		due++
	}
	if due != state.Due() || state.Fired != int64(len(seen)) {
		return fmt.Errorf("%d nights were due; %d were run, %d of them are in the store, and %v were missed", due,
			state.Fired, len(seen), state.Missed)
	}
	fmt.Fprintf(s.out, "\nSummary\n  %d nights were due\n  %d were run: the books of each were closed once\n"+
		"  %d were missed, and are recorded\n\nHeld: no night was closed twice, and none is unaccounted for.\n"+
		"All offices were closed for three nights. The one that opens next makes up for\n"+
		"the last of them if it opens soon enough, as the job's misfire policy says.\n",
		due, state.Fired, due-state.Fired)
	return nil
}
