package election

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/locks"
)

// Term is the time for which one candidate leads: a lease on leadership.
//
// Guarantee: Context is done before the servers can let anybody else lead, as long as this process is
// scheduled. Not guaranteed: that a process which was stopped notices in time; Token and Guard are for
// that.
type Term struct {
	election *Election
	lease    *locks.Lease
	life     *lifetime.Lifetime // within the lease's
	began    time.Time
	overseen sync.WaitGroup

	number   int64
	since    time.Time
	writing  chan struct{} // of the one who may write the record
	record   storedTerm    // as this term has last seen it
	doubtful bool          // whether a write was done that failed: a server may lag behind it

	mu        sync.Mutex
	led       bool // by Lead, which gives the term up once its function has returned
	successor *successor
	gave      sync.Once
}

func newTerm(e *Election, lease *locks.Lease) *Term {
	return &Term{
		election: e, lease: lease, life: lease.Lifetime().Child(lease.Context()), began: time.Now(), writing: make(chan struct{}, 1),
	}
}

// Context is done when the term has ended; its cause wraps ErrResigned, ErrTransferred, ErrMaxTerm,
// ErrUnhealthy, ErrDisconnected, framework.ErrSessionLost, framework.ErrNodeGone or framework.ErrClosed. It
// carries the values of the context that Campaign got, but not its end.
func (t *Term) Context() context.Context { return t.life.Context() }

// Token is the term's fencing token: it rises with every term of the election.
func (t *Term) Token() int64 { return t.lease.Token() }

// Number counts the election's terms. Java's candidates do not count theirs, and a winner that is lost at
// once may leave a number out; nobody has the same as another.
func (t *Term) Number() int64 { return t.number }

// Since is when the term began, by this machine's clock.
func (t *Term) Since() time.Time { return t.since }

// ID is what the leader is called.
func (t *Term) ID() string { return t.election.id }

// Node is the path of the leader's own node.
func (t *Term) Node() string { return t.lease.Node() }

// Session is the number of the session that the term belongs to.
func (t *Term) Session() int64 { return t.lease.Session() }

// Remaining is the time until the term ends unless the session's life is proven again before; see
// locks.Lease.Remaining.
func (t *Term) Remaining() time.Duration {
	if t.Err() != nil {
		return 0
	}
	return t.lease.Remaining()
}

// Err is nil while the term stands, else why it ended. It reads the clock, so that it is right at once
// in a process that was stopped and continued.
func (t *Term) Err() error { return t.life.Err() }

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the term stands.
func (t *Term) Guard() framework.Op { return t.lease.Guard().When(t.Err) }

// Resign ends the term's context, then deletes its node, so that the next candidate leads. It waits for
// the deletion until ctx ends; after that it is finished in the background, and Client.Close waits for
// it. The error is nil in either case. Resigning again is harmless.
//
// Within Lead, the node is deleted once the function has returned, and Resign does not wait.
func (t *Term) Resign(ctx context.Context) error {
	if t.endContext(ErrResigned) {
		return nil
	}
	if err := t.releasePlace(ctx); err != nil {
		t.election.client.Logger().Warn("leadership was given up, but not to whom it should have gone", "path", t.election.path, "error", err)
	}
	return nil
}

// endContext ends the term's context, and reports whether Lead will give the term up. The lock keeps it out of
// the moment in which endInFavourOf has found the term standing and ends it.
func (t *Term) endContext(cause error) (led bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.life.End(cause)
	return t.led
}

// releasePlace gives the term's place up. Its error is that of the hand-over to a successor, of the first call.
func (t *Term) releasePlace(ctx context.Context) (err error) {
	t.endContext(ErrResigned)
	t.gave.Do(func() {
		t.overseen.Wait()
		err = t.handOverTo(ctx)
		t.election.current.CompareAndSwap(t, nil)
	})
	_ = t.lease.Release(ctx) // has no error
	return err
}

// withTermEnd returns a context that ends with the term and with ctx, whichever is first, and carries the
// values of the term's.
func (t *Term) withTermEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	both := t.life.Child(t.Context())
	stop := context.AfterFunc(ctx, func() { both.End(context.Cause(ctx)) })
	if ctx.Err() != nil { // AfterFunc would tell a moment later
		both.End(context.Cause(ctx))
	}
	return both.Context(), func() { stop(); both.End(context.Canceled) }
}
