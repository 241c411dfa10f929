package waitline

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Line is a waiting line in one directory. Several lines may be made for one directory, and each may be used by many goroutines at
// once.
//
// The algorithm is the lock recipe of ZooKeeper's documentation without its herd effect, with Curator's protected create, and with a
// watch of the second predecessor; see waitForGrant.
type Line struct {
	dir    string
	filter Filter
	key    any             // finds its local waiters in a session
	onWait func(ahead int) // may be nil
	hint   uncontendedHint
}

// New returns a line in a directory. It creates no node. onWait is called each time that a wait begins, with the number of contenders
// ahead; it may be nil.
func New(dir string, filter Filter, onWait func(ahead int)) *Line {
	return &Line{dir: dir, filter: filter, key: localWaitersKey{dir, filter.Kind.Family()}, onWait: onWait}
}

// Dir is the line's directory.
func (l *Line) Dir() string { return l.dir }

// Kind is the kind of the line's contenders.
func (l *Line) Kind() Kind { return l.filter.Kind }

var (
	// ErrNotAcquired is returned when a try finds another holder or waiter.
	ErrNotAcquired = errors.New("not acquired")
	// ErrPlaceLost is returned when another client has deleted a contender's node. It wraps recipe.ErrAgain: the contender has to join again.
	ErrPlaceLost = fmt.Errorf("the waiter's node was deleted: %w", recipe.ErrAgain)
)

// Contender is one node in a line.
type Contender struct {
	line     *Line
	s        *framework.Session
	node     framework.Created // its Path is "" until the contender has joined
	siblings *localWaiters
	local    localWaiter
}

func (l *Line) newContender(s *framework.Session) *Contender {
	return &Contender{line: l, s: s, siblings: localWaitersOf(s, l.dir, l.key), local: localWaiter{wakeups: make(chan struct{}, 1)}}
}

// Node is the contender's node.
func (c *Contender) Node() framework.Created { return c.node }

// Session is the session that the contender belongs to.
func (c *Contender) Session() *framework.Session { return c.s }

// Wait joins the line with a node that holds data, and waits until the contender is granted. It ends with ctx, with the session, or with
// ErrKindMixed or ErrPlaceLost. When it fails or panics, the contender's node is deleted in the background.
func (l *Line) Wait(ctx context.Context, s *framework.Session, data []byte) (*Contender, error) {
	c := l.newContender(s)
	ok := false
	defer func() { // onWait may panic, or end the goroutine
		if !ok {
			c.abandon()
		}
	}()
	v, err := c.join(ctx, data)
	if err != nil {
		return nil, err
	}
	if l.onWait != nil {
		if !v.joined {
			if v, err = c.list(ctx); err != nil {
				return nil, err
			}
		}
		if !c.isGranted(v) {
			l.onWait(v.ahead)
		}
	}
	if err := c.waitForGrant(ctx, v); err != nil {
		return nil, err
	}
	ok = true
	return c, nil
}

// Try joins the line if the contender is granted at once. Otherwise it fails with ErrNotAcquired, and no node stays behind. It waits for
// the servers' answers until ctx ends.
func (l *Line) Try(ctx context.Context, s *framework.Session, data []byte) (*Contender, error) {
	names, _, err := s.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return nil, err
	}
	if err := l.checkVacant(names); err != nil {
		return nil, err
	}
	c := l.newContender(s)
	v, err := c.join(ctx, data)
	if err == nil && !v.joined && c.siblings.stateOf(&c.local) != granted {
		v, err = c.list(ctx) // a reader right behind another of this session may be granted before that one knows
	}
	if err == nil && !c.isGranted(v) {
		err = ErrNotAcquired
	}
	if err != nil {
		c.abandon()
		return nil, err
	}
	return c, nil
}

// checkVacant returns ErrNotAcquired if a newcomer would have to wait for one of these children.
func (l *Line) checkVacant(names []string) error {
	var taken error
	err := l.filter.forEach(names, func(p Position) {
		if !p.Kind.IsShared() || !l.filter.Kind.IsShared() {
			taken = ErrNotAcquired
		}
	})
	if err != nil {
		return err
	}
	return taken
}

// join creates the contender's node and returns what the contender sees of the line, if that is known by then. The first contender of
// its session lists the line with the create, unless it is likely to prove that it is alone. Others will most likely be behind a local
// waiter and need no list.
func (c *Contender) join(ctx context.Context, data []byte) (v view, err error) {
	l := c.line
	only := c.siblings.announce()
	created, err := c.s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: l.dir, Name: string(l.filter.Kind), Data: data, List: l.onWait != nil || only && !l.hint.isLikely(),
	})
	if err != nil {
		c.siblings.joinFailed()
		return view{}, err
	}
	c.node = created.Nodes[0]
	_, name := framework.Split(c.node.Path)
	c.local.position, _ = ParsePosition(name)
	c.siblings.add(&c.local)
	if l.hint.proves(c.s.ID(), c.local.position, c.node.Zxid) {
		v.joined = true
	} else if v, err = viewFrom(created.Names, l.filter, c.local.position); err != nil {
		return view{}, err
	}
	c.isGranted(v)
	return v, nil
}

// isGranted reports whether the contender is granted, by what it sees or by what the local waiters know.
func (c *Contender) isGranted(v view) bool {
	if v.joined && v.blockers == 0 {
		c.siblings.grant(&c.local, v.ahead == 0)
	}
	return c.siblings.stateOf(&c.local) == granted
}

// list lists the line. It fails with ErrPlaceLost when the list does not show the contender's own node.
func (c *Contender) list(ctx context.Context) (view, error) {
	names, err := c.siblings.lists.list(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return view{}, err
	}
	v, err := viewFrom(names, c.line.filter, c.local.position)
	if err == nil && !v.joined {
		err = ErrPlaceLost
	}
	return v, err
}

// waitForGrant waits until no contender is before this one that it must wait for.
//
// Right behind a contender of the same session, it waits for that one's wake-up. Otherwise it watches its predecessor and its second
// predecessor. When the second one is gone, it lists once while the predecessor still holds, and so off the critical path. If that list
// shows the predecessor alone, the event of that node's deletion grants. New contenders can only join behind, or take the number of a
// writer. So nodes ahead only vanish, and a server that lags shows too many.
func (c *Contender) waitForGrant(ctx context.Context, v view) error {
	if c.siblings.stateOf(&c.local) == granted {
		return nil
	}
	var predecessor, second watchedNode
	defer predecessor.stop()
	defer second.stop()
	for {
		switch c.siblings.stateOf(&c.local) {
		case granted:
			return nil
		case behindLocal:
			predecessor.stop()
			second.stop()
			v = view{}
		case mustWatch:
			if !v.joined {
				var err error
				if v, err = c.list(ctx); err != nil {
					return err
				}
				continue
			}
			if c.isGranted(v) {
				continue
			}
			c.watchPredecessors(v, &predecessor, &second)
		}
		deleted, err := c.waitForEvent(ctx, &predecessor, &second)
		if err != nil {
			return err
		}
		if deleted && v.blockers == 1 && !c.mayBeReplaced(v.predecessor) {
			c.siblings.grant(&c.local, !c.local.position.Kind.IsShared())
		}
		v = view{}
	}
}

// waitForEvent waits until one of the watches fires or a local waiter wakes the contender. It reports whether the predecessor's node was
// deleted.
func (c *Contender) waitForEvent(ctx context.Context, predecessor, second *watchedNode) (deleted bool, err error) {
	from := recipe.Sources{Watch: predecessor.w, Second: second.w, Signal: c.local.wakeups}
	source, event, err := recipe.WaitForFirst(ctx, c.s.Context(), from)
	switch source {
	case recipe.Watch:
		predecessor.stop()
		return event.Kind == framework.NodeDeleted, event.Err
	case recipe.Second:
		second.stop()
		return false, event.Err
	}
	return false, err
}

// mayBeReplaced reports whether another contender that this one must wait for may take p's number: a reader takes that of a writer.
func (c *Contender) mayBeReplaced(p Position) bool {
	return p.Kind.mayBeDowngraded() && !c.local.position.Kind.IsShared()
}

// watchPredecessors watches the predecessor and the second one, unless it watches them already. It skips the second where the end of the
// predecessor grants, or makes the contender list again.
func (c *Contender) watchPredecessors(v view, predecessor, second *watchedNode) {
	paths := make([]string, 0, 2)
	nodes := make([]*watchedNode, 0, 2)
	watch := func(n *watchedNode, name string) {
		if n.w != nil && n.name == name {
			return
		}
		n.stop()
		n.name = name
		nodes, paths = append(nodes, n), append(paths, framework.Join(c.line.dir, name))
	}
	watch(predecessor, v.predecessor.Name)
	if v.blockers == 1 || c.mayBeReplaced(v.predecessor) {
		second.stop()
	} else {
		watch(second, v.secondPredecessor.Name)
	}
	for i, w := range c.s.Primitives().WatchNodes(paths...) { // in one round trip
		nodes[i].w = w
	}
}

// watchedNode is a node and its watch, which may be nil.
type watchedNode struct {
	name string
	w    *framework.Watch
}

func (n *watchedNode) stop() {
	if n.w != nil {
		n.w.Stop()
		n.w = nil
	}
}

// Leave deletes the contender's node in the background. Once the deletion is in the connection's queue, it wakes the local waiter behind
// and then calls queued, which may be nil. It does not call queued when the session ends before.
func (c *Contender) Leave(queued func()) *framework.Discarded {
	if queued == nil {
		return c.s.Primitives().Discard(c.WakeNext, c.node.Path)
	}
	return c.s.Primitives().Discard(func() {
		c.WakeNext()
		queued()
	}, c.node.Path)
}

// WakeNext takes the contender out of its session's local waiters and wakes the next one; only the first call counts. Callers use it by
// itself when their own transaction has deleted the contender's node.
func (c *Contender) WakeNext() {
	if c.siblings.remove(&c.local) {
		c.siblings.unshare()
	}
}

// abandon leaves the line, if the contender has come that far.
func (c *Contender) abandon() {
	if c.node.Path == "" {
		c.WakeNext()
		return
	}
	c.Leave(nil)
}

// RecordRelease remembers the transaction that deleted the holder's node, so that the next contender may prove that it is alone.
func (c *Contender) RecordRelease(zxid int64) {
	c.line.hint.recordRelease(c.s.ID(), c.local.position, zxid)
}

// Downgrade returns a reader with the number of a writer that holds, granted at once. Curator does the same (CURATOR-621). The
// transaction that creates the reader's node checks guard. Downgrade fails with ErrPlaceLost when the writer has left.
func (l *Line) Downgrade(ctx context.Context, writer *Contender, data []byte, guard framework.Op) (*Contender, error) {
	c := l.newContender(writer.s)
	c.local.position = Position{Kind: Read, Seq: writer.local.position.Seq}
	if !c.siblings.addDowngraded(&writer.local, &c.local) {
		c.siblings.unshare()
		return nil, ErrPlaceLost
	}
	created, err := c.s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: l.dir, Name: string(Read) + writer.local.position.sequenceDigits(), Data: data,
		Count: 1, Mode: framework.Ephemeral, With: []framework.Op{guard},
	})
	if err != nil {
		c.abandon()
		return nil, err
	}
	c.node = created.Nodes[0]
	return c, nil
}
