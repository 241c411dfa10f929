package waitline

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
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

// Contender is one node in a line.
type Contender struct {
	line     *Line
	s        *framework.Session
	node     primitives.Created // its Path is "" until the contender has joined
	siblings *localWaiters
	local    localWaiter
}

func (l *Line) newContender(s *framework.Session) *Contender {
	return &Contender{line: l, s: s, siblings: localWaitersOf(s, l.dir, l.key), local: localWaiter{wakeups: make(chan struct{}, 1)}}
}

// Node is the contender's node.
func (c *Contender) Node() primitives.Created { return c.node }

// Session is the session that the contender belongs to.
func (c *Contender) Session() *framework.Session { return c.s }

// Wait joins the line with a node that holds data, and waits until the contender is granted. It ends with ctx, with the session, or with
// ErrKindMixed or ErrPlaceLost. When it fails or panics, the contender's node is deleted in the background. waits, unless it is nil, is called
// with the node of a contender that is not granted at once.
func (l *Line) Wait(ctx context.Context, s *framework.Session, data []byte, waits func(primitives.Created)) (*Contender, error) {
	c := l.newContender(s)
	ok := false
	defer func() { // onWait may panic, or end the goroutine
		if !ok {
			c.leaveIfJoined()
		}
	}()
	v, err := c.joinLine(ctx, data)
	if err != nil {
		return nil, err
	}
	if l.onWait != nil {
		if !v.joined {
			if v, err = c.listLine(ctx); err != nil {
				return nil, err
			}
		}
		if !c.grantIfFree(v) {
			l.onWait(v.ahead)
		}
	}
	if waits != nil && c.siblings.stateOf(&c.local) != granted {
		waits(c.node)
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
	v, err := c.joinLine(ctx, data)
	if err == nil && !v.joined && c.siblings.stateOf(&c.local) != granted {
		v, err = c.listLine(ctx) // a reader right behind another of this session may be granted before that one knows
	}
	if err == nil && !c.grantIfFree(v) {
		err = ErrNotAcquired
	}
	if err != nil {
		c.leaveIfJoined()
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

// joinLine creates the contender's node and returns what the contender sees of the line, if the line was listed. The first contender of
// its session lists the line with the create, unless it is likely to prove that it is alone. Others will most likely be behind a local
// waiter and need no list.
func (c *Contender) joinLine(ctx context.Context, data []byte) (v lineView, err error) {
	l := c.line
	if ctx.Err() == nil {
		c.s.Primitives().StayAwake() // it may be granted at once, and a line may move fast
		defer c.s.Primitives().MaySleep()
	}
	only := c.siblings.announceJoin()
	created, err := c.s.Primitives().CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: l.dir, Name: string(l.filter.Kind), Data: data, List: l.onWait != nil || only && !l.hint.isLikely(),
	})
	if err != nil {
		c.siblings.joinFailed()
		return lineView{}, err
	}
	c.node = created.Nodes[0]
	_, name := znode.Split(c.node.Path)
	c.local.position, _ = ParsePosition(name)
	c.siblings.addWaiter(&c.local)
	if l.hint.provesAlone(c.s.ID(), c.local.position, c.node.Zxid) {
		v.joined = true
	} else if v, err = viewFrom(created.Names, l.filter, c.local.position); err != nil {
		return lineView{}, err
	}
	c.grantIfFree(v)
	return v, nil
}

// grantIfFree grants the contender if its view shows no blocker. It reports whether the contender is granted now, perhaps by a local waiter.
func (c *Contender) grantIfFree(v lineView) bool {
	if v.joined && v.blockers == 0 {
		c.siblings.markGranted(&c.local, v.ahead == 0)
	}
	return c.siblings.stateOf(&c.local) == granted
}

// listLine lists the line. It fails with ErrPlaceLost when the list does not show the contender's own node.
func (c *Contender) listLine(ctx context.Context) (lineView, error) {
	names, err := c.siblings.lists.listChildren(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return lineView{}, err
	}
	v, err := viewFrom(names, c.line.filter, c.local.position)
	if err == nil && !v.joined {
		err = ErrPlaceLost
	}
	return v, err
}

// waitForGrant waits until no contender blocks this one.
//
// Right behind a contender of the same session, it waits for that one's wake-up. Otherwise it watches its predecessor and its second
// predecessor. When the second one is gone, it lists once while the predecessor still holds, and so off the critical path. If that list
// shows the predecessor alone, the event of that node's deletion grants. New contenders can only join behind, or take the number of a
// writer. So nodes ahead only vanish, and a server that lags shows too many.
func (c *Contender) waitForGrant(ctx context.Context, v lineView) error {
	if c.siblings.stateOf(&c.local) == granted {
		return nil
	}
	var predecessor, second watchedNode
	defer predecessor.stopWatch()
	defer second.stopWatch()
	next := false
	var linked <-chan struct{}
	defer func() {
		if next {
			c.s.Primitives().MaySleep()
		}
		if linked != nil {
			<-linked
		}
	}()
	for {
		switch c.siblings.stateOf(&c.local) {
		case granted:
			return nil
		case behindLocal:
			predecessor.stopWatch()
			second.stopWatch()
			v = lineView{}
			if before := c.siblings.nameBefore(&c.local); linked == nil && before != "" {
				linked = linkToNodes(ctx, c.s, znode.Join(c.line.dir, before))
			}
		case mustWatch:
			if !v.joined {
				var err error
				if v, err = c.listLine(ctx); err != nil {
					return err
				}
				continue
			}
			if c.grantIfFree(v) {
				continue
			}
			if v.blockers == 1 && !next { // others sleep, so that a long line costs the servers nothing
				next = true
				c.s.Primitives().StayAwake()
			}
			if linked == nil {
				linked = linkToNodes(ctx, c.s, znode.Join(c.line.dir, v.first.Name), znode.Join(c.line.dir, v.predecessor.Name))
			}
			c.watchPredecessors(v, &predecessor, &second)
		}
		deleted, err := c.waitForEvent(ctx, &predecessor, &second)
		if err != nil {
			return err
		}
		if deleted && v.blockers == 1 && !c.mayBeReplaced(v.predecessor) {
			c.siblings.markGranted(&c.local, !c.local.position.Kind.IsShared())
		}
		v = lineView{}
	}
}

// waitForEvent waits until one of the watches fires or a local waiter wakes the contender. It reports whether the predecessor's node was
// deleted.
func (c *Contender) waitForEvent(ctx context.Context, predecessor, second *watchedNode) (deleted bool, err error) {
	from := recipe.Sources{Watch: predecessor.w, Second: second.w, Signal: c.local.wakeups}
	source, event, err := recipe.WaitForFirst(ctx, c.s.Context(), from)
	switch source {
	case recipe.Watch:
		predecessor.stopWatch()
		return event.Kind == framework.NodeDeleted, event.Err
	case recipe.Second:
		second.stopWatch()
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
func (c *Contender) watchPredecessors(v lineView, predecessor, second *watchedNode) {
	paths := make([]string, 0, 2)
	nodes := make([]*watchedNode, 0, 2)
	watch := func(n *watchedNode, name string) {
		if n.w != nil && n.name == name {
			return
		}
		n.stopWatch()
		n.name = name
		nodes, paths = append(nodes, n), append(paths, znode.Join(c.line.dir, name))
	}
	watch(predecessor, v.predecessor.Name)
	if v.blockers == 1 || c.mayBeReplaced(v.predecessor) {
		second.stopWatch()
	} else {
		watch(second, v.secondPredecessor.Name)
	}
	for i, w := range c.s.WatchNodes(paths...) { // in one round trip
		nodes[i].w = w
	}
}

// watchedNode is a node and its watch, which may be nil.
type watchedNode struct {
	name string
	w    *framework.Watch
}

func (n *watchedNode) stopWatch() {
	if n.w != nil {
		n.w.Stop()
		n.w = nil
	}
}

// Leave deletes the contender's node in the background. Once the deletion is in the connection's queue, it wakes the local waiter behind
// and then calls queued, which may be nil. It does not call queued when the session ends before.
func (c *Contender) Leave(queued func()) primitives.Discarded {
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
	if c.siblings.removeWaiter(&c.local) {
		c.siblings.releaseShared()
	}
}

// leaveIfJoined leaves the line, or only the local waiters if the contender has no node.
func (c *Contender) leaveIfJoined() {
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
		c.siblings.releaseShared()
		return nil, ErrPlaceLost
	}
	created, err := c.s.Primitives().CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: l.dir, Name: string(Read) + writer.local.position.sequenceDigits(), Data: data,
		Unnumbered: true, With: []framework.Op{guard},
	})
	if err != nil {
		c.leaveIfJoined()
		return nil, err
	}
	c.node = created.Nodes[0]
	return c, nil
}
