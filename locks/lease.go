package locks

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Lease is what every grant hands back. It is immutable but for its end.
//
// Guarantee: Context is done before the servers can grant the same thing to anybody else, as long as
// this process is scheduled (see package framework). Not guaranteed: that a process which was stopped
// notices in time. Pass Token to what the lock protects, and Guard to ZooKeeper transactions.
type Lease struct {
	hold  *framework.Hold
	line  *Line
	place place
	node  string
	token int64

	release sync.Once
	gone    *framework.Discarded
}

// Context is done when the lease has ended; its cause wraps ErrReleased, framework.ErrSessionLost,
// framework.ErrNodeGone or framework.ErrClosed. It carries the values of the context that the lease
// was asked for with, but not its end.
func (l *Lease) Context() context.Context { return l.hold.Context() }

// Token is the fencing token: it rises with every exclusive grant on the path. What the lock protects
// should remember the highest token that it has seen and refuse lower ones.
func (l *Lease) Token() int64 { return l.token }

// Path is the lock's path.
func (l *Lease) Path() string { return l.line.path }

// Node is the path of the lease's own node in the line.
func (l *Lease) Node() string { return l.node }

// Session is the number of the session that the lease belongs to.
func (l *Lease) Session() int64 { return l.hold.Session().ID() }

// Err is nil while the lease stands, else why it ended. It reads the clock, so that it is right at
// once in a process that was stopped and continued.
func (l *Lease) Err() error { return l.hold.Err() }

// Remaining is the time until the lease ends unless the session's life is proven again before: what a
// holder has left to stop in when its connection is gone. It is never negative.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	return l.hold.Session().LeaseRemaining()
}

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the lease
// stands: it is refused before it is sent once the lease has ended here, and by the servers once its
// node is gone there.
func (l *Lease) Guard() framework.Op {
	return framework.CheckOp(l.node, framework.AnyVersion).When(l.Err)
}

// Release ends the lease's context, then deletes its node. It waits for the deletion until ctx ends;
// after that it is finished in the background, until the node is gone or the session has ended, and
// Client.Close waits for it. The error is nil in either case. Releasing again is harmless.
func (l *Lease) Release(ctx context.Context) error {
	l.release.Do(func() {
		l.hold.End(ErrReleased)
		l.gone = l.hold.Session().Discard(l.node)
	})
	select {
	case <-l.gone.Done():
		l.line.lone.left(l)
	case <-ctx.Done():
	}
	return nil
}
