package waitline

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Line is a waiting line in one directory. It is safe for concurrent use. Several Lines may share a
// directory.
//
// The algorithm is the lock recipe of ZooKeeper's documentation, which has no herd effect. In
// addition, a contender is created as Curator's protected create does it, and watches two
// predecessors: see waitForGrant.
type Line struct {
	dir    string
	filter Filter
	key    any             // of the line's local contenders among the shared values of a session
	onWait func(ahead int) // may be nil
	hint   uncontendedHint
}

// New returns a line in a directory. It creates no node. The line calls onWait, unless it is nil,
// when a wait begins, with the number of contenders ahead.
func New(dir string, filter Filter, onWait func(ahead int)) *Line {
	return &Line{dir: dir, filter: filter, key: localContendersKey{dir, filter.Kind.Family()}, onWait: onWait}
}

// Dir is the line's directory.
func (l *Line) Dir() string { return l.dir }

// Kind is the kind of the line's contenders.
func (l *Line) Kind() Kind { return l.filter.Kind }

// Contender is one place in a line: a node, and its position among the contenders of the same
// session.
type Contender struct {
	line            *Line
	s               *framework.Session
	node            primitives.Created // its Path is "" until the contender has joined
	localContenders *localContenders   // the contenders of the same session, this one included
	local           localContender
}

func (l *Line) newContender(s *framework.Session) *Contender {
	return &Contender{line: l, s: s, localContenders: localContendersOf(s, l.dir, l.key),
		local: localContender{wakeups: make(chan struct{}, 1)}}
}

// Node is the contender's node.
func (c *Contender) Node() primitives.Created { return c.node }

// Session is the session that the contender belongs to.
func (c *Contender) Session() *framework.Session { return c.s }

// Wait joins the line with a node that holds data, and waits until the contender is granted. If the
// contender is not granted at once, Wait calls w.Queued with the contender's node.
//
// Wait fails with failure.Ended(ctx), with the cause of the session's end, with ErrKindMixed or
// ErrPlaceLost, or when the servers refuse a request. When it fails or panics, it deletes the
// contender's node in the background.
func (l *Line) Wait(ctx context.Context, s *framework.Session, data []byte, w *Wait) (*Contender, error) {
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
		if !v.known {
			if v, err = c.listLine(ctx); err != nil {
				return nil, err
			}
		}
		if !c.grantIfFree(v) {
			l.onWait(v.ahead)
		}
	}
	if w.Queued != nil && c.localContenders.stateOf(&c.local) != granted {
		w.Queued(c.node)
	}
	if err := c.waitForGrant(ctx, v, w); err != nil {
		return nil, err
	}
	ok = true
	return c, nil
}

// Try returns a contender that is granted at once, or fails with ErrNotAcquired. When it fails, it
// deletes the node that it may have created in the background. It waits for the servers' answers
// until ctx ends. Before it believes that others are in line, it brings its server up to date. Its
// other errors are those of Wait.
func (l *Line) Try(ctx context.Context, s *framework.Session, data []byte) (*Contender, error) {
	err := l.checkVacant(ctx, s)
	if errors.Is(err, ErrNotAcquired) { // the server may lag: a Release may have returned before this call
		if err := primitives.Of(s).SyncForWatch(ctx, l.dir, false); err != nil {
			return nil, err
		}
		err = l.checkVacant(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	c := l.newContender(s)
	v, err := c.joinLine(ctx, data)
	if err == nil && !v.known && c.localContenders.stateOf(&c.local) != granted {
		// The local contender right before this one may not have listed yet; this one's own list
		// shows whether it is free.
		v, err = c.listLine(ctx)
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

// checkVacant lists the line, and returns ErrNotAcquired if a new contender would have to wait.
func (l *Line) checkVacant(ctx context.Context, s *framework.Session) error {
	names, _, err := s.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	var blocked error
	err = l.filter.forEach(names, func(p Position) {
		if !p.Kind.IsShared() || !l.filter.Kind.IsShared() {
			blocked = ErrNotAcquired
		}
	})
	if err != nil {
		return err
	}
	return blocked
}

// joinLine creates the contender's node and returns its view of the line. If it has no list, the
// view is not known.
//
// The only contender of its session requests a list with the create, unless its uncontendedHint is
// likely to prove that it is alone in line. Other contenders will most likely be right behind a
// local contender and need no list. With onWait every contender requests a list, to count the
// contenders ahead.
func (c *Contender) joinLine(ctx context.Context, data []byte) (v lineView, err error) {
	l := c.line
	if ctx.Err() == nil {
		primitives.Of(c.s).BeginJoin()
		defer primitives.Of(c.s).EndJoin()
	}
	only := c.localContenders.announceJoin()
	created, err := primitives.Of(c.s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: l.dir, Name: string(l.filter.Kind), Data: data, List: l.onWait != nil || only && !l.hint.isLikely(),
	})
	if err != nil {
		c.localContenders.joinFailed()
		return lineView{}, err
	}
	c.node = created.Nodes[0]
	_, name := znode.Split(c.node.Path)
	c.local.position, _ = ParsePosition(name)
	c.local.zxid = c.node.Zxid
	c.localContenders.addContender(&c.local)
	if l.hint.provesAlone(c.s.ID(), c.local.position, c.node.Zxid) {
		v.known = true
	} else if v, err = viewFrom(created.Names, l.filter, c.local.position); err != nil {
		return lineView{}, err
	}
	c.grantIfFree(v)
	return v, nil
}

// grantIfFree grants the contender if its view shows no blocker. It reports whether the contender
// is granted now; a local contender may have granted it.
func (c *Contender) grantIfFree(v lineView) bool {
	if v.known && v.blockers == 0 {
		c.localContenders.markGranted(&c.local, v.ahead == 0)
	}
	return c.localContenders.stateOf(&c.local) == granted
}

// listLine lists the line. If the list does not have the contender's own node, listLine unlinks the
// contender and fails with ErrPlaceLost.
func (c *Contender) listLine(ctx context.Context) (lineView, error) {
	names, err := c.localContenders.lists.listChildren(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return lineView{}, err
	}
	v, err := viewFrom(names, c.line.filter, c.local.position)
	if err == nil && !v.known {
		c.Unlink()
		err = ErrPlaceLost
	}
	return v, err
}

// waitForGrant waits until no contender blocks this one.
//
// Right behind a contender of the same session, it waits until that contender wakes it. Otherwise
// it watches the last two contenders that block it: the predecessor, and the second predecessor
// before that.
//
// When the second predecessor is gone, it lists the line while the predecessor still holds, so that
// this list delays no grant. If the predecessor is then the only one that blocks it, the event of
// that node's deletion is the grant, without another list. This is safe because new contenders can
// only join behind, or take the number of a writer that blocks already (mayBeReplaced).
//
// After a reconnect it watches the same nodes again and lists nothing: a node that is gone by then
// has the event NodeDeleted. If each waiter of a long line listed it when a server was lost, the
// servers would have to send as many names as the square of the line's length
// (docs/adr/0101-a-reconnect-lists-no-line.md).
func (c *Contender) waitForGrant(ctx context.Context, v lineView, w *Wait) error {
	if c.localContenders.stateOf(&c.local) == granted {
		return nil
	}
	var predecessor, second watchedNode
	defer predecessor.stopWatch()
	defer second.stopWatch()
	keepsAwake := false
	var linksRead <-chan struct{}
	defer func() {
		if keepsAwake {
			primitives.Of(c.s).MaySleep()
		}
		if linksRead != nil {
			<-linksRead
		}
	}()
	for {
		switch c.localContenders.stateOf(&c.local) {
		case granted:
			return nil
		case behindLocal:
			predecessor.stopWatch()
			second.stopWatch()
			v = lineView{}
			if before := c.localContenders.nameBefore(&c.local); linksRead == nil && before != "" {
				linksRead = w.linkToNodes(ctx, c.s, znode.Join(c.line.dir, before))
			}
		case mustWatch:
			if !v.known {
				var err error
				if v, err = c.listLine(ctx); err != nil {
					return err
				}
				continue
			}
			if c.grantIfFree(v) {
				continue
			}
			if v.blockers == 1 && !keepsAwake {
				// the sessions of other waiters may sleep, so that a long line costs the servers no
				// heartbeats
				keepsAwake = true
				primitives.Of(c.s).StayAwake()
			}
			if linksRead == nil {
				linksRead = w.linkToNodes(ctx, c.s, znode.Join(c.line.dir, v.first.Name),
					znode.Join(c.line.dir, v.predecessor.Name))
			}
			c.watchPredecessors(v, &predecessor, &second)
		}
		event, err := c.waitForEvent(ctx, &predecessor, &second)
		if err != nil {
			return err
		}
		if event == framework.Reconnected {
			continue
		}
		if event == framework.NodeDeleted && v.blockers == 1 && !c.mayBeReplaced(v.predecessor) {
			c.localContenders.markGranted(&c.local, !c.local.position.Kind.IsShared())
		}
		v = lineView{}
	}
}

// waitForEvent waits until a watch fires or a local contender wakes the contender, and stops the
// watch that has fired. It returns the event of the predecessor's watch, or 0 if something else has
// ended the wait. After a reconnect it stops both watches and returns Reconnected.
func (c *Contender) waitForEvent(
	ctx context.Context, predecessor, second *watchedNode,
) (kind framework.EventKind, err error) {
	from := recipe.Sources{Watch: predecessor.w, SecondWatch: second.w, Signal: c.local.wakeups}
	source, event, err := recipe.WaitForFirst(ctx, c.s.Context(), from)
	switch {
	case event.Kind == framework.Reconnected:
		predecessor.stopWatch()
		second.stopWatch()
		return event.Kind, nil
	case source == recipe.FromWatch:
		predecessor.stopWatch()
		return event.Kind, c.watchAgain(ctx, predecessor, event.Err)
	case source == recipe.FromSecondWatch:
		second.stopWatch()
		return 0, c.watchAgain(ctx, second, event.Err)
	}
	return 0, err
}

// watchAgain watches a node whose watch the servers have not set for this reason, unless it is nil.
// The session has sent the request of watchPredecessors only once. It repeats this one while the
// servers throttle it, so that the contender keeps its place in line. watchAgain returns the error
// of a permanent refusal.
func (c *Contender) watchAgain(ctx context.Context, n *watchedNode, notSet error) (err error) {
	if notSet == nil {
		return nil
	}
	_, _, n.w, err = c.s.WatchData(ctx, znode.Join(c.line.dir, n.name))
	if errors.Is(err, framework.ErrNoNode) { // the next list shows it
		return nil
	}
	return err
}

// mayBeReplaced reports whether another contender that blocks this one may take p's number: when a
// writer downgrades, its reader takes its number.
func (c *Contender) mayBeReplaced(p Position) bool {
	return p.Kind.mayBeDowngraded() && !c.local.position.Kind.IsShared()
}

// watchPredecessors watches the predecessor and the second predecessor, unless it watches them
// already. It does not watch the second predecessor if the deletion of the predecessor grants, or
// makes the contender list again.
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

// watchedNode is a node and its watch, or nil while there is none.
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

// Leave deletes the contender's node in the background. Once the deletion is in the connection's
// queue, it wakes the next local contender and then calls queued, unless that is nil. If the
// session ends before, it does not call queued.
func (c *Contender) Leave(queued func()) primitives.Discarded {
	c.BeginLeave()
	if queued == nil {
		return primitives.Of(c.s).Discard(c.WakeNext, c.node.Path)
	}
	return primitives.Of(c.s).Discard(func() {
		c.WakeNext()
		queued()
	}, c.node.Path)
}

// BeginLeave links no later contender of the session to this one. Leave calls it; a caller calls it
// before it sends its own transaction that deletes the contender's node.
func (c *Contender) BeginLeave() { c.localContenders.beginLeave(&c.local) }

// WakeNext takes the contender out of its session's local contenders and wakes the next one. Only
// the first call counts. Leave calls it; a caller that has deleted the contender's node in its own
// transaction calls it instead of Leave.
func (c *Contender) WakeNext() {
	if c.localContenders.removeContender(&c.local) {
		c.localContenders.releaseShared()
	}
}

// Unlink breaks the link to the next local contender, so that no Leave grants that contender: it
// lists the line and waits its turn. Call Unlink before leaving if another client has deleted the
// contender's node, or may have deleted it unnoticed. If an operator has deleted the whole
// directory, the numbers begin again, and other contenders may stand between two consecutive
// numbers.
func (c *Contender) Unlink() { c.localContenders.unlinkContender(&c.local) }

// leaveIfJoined leaves the line. If the contender has no node, it only leaves the local contenders.
func (c *Contender) leaveIfJoined() {
	if c.node.Path == "" {
		c.WakeNext()
		return
	}
	c.Leave(nil)
}

// lineView is what one contender sees of the line.
type lineView struct {
	// a list has shown the contender's own node, or the contender is proven to be alone; otherwise
	// the other fields mean nothing
	known    bool
	ahead    int // the number of contenders before it
	blockers int // how many of them block it

	first             Position // the first blocker
	predecessor       Position // the last blocker
	secondPredecessor Position // the blocker before the last
}

// viewFrom returns what the contender at a position sees in a list of names. It does not sort the
// names, since lists may be long. It fails with ErrKindMixed if the kinds are mixed.
func viewFrom(names []string, f Filter, from Position) (v lineView, err error) {
	err = f.forEach(names, func(p Position) {
		if p.Name == from.Name {
			v.known = true
		}
		if p.IsBefore(from) {
			v.ahead++
		}
		if p.Blocks(from) {
			v.addBlocker(p)
		}
	})
	if err != nil { // the view is not complete
		return lineView{}, err
	}
	return v, nil
}

func (v *lineView) addBlocker(p Position) {
	v.blockers++
	if v.blockers == 1 || p.IsBefore(v.first) {
		v.first = p
	}
	switch {
	case v.blockers == 1 || v.predecessor.IsBefore(p):
		v.predecessor, v.secondPredecessor = p, v.predecessor
	case v.blockers == 2 || v.secondPredecessor.IsBefore(p):
		v.secondPredecessor = p
	}
}
