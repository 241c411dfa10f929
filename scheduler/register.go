package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// register stores a job's schedule, if it is not stored, or compares it with the stored one. Of two members
// that do so first, the one that creates the node decides.
func (s *Scheduler) register(ctx context.Context, j *job) (State, error) {
	for {
		state, err := s.State(ctx, j.Name)
		switch {
		case err == nil:
			return state, j.matches(state)
		case !errors.Is(err, ErrUnknownJob):
			return State{}, err
		}
		if err := s.create(ctx, j); err != nil && !again(err) {
			return State{}, err
		}
	}
}

// again tells whether the stored state is to be looked at once more after a create.
func again(err error) bool {
	return errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrNoNode) || framework.IsTransient(err)
}

func (s *Scheduler) create(ctx context.Context, j *job) error {
	data, err := State{Spec: j.schedule.String(), Zone: j.schedule.Location().String()}.encode()
	if err != nil {
		return err
	}
	if err := s.client.MakeDirs(ctx, s.directory()); err != nil {
		return err
	}
	return s.client.Create(ctx, s.node(j.Name), data, framework.Persistent)
}

// matches compares the stored schedule with the job's.
func (j *job) matches(st State) error {
	spec, zone := j.schedule.String(), j.schedule.Location().String()
	if st.Spec == spec && st.Zone == zone {
		return nil
	}
	return &SpecMismatchError{Job: j.Name, Stored: describe(st.Spec, st.Zone), Given: describe(spec, zone)}
}

func describe(spec, zone string) string { return fmt.Sprintf("%q in %s", spec, zone) }
