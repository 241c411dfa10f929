package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Report is one job, as anybody can see it.
type Report struct {
	// Name is the job's.
	Name string
	// Next is when it is due next by this process's clock, without its jitter; zero if it is paused.
	Next time.Time
	State
}

// Jobs tells of all jobs that are registered at the path, sorted by name; this member need not have them. A
// job whose state cannot be read is left out, and its error returned beside the others: it wraps ErrBadState
// or ErrNewerState.
func (s *Scheduler) Jobs(ctx context.Context) ([]Report, error) {
	if s.err != nil {
		return nil, framework.Wrap("jobs", s.Path(), s.err)
	}
	names, _, err := s.store.client.Children(ctx, s.store.nodes.jobs())
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, framework.Wrap("jobs", s.Path(), err)
	}
	slices.Sort(names)
	reports, errs := make([]*Report, len(names)), make([]error, len(names))
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			reports[i], errs[i] = s.readReport(ctx, name)
		})
	}
	all.Wait()
	var out []Report
	for _, r := range reports {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, errors.Join(errs...)
}

// readReport reads one job; nil if it was removed meanwhile.
func (s *Scheduler) readReport(ctx context.Context, name string) (*Report, error) {
	state, err := s.State(ctx, name)
	if errors.Is(err, ErrUnknownJob) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Report{Name: name, Next: state.Next(s.report.now()), State: state}, nil
}

// State reads the stored state of a job, which this member need not have. Its error wraps ErrUnknownJob,
// ErrInvalidJob, ErrBadState or ErrNewerState.
func (s *Scheduler) State(ctx context.Context, name string) (State, error) {
	if err := s.checkName(name); err != nil {
		return State{}, framework.Wrap("state", s.Path(), err)
	}
	data, st, err := s.store.client.Get(ctx, s.store.nodes.job(name))
	if errors.Is(err, framework.ErrNoNode) {
		err = fmt.Errorf("%w %q", ErrUnknownJob, name)
	}
	if err != nil {
		return State{}, framework.Wrap("state", s.Path(), err)
	}
	state, err := decodeState(data)
	if err == nil && !state.removed.IsZero() {
		err = fmt.Errorf("%w %q", ErrUnknownJob, name)
	}
	if err != nil {
		return State{}, framework.Wrap("state", s.store.nodes.job(name), err)
	}
	if state.Registered = state.registered; state.Registered.IsZero() {
		state.Registered = st.Ctime.UTC()
	}
	return state, nil
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
		return nil, framework.Wrap("runs", s.store.nodes.job(name), err)
	}
	runs := slices.Concat(state.Running, ended)
	slices.SortFunc(runs, func(a, b RunRecord) int { return int(b.Number - a.Number) })
	return slices.CompactFunc(runs, func(a, b RunRecord) bool { return a.Number == b.Number }), nil
}
