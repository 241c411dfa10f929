package scheduler

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Jobs returns the states of all jobs that are registered at the path, sorted by name. This member
// need not have them. Jobs only reads, from the connected server, which may lag behind the others.
// It leaves out a job with an unreadable state, and returns that job's error beside the other
// states: it wraps framework.ErrBadRecord, framework.ErrNewer or framework.ErrNoAuth.
func (s *Scheduler) Jobs(ctx context.Context) ([]State, error) {
	if s.err != nil {
		return nil, failure.Wrap("jobs", s.Path(), s.err)
	}
	r := newJobsReader(s.store.client, s.settings.now, s.Path())
	if err := r.readStates(ctx); err != nil {
		return nil, failure.Wrap("jobs", s.Path(), err)
	}
	return r.found[0].states, errors.Join(r.found[0].errs...)
}

// State reads the stored state of a job, which this member need not have, from the connected
// server, which may lag behind the others. Its error wraps framework.ErrNotFound,
// framework.ErrInvalid, framework.ErrBadRecord or framework.ErrNewer.
func (s *Scheduler) State(ctx context.Context, name string) (State, error) {
	if err := s.checkName(name); err != nil {
		return State{}, failure.Wrap("state", s.Path(), err)
	}
	data, stat, err := s.store.client.Get(ctx, s.store.nodes.Job(name))
	return storedState(s.store.nodes, name, framework.Node{Data: data, Stat: stat, Err: err})
}

// Runs returns the latest runs of a job, the newest first: those that go on, and as many of those
// that have ended as WithHistory keeps. After WithHistory was lowered, it also returns old runs,
// whose nodes stay until the job is removed. This member need not have the job. Its error wraps
// framework.ErrNotFound, framework.ErrInvalid, framework.ErrBadRecord or framework.ErrNewer.
func (s *Scheduler) Runs(ctx context.Context, name string) ([]RunRecord, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return nil, err
	}
	runs, err := runsOf(ctx, s.store.client, Report{State: state, Path: s.Path()})
	if err != nil {
		return nil, err
	}
	return runs[0], nil
}
