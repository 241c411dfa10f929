package recipe

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// ErrAgain is returned by a step of OnSession that must be called again, because another client has
// changed what the step has read.
var ErrAgain = errors.New("changed meanwhile, try again")

// Step is one attempt to do something on a session.
type Step func(s *framework.Session) error

// OnSession calls step with the client's session until step is done or fails for good. The result
// of step decides:
//
//   - nil: OnSession returns nil.
//   - any error after ctx has ended: OnSession returns failure.Ended(ctx).
//   - an error that wraps framework.ErrSessionLost, from a session that has ended: OnSession calls
//     step with the next session. It does not pause, since the client pauses before it opens a
//     session.
//   - an error that wraps ErrAgain, or framework.ErrSessionLost while the session stands, or an
//     error for which a function of repeat returns true: OnSession calls step again, after a pause
//     of RetryPauses.
//   - any other error, such as framework.ErrClosed or a refusal: OnSession returns it.
//
// OnSession also calls step while the connection is suspended: the session's operations wait for
// the connection. If step returns framework.ErrSuspended, it has a write whose outcome is unknown.
// OnSession repeats it only if repeat allows that, as [failure.IsTransient] does.
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

// RetryPauses are the pauses between the attempts of one thing. There is no pause before the second
// attempt of a series, since most failures are over by then. The pauses before later attempts are
// those of a Backoff. After an attempt of more than 10 seconds a new series begins. Set Client
// before use. RetryPauses is not safe for concurrent use.
type RetryPauses struct {
	Client *framework.Client

	back     *Backoff
	failures int // in the current series
}

// seriesWindow is how long an attempt must last so that a new series begins after it.
const seriesWindow = 10 * time.Second

// Wait pauses after a failed attempt, which began at this time. It returns an error if ctx ends
// first.
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
