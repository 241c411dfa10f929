package recipe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/onsession"
)

// ErrAgain is returned by a step of OnSession that must be called again, because another client has
// changed what the step has read.
var ErrAgain = errors.New("changed meanwhile, try again")

// Step is one attempt to do something on a session.
type Step func(s *framework.Session) error

// OnSession calls step with the client's session, and repeats it on the next one when the session
// is lost; see [onsession.Repeat]. It also repeats step after an error that wraps ErrAgain, or for
// which a function of repeat returns true, with the pauses of RetryPauses in between. It returns
// any other error, such as framework.ErrClosed or a refusal.
//
// OnSession also calls step while the connection is suspended: the session's operations wait for
// the connection. If step returns framework.ErrSuspended, it has a write whose outcome is unknown.
// OnSession repeats it only if repeat allows that, as [failure.IsTransient] does.
func OnSession(ctx context.Context, client *framework.Client, step Step, repeat ...func(error) bool) error {
	pauses := RetryPauses{Client: client}
	return onsession.Repeat(ctx, client.Session, step, func(err error) bool {
		return errors.Is(err, ErrAgain) || slices.ContainsFunc(repeat, func(f func(error) bool) bool { return f(err) })
	}, pauses.Wait)
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
