package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// Kind is what the contenders of a line are named after; one directory holds one kind.
type Kind string

// The kinds of Apache Curator's layouts.
const (
	// MutexKind is InterProcessMutex's: lock-#.
	MutexKind Kind = "lock-"
	// LatchKind is LeaderLatch's: latch-#.
	LatchKind Kind = "latch-"
)

// Line is a waiting line: ephemeral sequential nodes below one directory, served in the order of their
// numbers. It is what mutexes and elections are made of.
//
// The algorithm is the lock recipe of ZooKeeper's documentation, without its herd, with Curator's
// protected create, and with a look ahead (see contender.turn).
type Line struct {
	client *framework.Client
	path   string
	kind   Kind
	data   []byte
	queued func(ahead int)
	tel    telemetry
	lone   lone
	err    error // of the arguments
}

// NewLine returns a line at path. Nothing is created before the first Acquire. An argument that
// cannot be used makes every call return an error that says so.
func NewLine(client *framework.Client, path string, kind Kind, opts ...Option) *Line {
	l := &Line{client: client, path: path, kind: kind}
	if l.err = l.check(); l.err == nil {
		l.tel = newTelemetry(client)
	}
	for _, o := range opts {
		if err := o(l); err != nil && l.err == nil {
			l.err = err
		}
	}
	return l
}

func (l *Line) check() error {
	if l.client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(l.path); err != nil {
		return err
	}
	if !slices.Contains(kinds, string(l.kind)) {
		return fmt.Errorf("a line of kind %q: the kinds are %q", l.kind, kinds)
	}
	if l.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a lock", framework.ErrInvalidPath, l.path)
	}
	return nil
}

// Path is the line's directory.
func (l *Line) Path() string { return l.path }

// Acquire waits in line until it is granted. A suspended connection keeps its place; a lost session
// makes it queue again, at the end. Its errors: that of ctx, when that ended the wait; one that wraps
// framework.ErrClosed or framework.ErrNoAuth; ErrKindMixed. No node is left behind then.
func (l *Line) Acquire(ctx context.Context) (*Lease, error) {
	return l.each(ctx, "acquire", l.wait)
}

// TryAcquire is granted at once or returns an error that wraps ErrNotAcquired. It waits for a session,
// though, and for the servers' answers, until ctx ends.
func (l *Line) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.each(ctx, "try", l.try)
}

// each runs one way to be granted on session after session.
func (l *Line) each(ctx context.Context, op string, grant func(context.Context, *framework.Session) (*Lease, error)) (lease *Lease, err error) {
	if l.err != nil {
		return nil, framework.Wrap(op, l.path, l.err)
	}
	ctx, end := l.trace(ctx, op)
	defer func() { end(lease, err) }()
	for {
		s, err := l.client.Session(ctx)
		if err != nil {
			return nil, framework.Wrap(op, l.path, err)
		}
		lease, err := grant(ctx, s)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			err = framework.Ended(ctx)
		case errors.Is(err, framework.ErrSessionLost), errors.Is(err, errPlaceLost):
			continue
		}
		return nil, framework.Wrap(op, l.path, err)
	}
}

// errPlaceLost says that somebody deleted a waiter's node.
var errPlaceLost = errors.New("the waiter's node was deleted")

// try is granted only if nobody is there.
func (l *Line) try(ctx context.Context, s *framework.Session) (*Lease, error) {
	names, _, err := s.Children(ctx, l.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	others, err := order(names, string(l.kind))
	switch {
	case err != nil:
		return nil, err
	case len(others) > 0:
		return nil, ErrNotAcquired
	}
	c, v, err := l.join(ctx, s)
	if err != nil {
		return nil, err
	}
	if v.ahead == 0 {
		return l.grant(ctx, s, c)
	}
	s.Discard(c.node.Path)
	return nil, ErrNotAcquired
}

// wait joins the line and waits for its turn. A contender that fails leaves no node behind.
func (l *Line) wait(ctx context.Context, s *framework.Session) (*Lease, error) {
	c, v, err := l.join(ctx, s)
	if err != nil {
		return nil, err
	}
	granted := false
	defer func() { // whatever happens, be it a panic of the function below
		if !granted {
			s.Discard(c.node.Path)
		}
	}()
	if v.ahead > 0 && l.queued != nil {
		l.queued(v.ahead)
	}
	if err := c.turn(ctx, v); err != nil {
		return nil, err
	}
	lease, err := l.grant(ctx, s, c)
	granted = err == nil
	return lease, err
}

// join creates a contender and returns what it sees of the line.
func (l *Line) join(ctx context.Context, s *framework.Session) (*contender, view, error) {
	data := l.data
	if data == nil {
		data = l.describe(ctx)
	}
	c := &contender{line: l, s: s}
	v, err := c.join(ctx, data)
	if err != nil {
		if c.node.Path != "" {
			s.Discard(c.node.Path)
		}
		return nil, view{}, err
	}
	return c, v, nil
}

// grant makes the lease, if the session still stands.
func (l *Line) grant(ctx context.Context, s *framework.Session, c *contender) (*Lease, error) {
	h, err := s.Hold(ctx, c.node.Path)
	if err != nil {
		return nil, err
	}
	return &Lease{hold: h, line: l, place: c.place, node: c.node.Path, token: c.node.Zxid}, nil
}
