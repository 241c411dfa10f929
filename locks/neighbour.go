package locks

import "github.com/lockstep-go/lockstep/framework"

// neighbour is a contender ahead that is watched, or none.
type neighbour struct {
	name string
	w    *framework.Watch
}

// watchThem watches each of the neighbours at its place, if it does not already, at one time.
func (c *contender) watchThem(ns []*neighbour, at []place) {
	var paths []string
	var late []*neighbour
	for i, n := range ns {
		if n.w == nil || n.name != at[i].name {
			n.stop()
			n.name = at[i].name
			late, paths = append(late, n), append(paths, framework.Join(c.line.path, n.name))
		}
	}
	for i, w := range c.s.WatchNodes(paths...) {
		late[i].w = w
	}
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
