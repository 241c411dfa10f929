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
// A contender waits for the node two before it; when that is gone it looks once, off the critical path,
// and if its direct predecessor is all that is left before it, that node's deletion grants. Nothing
// can be inserted before a contender, so nodes ahead only vanish. The algorithm is the lock recipe of
// ZooKeeper's documentation, without its herd, and with Curator's protected create.
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
		case errors.Is(err, framework.ErrSessionLost), errors.Is(err, errPlaceLost):
			if ctx.Err() == nil {
				continue
			}
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
	if len(v) == 0 {
		return l.grant(ctx, s, c)
	}
	s.Discard(c.node.Path)
	return nil, ErrNotAcquired
}

// wait joins the line and waits for its turn. A contender that fails leaves no node behind.
func (l *Line) wait(ctx context.Context, s *framework.Session) (*Lease, error) {
	c, ahead, err := l.join(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(ahead) > 0 {
		if l.queued != nil {
			l.queued(len(ahead))
		}
		if err := c.turn(ctx, ahead); err != nil {
			s.Discard(c.node.Path)
			return nil, err
		}
	}
	return l.grant(ctx, s, c)
}

// join creates a contender and returns who is before it.
func (l *Line) join(ctx context.Context, s *framework.Session) (*contender, []place, error) {
	data := l.data
	if data == nil {
		data = l.describe(ctx)
	}
	c := &contender{line: l, s: s}
	ahead, err := c.join(ctx, data)
	if err != nil {
		if c.node.Path != "" {
			s.Discard(c.node.Path)
		}
		return nil, nil, err
	}
	return c, ahead, nil
}

// grant makes the lease, if the session still stands.
func (l *Line) grant(ctx context.Context, s *framework.Session, c *contender) (*Lease, error) {
	h, err := s.Hold(ctx, c.node.Path)
	if err != nil {
		return nil, err
	}
	return &Lease{hold: h, line: l, place: c.place, node: c.node.Path, token: c.node.Zxid}, nil
}

// contender is one node in the line.
type contender struct {
	line  *Line
	s     *framework.Session
	node  framework.Created
	place place
}

// join creates the contender's node and returns who is before it.
func (c *contender) join(ctx context.Context, data []byte) (ahead []place, err error) {
	l := c.line
	var names []string
	if l.lone.likely() {
		c.node, err = c.s.CreateProtected(ctx, l.path, string(l.kind), data)
	} else {
		c.node, names, err = c.s.CreateProtectedAndList(ctx, l.path, string(l.kind), data)
	}
	if err != nil {
		return nil, err
	}
	_, name := framework.Split(c.node.Path)
	c.place, _ = parse(name)
	if l.lone.proven(c) {
		return nil, nil
	}
	if ahead, err = c.ahead(names); errors.Is(err, errPlaceLost) { // no list came, or one from before the create
		return c.look(ctx)
	}
	return ahead, err
}

// turn waits until nobody is before the contender any more.
func (c *contender) turn(ctx context.Context, ahead []place) error {
	for len(ahead) > 0 {
		next := ahead[len(ahead)-1]
		if len(ahead) > 1 {
			next = ahead[len(ahead)-2]
		}
		gone, err := c.gone(ctx, next)
		if err != nil {
			return err
		}
		if gone && len(ahead) == 1 {
			return nil
		}
		if ahead, err = c.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gone waits until something has happened to a node, and tells whether it is its deletion.
func (c *contender) gone(ctx context.Context, p place) (bool, error) {
	_, _, w, err := c.s.WatchData(ctx, framework.Join(c.line.path, p.name))
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer w.Stop()
	select {
	case e := <-w.C():
		return e.Kind == framework.NodeDeleted, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-c.s.Done():
		return false, context.Cause(c.s.Context())
	}
}

// look lists the line and returns who is before the contender, nearest last.
func (c *contender) look(ctx context.Context) ([]place, error) {
	names, _, err := c.s.Children(ctx, c.line.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, errPlaceLost
	}
	if err != nil {
		return nil, err
	}
	return c.ahead(names)
}

// ahead returns who is before the contender in a list, which must name the contender itself.
func (c *contender) ahead(names []string) ([]place, error) {
	line, err := order(names, string(c.line.kind))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(line, func(p place) bool { return p.name == c.place.name })
	if i < 0 {
		return nil, errPlaceLost
	}
	return line[:i], nil
}
