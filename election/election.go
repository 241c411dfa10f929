package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Election is an election at a path of its own. It holds no state but its arguments: several may be
// made for one path, and each may be used by many goroutines at once; each campaign is a candidate.
type Election struct {
	client *framework.Client
	path   string
	id     string
	line   *locks.Line
	err    error // of the arguments
}

// New returns an election at path. Nothing is created before it is used. An argument that cannot be
// used makes every call return an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Election {
	e := &Election{client: client, path: path}
	if e.err = e.check(); e.err != nil {
		return e
	}
	e.id = client.Config().Identity
	for _, o := range opts {
		if err := o(e); err != nil && e.err == nil {
			e.err = err
		}
	}
	e.line = locks.NewLine(client, path, locks.LatchKind, locks.WithData([]byte(e.id)))
	return e
}

func (e *Election) check() error {
	if e.client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(e.path); err != nil {
		return err
	}
	if e.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be an election", framework.ErrInvalidPath, e.path)
	}
	return nil
}

// Path is the election's directory.
func (e *Election) Path() string { return e.path }

// ID is what this election's candidates are called.
func (e *Election) ID() string { return e.id }

// Campaign waits in line until this candidate leads. A suspended connection keeps its place; a lost
// session makes it queue again. Its error is that of ctx when that ended the wait, or wraps
// framework.ErrClosed, framework.ErrNoAuth, framework.ErrInvalidPath or locks.ErrKindMixed; no node is
// left behind then.
func (e *Election) Campaign(ctx context.Context) (term *Term, err error) {
	if e.err != nil {
		return nil, framework.Wrap("campaign", e.path, e.err)
	}
	ctx, end := e.trace(ctx)
	defer func() { end(term, err) }()
	lease, err := e.line.Acquire(ctx)
	if err != nil {
		return nil, framework.Wrap("campaign", e.path, err)
	}
	return &Term{lease: lease, id: e.id}, nil
}

// Resign ends a term, as term.Resign does.
func (e *Election) Resign(ctx context.Context, term *Term) error { return term.Resign(ctx) }

// Lead campaigns, runs lead while this candidate leads, and campaigns again when lead has returned,
// until ctx ends. The context given to lead is done when the term or ctx has ended; Lead waits for
// lead to return before it gives the term up, and never calls it in a term that has ended.
//
// An error of lead while its context stood is logged and followed by a pause, which grows from the client's
// RetryBase to its RetryMax; but ErrStop makes Lead return nil. Otherwise Lead returns an error: that
// of ctx, or what Campaign returns.
func (e *Election) Lead(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	err := e.err
	if err == nil && lead == nil {
		err = errors.New("the function is nil")
	}
	if err != nil {
		return framework.Wrap("lead", e.path, err)
	}
	back := e.client.Retries()
	for {
		term, err := e.Campaign(ctx)
		if err != nil {
			return framework.Wrap("lead", e.path, err)
		}
		failed, stop := e.serve(ctx, term, lead)
		switch {
		case stop:
			return nil
		case !failed:
			back.Reset()
		default:
			_ = back.Pause(ctx) // the next Campaign says if ctx has ended
		}
	}
}

// serve runs lead for one term and gives the term up, even if lead panics.
func (e *Election) serve(ctx context.Context, term *Term, lead func(context.Context, *Term) error) (failed, stop bool) {
	defer func() { _ = term.Resign(ctx) }()
	within, cancel := term.within(ctx)
	defer cancel()
	if within.Err() != nil {
		return false, false
	}
	err := lead(within, term)
	switch {
	case errors.Is(err, ErrStop):
		return false, true
	case err == nil, within.Err() != nil:
		return false, false
	}
	e.client.Logger().Warn("a leader failed and campaigns again", "path", e.path, "id", e.id, "error", err)
	return true, false
}
