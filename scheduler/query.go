package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Jobs returns the states of all jobs that are registered at the path, sorted by name; this member need not have them. It leaves out a
// job with an unreadable state, and returns that job's error beside the other states: it wraps ErrBadState
// or ErrNewerState.
func (s *Scheduler) Jobs(ctx context.Context) ([]State, error) {
	if s.err != nil {
		return nil, failure.Wrap("jobs", s.Path(), s.err)
	}
	names, _, err := s.store.client.Children(ctx, s.store.nodes.jobs())
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.Wrap("jobs", s.Path(), err)
	}
	slices.Sort(names)
	states, errs := make([]*State, len(names)), make([]error, len(names))
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			states[i], errs[i] = s.stateIfPresent(ctx, name)
		})
	}
	all.Wait()
	var out []State
	for _, r := range states {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, errors.Join(errs...)
}

// stateIfPresent reads one job; nil if it was removed meanwhile.
func (s *Scheduler) stateIfPresent(ctx context.Context, name string) (*State, error) {
	state, err := s.State(ctx, name)
	if errors.Is(err, ErrUnknownJob) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &state, nil
}

// State reads the stored state of a job, which this member need not have. Its error wraps ErrUnknownJob,
// ErrInvalidJob, ErrBadState or ErrNewerState.
func (s *Scheduler) State(ctx context.Context, name string) (State, error) {
	if err := s.checkName(name); err != nil {
		return State{}, failure.Wrap("state", s.Path(), err)
	}
	data, st, err := s.store.client.Get(ctx, s.store.nodes.job(name))
	if errors.Is(err, framework.ErrNoNode) {
		err = fmt.Errorf("%w %q", ErrUnknownJob, name)
	}
	if err != nil {
		return State{}, failure.Wrap("state", s.Path(), err)
	}
	state, err := decodeState(data)
	if err == nil && !state.Removed.IsZero() {
		err = fmt.Errorf("%w %q", ErrUnknownJob, name)
	}
	if err != nil {
		return State{}, failure.Wrap("state", s.store.nodes.job(name), err)
	}
	if state.Registered = state.Reregistered; state.Registered.IsZero() {
		state.Registered = st.Ctime.UTC()
	}
	return state.publicState(name), nil
}

// Runs returns the latest runs of a job, the newest first: those that go on, and as many of those that have
// ended as WithHistory keeps. This member need not have the job. Its error wraps ErrUnknownJob, ErrInvalidJob,
// ErrBadState or ErrNewerState.
func (s *Scheduler) Runs(ctx context.Context, name string) ([]RunRecord, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return nil, err
	}
	ended, err := s.store.readRuns(ctx, name)
	if err != nil {
		return nil, failure.Wrap("runs", s.store.nodes.job(name), err)
	}
	runs := slices.Concat(state.Running, ended)
	slices.SortFunc(runs, func(a, b RunRecord) int { return int(b.Number - a.Number) })
	return slices.CompactFunc(runs, func(a, b RunRecord) bool { return a.Number == b.Number }), nil
}

// publicState is the state as applications see it.
func (s *jobState) publicState(name string) State {
	v := State{
		Name: name, Spec: s.Spec, Zone: s.Zone, Revision: s.Revision, Description: s.Description,
		Jitter: time.Duration(s.JitterMS) * time.Millisecond, Registered: s.Registered, Since: s.Since, Paused: s.Paused, Last: s.Last,
		HoldUntil: s.HoldUntil, Number: s.Number, Fired: s.Fired, Failures: s.Failures, Missed: s.Missed,
	}
	for _, r := range s.Running {
		v.Running = append(v.Running, r.RunRecord)
	}
	for _, p := range s.Pending {
		v.Pending = append(v.Pending, Run{Job: name, Tick: p.Tick, Manual: p.Manual, Attempt: p.Attempt})
	}
	if s.LastRun != nil {
		v.LastRun = &s.LastRun.RunRecord
	}
	for _, g := range s.Gaps {
		v.Gaps = append(v.Gaps, g.Gap)
	}
	return v
}
