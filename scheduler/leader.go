package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// lead schedules for one term.
func (s *Scheduler) lead(ctx context.Context, term *election.Term, jobs []*job) error {
	session, err := s.client.Session(ctx)
	if err != nil || session.ID() != term.Session() {
		return term.Err()
	}
	c := &clocks{local: s.now}
	if err := s.askTime(ctx, session, c); err != nil {
		return err
	}
	s.tell(Event{Kind: EventLeading, Run: Run{Token: term.Token()}})
	defer s.tell(Event{Kind: EventFollowing, Run: Run{Token: term.Token()}})
	var all sync.WaitGroup
	for _, j := range jobs {
		d := &duty{Scheduler: s, job: j, term: term, session: session, clocks: c, late: ReasonNoLeader}
		all.Go(func() { d.live(ctx) })
	}
	all.Wait()
	return nil
}

// askTime learns the ensemble's time from a write that changes nothing else.
func (s *Scheduler) askTime(ctx context.Context, session *framework.Session, c *clocks) error {
	if err := session.MakeDirs(ctx, s.directory()); err != nil {
		return err
	}
	st, err := session.Set(ctx, s.directory(), nil, framework.AnyVersion)
	if err != nil {
		return err
	}
	c.hear(st.Mtime)
	return nil
}

// duty is a leader's for one job, in one term. Whatever it writes is guarded by the term and the state's
// version. Its calls last as long as the session: a transaction that was sent must be settled, even when
// the scheduler is being stopped.
type duty struct {
	*Scheduler
	job     *job
	term    *election.Term
	session *framework.Session
	clocks  *clocks

	late  Reason    // of what was due before the next look
	since time.Time // the latest tick that was seen to
	held  time.Time // the tick last reported as held
}

// step is one state of a duty; it returns the next, or nil at the end.
type step func(ctx context.Context) (step, error)

// live sees to the job until ctx, or the term, has ended. Errors are this job's alone.
func (d *duty) live(ctx context.Context) {
	back, failed := d.client.Retries(), time.Now()
	for next := step(d.sync); next != nil; {
		var err error
		if next, err = next(ctx); err == nil {
			continue
		}
		if ctx.Err() != nil || d.term.Err() != nil {
			return
		}
		d.client.Logger().Warn("a job cannot be scheduled", "path", d.path, "job", d.job.Name, "error", err)
		d.tell(Event{Kind: EventFailed, Job: d.job.Name, Err: err})
		if time.Since(failed) > settledAfter {
			back.Reset()
		}
		if back.Pause(ctx) != nil {
			return
		}
		next, failed = d.sync, time.Now()
	}
}

// settledAfter is the time without an error after which a job counts as out of trouble.
const settledAfter = 2 * time.Minute

// sync makes sure that the next look shows what this session has written, and others before.
func (d *duty) sync(context.Context) (step, error) {
	if err := d.session.Sync(d.session.Context(), d.node(d.job.Name)); err != nil {
		return nil, err
	}
	return d.look, nil
}

// look reads the state and decides what to do.
func (d *duty) look(ctx context.Context) (step, error) {
	state, version, err := d.read()
	if errors.Is(err, ErrUnknownJob) {
		return d.registerAgain, nil
	}
	if err == nil {
		err = d.job.matches(state)
	}
	if err != nil {
		return nil, err
	}
	claimed, err := d.claimed()
	if err != nil {
		return nil, err
	}
	if r := state.Running; r != nil && claimed && r.Token == d.term.Token() && d.job.begin(r.Tick) {
		d.start(ctx, d.run(r.Tick)) // a claim of which the reply was lost: now it is known to be applied
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	d.since = state.since()
	p := d.job.plan(state, d.clocks.now(), claimed || d.job.going(), d.late)
	d.late = ReasonLate
	switch {
	case p.idle():
		return d.wait, nil
	case p.tick.IsZero():
		return d.record(p, version), nil
	}
	return d.take(p, version), nil
}

// registerAgain stores the schedule anew when somebody has deleted the state.
func (d *duty) registerAgain(ctx context.Context) (step, error) {
	if _, err := d.register(ctx, d.job); err != nil {
		return nil, err
	}
	return d.sync, nil
}

// wait waits until the next tick is due, or is due by this machine's clock only.
func (d *duty) wait(ctx context.Context) (step, error) {
	next := d.job.schedule.Next(d.since)
	for {
		now := d.clocks.now()
		switch {
		case next.IsZero(): // beyond the horizon
		case !next.After(now):
			return d.look, nil
		case d.clocks.held(next) && !d.held.Equal(next):
			return d.hold(next), nil
		}
		pause := maxPause
		if !next.IsZero() {
			pause = min(pause, next.Sub(now))
		}
		if framework.Pause(ctx, pause) != nil {
			return nil, nil
		}
	}
}

// maxPause bounds a wait: clocks may be set, and timers stand still while a machine is suspended.
const maxPause = 10 * time.Second

// hold reports a tick that waits for the ensemble's clock, once.
func (d *duty) hold(tick time.Time) step {
	return func(context.Context) (step, error) {
		state, version, err := d.read()
		if err != nil {
			return nil, err
		}
		if tick.After(state.since()) && !state.Held.Equal(tick) {
			state.Held = tick.UTC()
			if err := d.commit(state, version); err != nil {
				return d.refused(err)
			}
		}
		d.held = tick
		d.client.Logger().Warn("a tick waits for the ensemble's clock: this machine's is far ahead",
			"path", d.path, "job", d.job.Name, "tick", tick, "ahead", d.clocks.local().Sub(d.clocks.ensemble()))
		d.tell(Event{Kind: EventHeld, Job: d.job.Name, Run: d.run(tick)})
		return d.wait, nil
	}
}

// read reads the state and its version.
func (d *duty) read() (State, int32, error) {
	data, st, err := d.session.Get(d.session.Context(), d.node(d.job.Name))
	if errors.Is(err, framework.ErrNoNode) {
		return State{}, 0, fmt.Errorf("%w %q", ErrUnknownJob, d.job.Name)
	}
	if err != nil {
		return State{}, 0, err
	}
	state, err := decodeState(data)
	if err != nil {
		return State{}, 0, framework.Wrap("state", d.node(d.job.Name), err)
	}
	state.Registered = st.Ctime.UTC()
	return state, st.Version, nil
}

// claimed tells whether a run of the job is claimed, here or by a former leader that still lives.
func (d *duty) claimed() (bool, error) {
	_, err := d.session.Exists(d.session.Context(), d.claim(d.job.Name))
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}
