package scheduler

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// campaignWhileNeeded leads whenever the other candidates let it, while this member has jobs of OnLeader. A member without any stays out of the
// election: as the leader it would keep the leader jobs of all others from being run.
func (s *Scheduler) campaignWhileNeeded(ctx context.Context) error {
	for {
		for !s.hasLeaderJobs() {
			select {
			case <-s.jobsChanged:
			case <-ctx.Done():
				return framework.Ended(ctx)
			}
		}
		campaigning, resign := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.election.Lead(campaigning, s.holdTerm) }()
		for s.hasLeaderJobs() {
			select {
			case <-s.jobsChanged:
			case err := <-ended:
				resign()
				return err
			}
		}
		resign()
		if err := <-ended; ctx.Err() != nil {
			return err
		}
	}
}

func (s *Scheduler) hasLeaderJobs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Placement != Spread {
			return true
		}
	}
	return false
}

// waitForJob waits until this member has a job. It returns an error when ctx ends first.
func (s *Scheduler) waitForJob(ctx context.Context) error {
	for len(s.knownJobs()) == 0 {
		select {
		case <-s.jobsChanged:
		case <-ctx.Done():
			return framework.Ended(ctx)
		}
	}
	return nil
}

// signalJobsChanged wakes campaign and waitForJob after this member's jobs have changed.
func (s *Scheduler) signalJobsChanged() {
	select {
	case s.jobsChanged <- struct{}{}:
	default:
	}
}
