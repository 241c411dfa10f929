package election

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Term is the time for which one candidate leads: a lease on leadership.
//
// Guarantee: Context is done before the servers can let anybody else lead, as long as this process is
// scheduled. Not guaranteed: that a process which was stopped notices in time; Token and Guard are for
// that.
type Term struct {
	lease *locks.Lease
	id    string
}

// Context is done when the term has ended; its cause wraps ErrResigned, framework.ErrSessionLost,
// framework.ErrNodeGone or framework.ErrClosed. It carries the values of the context that Campaign got,
// but not its end.
func (t *Term) Context() context.Context { return t.lease.Context() }

// Token is the term's fencing token: it rises with every term of the election.
func (t *Term) Token() int64 { return t.lease.Token() }

// ID is what the leader is called.
func (t *Term) ID() string { return t.id }

// Node is the path of the leader's own node.
func (t *Term) Node() string { return t.lease.Node() }

// Session is the number of the session that the term belongs to.
func (t *Term) Session() int64 { return t.lease.Session() }

// Err is nil while the term stands, else why it ended. It reads the clock, so that it is right at once
// in a process that was stopped and continued.
func (t *Term) Err() error { return t.lease.Err() }

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the term stands.
func (t *Term) Guard() framework.Op { return t.lease.Guard() }

// Resign ends the term's context, then deletes its node, so that the next candidate leads. It waits for
// the deletion until ctx ends; after that it is finished in the background, and Client.Close waits for
// it. The error is nil in either case. Resigning again is harmless.
func (t *Term) Resign(ctx context.Context) error { return t.lease.Release(ctx) }

// within returns a context that ends with the term and with ctx, whichever is first, and carries the
// values of the term's.
func (t *Term) within(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(t.lease.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	if ctx.Err() != nil { // AfterFunc would tell a moment later
		cancel(context.Cause(ctx))
	}
	return termContext{both, t}, func() { stop(); cancel(context.Canceled) }
}

// termContext is a context within a term: asked for its error, it checks the term first.
type termContext struct {
	context.Context
	term *Term
}

func (c termContext) Err() error {
	_ = c.term.Err() // ends the term's context, and this one, if its time is over
	return c.Context.Err()
}
