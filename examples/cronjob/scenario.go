package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	books nightStore
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
	err = s.sleep(ctx, 1)
	return errors.Join(err, s.report(ctx, cairo), s.close(cairo))
}

func (s *scenario) printf(format string, args ...any) {
	fmt.Fprintf(s.out, "%s  %s\n", time.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}

// open starts an office.
func (s *scenario) open(ctx context.Context, name string) (*office, error) {
	client, err := s.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	o := &office{name: name, client: client, done: make(chan error, 1)}
	if o.jobs, err = newNightlyScheduler(client, s.spec, s.night, &s.books); err != nil {
		return nil, errors.Join(err, client.Close(ctx))
	}
	running, stop := context.WithCancel(ctx)
	o.stop = stop
	go func() { o.done <- o.jobs.Run(running) }()
	s.printf("%s opens", name)
	return o, nil
}

// close stops an office: another one takes over at once.
func (s *scenario) close(o *office) error {
	s.printf("%s closes for good", o.name)
	o.stop()
	return errors.Join(<-o.done, o.client.Close(context.Background()))
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

// report prints the result of each night. It returns an error if a night was closed twice or is not
// counted.
func (s *scenario) report(ctx context.Context, o *office) error {
	state, err := s.readSettled(ctx, o)
	if err != nil {
		return err
	}
	runs, err := o.jobs.Runs(ctx, jobName)
	if err != nil {
		return err
	}
	for _, r := range runs {
		s.printf("the books of %s were closed in %s, %v late: %s", r.Tick.Format(time.DateTime), r.Runner,
			r.Started.Sub(r.Tick).Round(time.Second/10), r.Outcome)
	}
	for _, g := range state.Gaps {
		s.printf("%d nights from %s on were missed: %s", g.Count, g.From.Format(time.DateTime), g.Reason)
	}
	return s.check(state)
}

// readSettled returns the state of the job at a moment when no run is under way. The store does not
// yet have the night of a run that has just begun.
func (s *scenario) readSettled(ctx context.Context, o *office) (scheduler.State, error) {
	for {
		state, err := o.jobs.State(ctx, jobName)
		if err != nil || len(state.Running) == 0 {
			return state, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

func (s *scenario) check(state scheduler.State) error {
	seen := map[time.Time]bool{}
	for _, e := range s.books.nights() {
		if e.night.After(state.Last) { // it became due after the state was read
			continue
		}
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
	s.printf("each of %d nights was run once, or is recorded as missed", due)
	return nil
}
