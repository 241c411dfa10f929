package election

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Lead campaigns, runs lead while this candidate leads, and campaigns again when lead has returned,
// until ctx ends. The context given to lead is done when the term or ctx has ended; Lead waits for
// lead to return before it gives the term up, and never calls it in a term that has ended.
//
// An error of lead while its context stood is logged and followed by a pause, which grows from the client's
// RetryBase to its RetryMax. Such a pause also follows a term of less than a second that was not transferred, so
// that a function that returns at once does not campaign in a tight loop; WithMinTerm makes terms last.
//
// ErrStop makes Lead return nil, and an error of Permanent is returned. Otherwise Lead returns the error of ctx,
// or what Campaign returns.
func (e *Election) Lead(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	err := e.err
	if err == nil && lead == nil {
		err = errors.New("the function is nil")
	}
	if err == nil {
		err = e.leadOnce(ctx, lead)
	}
	return framework.Wrap("lead", e.path, err)
}

// briefTerm is the length up to which a term is followed by a pause.
const briefTerm = time.Second

func (e *Election) leadOnce(ctx context.Context, lead func(context.Context, *Term) error) error {
	back := e.client.Backoff()
	for {
		term, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		err = e.runTerm(ctx, term, lead)
		var permanent *permanentError
		switch {
		case err == nil && time.Since(term.began) < briefTerm && !errors.Is(term.Err(), ErrTransferred):
			_ = back.Pause(ctx) // the next Campaign says if ctx has ended
		case err == nil:
			back.Reset()
		case errors.Is(err, ErrStop):
			return nil
		case errors.As(err, &permanent):
			return permanent.err
		default:
			e.client.Logger().Warn("a leader failed and campaigns again", "path", e.path, "id", e.id, "error", err)
			_ = back.Pause(ctx) // the next Campaign says if ctx has ended
		}
	}
}

// runTerm runs lead for one term and gives the term up, even if lead panics. Its error is lead's, but not what a
// lead returns whose context has ended, unless that is to end Lead.
func (e *Election) runTerm(ctx context.Context, term *Term, lead func(context.Context, *Term) error) error {
	term.mu.Lock()
	term.led = true
	term.mu.Unlock()
	defer term.giveUpAfterLead(ctx)
	within, cancel := term.withTermEnd(ctx)
	defer cancel()
	if within.Err() != nil {
		return nil
	}
	err := lead(within, term)
	var permanent *permanentError
	switch {
	case err == nil:
		_ = framework.Pause(within, time.Until(term.began.Add(e.minTerm)))
		return nil
	case errors.Is(err, ErrStop), errors.As(err, &permanent), within.Err() == nil:
		return err
	}
	return nil
}

// giveUpAfterLead gives up a term that Lead has served.
func (t *Term) giveUpAfterLead(ctx context.Context) {
	if err := t.releasePlace(ctx); err != nil {
		t.election.client.Logger().Warn("leadership went to the first in line, not to whom it was handed",
			"path", t.election.path, "error", err)
	}
}
