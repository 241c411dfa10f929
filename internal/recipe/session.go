package recipe

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// ErrAgain is returned by a function of OnSession that must be called again, because another client has changed what it read.
var ErrAgain = errors.New("changed meanwhile, try again")

// Step is one attempt to do something on a session.
type Step func(s *framework.Session) error

// OnSession calls step with the client's session, and again until it is done. It classifies what step returns:
//
//   - nil: done.
//   - any error after ctx has ended: OnSession returns failure.Ended(ctx).
//   - an error that wraps framework.ErrSessionLost, of a session that has ended: step is called with the next session. There is no pause, since
//     the client pauses between sessions that it loses.
//   - an error that wraps ErrAgain or framework.ErrSessionLost while the session stands, and an error for which one of repeat returns true: step is
//     called again, after a pause that RetryPauses draws.
//   - any other error, such as framework.ErrClosed or a refusal: OnSession returns it.
//
// While the connection is suspended, step is called all the same: the session's operations wait for the connection. A step that
// returns framework.ErrSuspended has a write of an unknown outcome; it is repeated only if repeat says so, as [failure.IsTransient] does.
func OnSession(ctx context.Context, client *framework.Client, step Step, repeat ...func(error) bool) error {
	pauses := RetryPauses{Client: client}
	for {
		began := time.Now()
		s, err := client.Session(ctx)
		if err != nil {
			return err
		}
		err = step(s)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return failure.Ended(ctx)
		case errors.Is(err, framework.ErrSessionLost) && s.Err() != nil:
			continue
		case !errors.Is(err, ErrAgain) && !errors.Is(err, framework.ErrSessionLost) && !anyIsTrue(repeat, err):
			return err
		}
		if pauses.Wait(ctx, began) != nil {
			return failure.Ended(ctx)
		}
	}
}

func anyIsTrue(conditions []func(error) bool, err error) bool {
	for _, c := range conditions {
		if c(err) {
			return true
		}
	}
	return false
}

// RetryPauses are the pauses between attempts of one thing. The first repetition in a series comes at once, since most failures are over by
// then. The later ones pause as a Backoff does. An attempt of more than 10 seconds begins a new series. Set Client before use.
type RetryPauses struct {
	Client *framework.Client

	back     *Backoff
	failures int // of the series
}

// seriesWindow is how long an attempt must last to begin a new series.
const seriesWindow = 10 * time.Second

// Wait waits before the attempt is repeated that began at this time. It returns an error when ctx ends first.
func (p *RetryPauses) Wait(ctx context.Context, began time.Time) error {
	if time.Since(began) > seriesWindow {
		p.failures, p.back = 0, nil
	}
	if p.failures++; p.failures == 1 {
		return ctx.Err()
	}
	if p.back == nil {
		p.back = NewBackoff(p.Client)
	}
	return p.back.Pause(ctx)
}
