package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

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
