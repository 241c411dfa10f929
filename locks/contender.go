package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// contender is one node in the line.
type contender struct {
	line  *Line
	s     *framework.Session
	row   *row
	node  framework.Created
	place place

	stirred chan struct{} // has room for one

	// Guarded by row.mu.
	prev, next *contender // those of the row with consecutive numbers
	admitted   bool       // nobody is before it that it must wait for
	cleared    bool       // nobody is before it
	left       bool
}

func newContender(l *Line, s *framework.Session) *contender {
	return &contender{line: l, s: s, row: rowOf(s, l), stirred: make(chan struct{}, 1)}
}

// join creates the contender's node and returns what it sees of the line; a view without the
// contender is none.
func (c *contender) join(ctx context.Context) (v view, err error) {
	first := c.row.begin()
	defer func() {
		c.row.enter(c)
		c.passes(v)
	}()
	names, err := c.create(ctx, c.line.describe(ctx), first)
	if err != nil {
		return view{}, err
	}
	_, name := framework.Split(c.node.Path)
	c.place, _ = parse(name)
	if c.line.lone.proven(c) {
		return view{mine: true}, nil
	}
	return see(names, c.line.company, c.place)
}

// create creates the node. The first of its row has the line listed on the way, unless that is likely to
// be needless; who is not the first will most likely stand behind another one.
func (c *contender) create(ctx context.Context, data []byte, first bool) (names []string, err error) {
	l := c.line
	if l.queued == nil && (!first || l.lone.likely()) {
		c.node, err = c.s.CreateProtected(ctx, l.path, string(l.kind), data)
		return nil, err
	}
	c.node, names, err = c.s.CreateProtectedAndList(ctx, l.path, string(l.kind), data)
	return names, err
}

// passes tells whether the contender has passed, by what it sees or what its row knows.
func (c *contender) passes(v view) bool {
	if v.mine && v.blockers == 0 {
		c.row.admit(c, v.ahead == 0)
	}
	return c.row.standing(c) == passed
}

// announce tells the user's function that the wait begins.
func (c *contender) announce(ctx context.Context, v view) (view, error) {
	if !v.mine {
		var err error
		if v, err = c.look(ctx); err != nil {
			return v, err
		}
	}
	if !c.passes(v) {
		c.line.queued(v.ahead)
	}
	return v, nil
}

// look lists the line. A contender that is not in it was deleted by somebody.
func (c *contender) look(ctx context.Context) (view, error) {
	names, err := c.row.list(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return view{}, err
	}
	v, err := see(names, c.line.company, c.place)
	if err == nil && !v.mine {
		err = errPlaceLost
	}
	return v, err
}

// turn waits until nobody is before the contender that it must wait for.
func (c *contender) turn(ctx context.Context, v view) error {
	var near, far neighbour
	defer near.stop()
	defer far.stop()
	for {
		var err error
		switch c.row.standing(c) {
		case passed:
			return nil
		case behind:
			near.stop()
			far.stop()
			v, err = view{}, c.rest(ctx)
		case leading:
			v, err = c.lead(ctx, v, &near, &far)
		}
		if err != nil {
			return err
		}
	}
}

// rest waits to be told by the one before.
func (c *contender) rest(ctx context.Context) error {
	select {
	case <-c.stirred:
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-c.s.Done():
		return context.Cause(c.s.Context())
	}
}

// lead makes one step of a contender that no other of its row stands right before.
//
// It watches the last contender that it must wait for and the one before that. When the far one is gone it
// looks once, while the near one holds, and so off the critical path; if the look shows the near
// one alone, the event of that node's deletion grants. Nothing can be inserted before a contender
// but in the place of a writer, so nodes ahead only vanish, and a server that lags shows more
// of them, never fewer.
func (c *contender) lead(ctx context.Context, v view, near, far *neighbour) (view, error) {
	if !v.mine {
		return c.look(ctx)
	}
	if c.passes(v) {
		return v, nil
	}
	gone, err := c.await(ctx, v, near, far)
	if gone && v.blockers == 1 && !c.mayBeReplaced(v.near) {
		c.row.admit(c, !c.place.kind.shared())
	}
	return view{}, err
}

// await waits until something has happened ahead, and tells whether it is the end of the near neighbour.
func (c *contender) await(ctx context.Context, v view, near, far *neighbour) (gone bool, err error) {
	if v.blockers == 1 || c.mayBeReplaced(v.near) {
		far.stop()
		c.watchThem([]*neighbour{near}, []place{v.near})
	} else {
		c.watchThem([]*neighbour{near, far}, []place{v.near, v.far})
	}
	select {
	case e := <-near.events():
		near.stop()
		return e.Kind == framework.NodeDeleted, e.Err
	case e := <-far.events():
		far.stop()
		return false, e.Err
	case <-c.stirred:
		return false, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-c.s.Done():
		return false, context.Cause(c.s.Context())
	}
}

// mayBeReplaced tells whether somebody else that the contender must wait for may take p's place. What takes a
// writer's place is a reader.
func (c *contender) mayBeReplaced(p place) bool {
	return p.kind.replaceable() && !c.place.kind.shared()
}

// leave deletes the contender's node in the background and tells the one behind.
func (c *contender) leave() *framework.Discarded {
	return c.s.DiscardThen(c.gone, c.node.Path)
}

// gone takes the contender out of its row, once.
func (c *contender) gone() {
	if c.row.leave(c) {
		c.row.close(c.line)
	}
}

// giveUp leaves the line, if the contender has come that far.
func (c *contender) giveUp() {
	if c.node.Path == "" {
		c.gone()
		return
	}
	c.leave()
}

// giveBack ends a lease of the line.
func (c *contender) giveBack(early bool) returned {
	r, gone := c.line.discard(c.s, early, c.gone, c.node.Path)
	r.after = func() { c.line.lone.left(c, gone.Zxid()) }
	return r
}
