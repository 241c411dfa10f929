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
	node  framework.Created
	place place
}

// join creates the contender's node and returns what it sees of the line.
func (c *contender) join(ctx context.Context, data []byte) (v view, err error) {
	l := c.line
	var names []string
	if l.lone.likely() {
		c.node, err = c.s.CreateProtected(ctx, l.path, string(l.kind), data)
	} else {
		c.node, names, err = c.s.CreateProtectedAndList(ctx, l.path, string(l.kind), data)
	}
	if err != nil {
		return view{}, err
	}
	_, name := framework.Split(c.node.Path)
	c.place, _ = parse(name)
	if l.lone.proven(c) {
		return view{mine: true}, nil
	}
	if v, err = see(names, c.place); err == nil && !v.mine { // no list came, or one from before the create
		return c.look(ctx)
	}
	return v, err
}

// look lists the line. A contender that is not in it was deleted by somebody.
func (c *contender) look(ctx context.Context) (view, error) {
	names, _, err := c.s.Children(ctx, c.line.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return view{}, err
	}
	v, err := see(names, c.place)
	if err == nil && !v.mine {
		err = errPlaceLost
	}
	return v, err
}

// turn waits until nobody is before the contender any more.
//
// It watches its direct predecessor and the one before that. When the far one is gone it looks once,
// while its predecessor holds, and so off the critical path; if the look shows the predecessor
// alone, the event of that node's deletion grants. Nothing can be inserted before a contender, so
// nodes ahead only vanish, and a server that lags shows more of them, never fewer.
func (c *contender) turn(ctx context.Context, v view) (err error) {
	var near, far neighbour
	defer near.stop()
	defer far.stop()
	for v.ahead > 0 {
		gone, err := c.pass(ctx, v, &near, &far)
		switch {
		case err != nil:
			return err
		case gone && v.ahead == 1:
			return nil
		}
		if v, err = c.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pass waits until something has happened ahead, and tells whether it is the end of the near neighbour.
func (c *contender) pass(ctx context.Context, v view, near, far *neighbour) (gone bool, err error) {
	if gone, err := near.watch(ctx, c, v.near); gone || err != nil {
		return gone, err
	}
	if v.ahead == 1 {
		far.stop()
	} else if gone, err := far.watch(ctx, c, v.far); gone || err != nil {
		return false, err
	}
	return c.change(ctx, near, far)
}

// change waits until something has happened to a neighbour, and tells whether it is the near one's end.
func (c *contender) change(ctx context.Context, near, far *neighbour) (gone bool, err error) {
	select {
	case e := <-near.events():
		near.stop()
		return e.Kind == framework.NodeDeleted, nil
	case <-far.events():
		far.stop()
		return false, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-c.s.Done():
		return false, context.Cause(c.s.Context())
	}
}

// neighbour is a contender ahead that is watched, or none.
type neighbour struct {
	name string
	w    *framework.Watch
}

// watch watches p, if it does not already. gone tells that p's node does not exist.
func (n *neighbour) watch(ctx context.Context, c *contender, p place) (gone bool, err error) {
	if n.w != nil && n.name == p.name {
		return false, nil
	}
	n.stop()
	_, _, w, err := c.s.WatchData(ctx, framework.Join(c.line.path, p.name))
	if errors.Is(err, framework.ErrNoNode) {
		return true, nil
	}
	n.name, n.w = p.name, w
	return false, err
}

// events gets what happens to the neighbour; nothing if there is none.
func (n *neighbour) events() <-chan framework.Event {
	if n.w == nil {
		return nil
	}
	return n.w.C()
}

// stop ends the watch.
func (n *neighbour) stop() {
	if n.w != nil {
		n.w.Stop()
		n.w = nil
	}
}
