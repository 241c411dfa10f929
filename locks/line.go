package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Line is a waiting line: ephemeral sequential nodes below one directory, served in the order of their
// numbers. It is what mutexes and elections are made of.
//
// The algorithm is the lock recipe of ZooKeeper's documentation, without its herd, with Curator's
// protected create, and with a look ahead (see contender.turn).
type Line struct {
	client *framework.Client
	name   string // the lock's path
	path   string // the line's directory: the same, but for a semaphore's
	kindFilter
	data        []byte
	queued      func(ahead int)
	label       string // what telemetry calls the lock
	maxHold     time.Duration
	reentry     bool
	onWrite     bool // a release returns once it is written
	tel         telemetry
	uncontended uncontendedHint
	slice       *localSlice // of WithLocalHandoff, or nil
	err         error       // of the arguments
}

// NewLine returns a line at path. Nothing is created before the first Acquire. An argument that
// cannot be used makes every call return an error that says so.
func NewLine(client *framework.Client, path string, kind Kind, opts ...Option) *Line {
	l := newLine(client, path, "", kind, opts...)
	l.rejectOption(l.slice != nil, "WithLocalHandoff is for mutexes")
	l.rejectOption(l.kazoo && kind == LatchKind, "WithKazoo is for mutexes and read-write locks")
	return l
}

// rejectOption refuses an option that this kind of lock has no use for.
func (l *Line) rejectOption(given bool, reason string) {
	if given && l.err == nil {
		l.err = errors.New(reason)
	}
}

// newLine returns a line in a directory below path, or at path.
func newLine(client *framework.Client, path, below string, kind Kind, opts ...Option) *Line {
	l := &Line{client: client, name: path, path: path, kindFilter: kindFilter{kind: kind}, label: labels[kind]}
	if l.err = l.checkArguments(); l.err == nil {
		l.tel = newTelemetry(client)
		if below != "" {
			l.path = framework.Join(path, below)
		}
	}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(l); err != nil && l.err == nil {
			l.err = err
		}
	}
	return l
}

func (l *Line) checkArguments() error {
	if l.client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(l.path); err != nil {
		return err
	}
	if !slices.Contains(ownKinds, l.kind) {
		return fmt.Errorf("a line of kind %q: the kinds are %q", l.kind, ownKinds)
	}
	if l.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a lock", framework.ErrInvalidPath, l.path)
	}
	full := framework.Join(l.client.Config().Root, strings.TrimPrefix(l.path, "/"))
	if full == serversOwn || strings.HasPrefix(full, serversOwn+"/") {
		return fmt.Errorf("%w %q: what lies below %s belongs to the servers", framework.ErrInvalidPath, l.path, serversOwn)
	}
	return nil
}

// serversOwn is where the servers keep their configuration and quotas.
const serversOwn = "/zookeeper"

// Path is the line's directory.
func (l *Line) Path() string { return l.path }

// Acquire waits in line until it is granted. A suspended connection keeps its place; a lost session
// makes it queue again, at the end. Its errors: that of ctx, when that ended the wait; one that wraps
// framework.ErrClosed or framework.ErrNoAuth; ErrKindMixed; ErrHeld or ErrUpgrade. No node is left
// behind then.
func (l *Line) Acquire(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "acquire", l.waitOnSession)
}

// TryAcquire is granted at once or returns an error that wraps ErrNotAcquired. It waits for a session,
// though, and for the servers' answers, until ctx ends.
func (l *Line) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.acquire(ctx, "try", l.tryOnSession)
}

// acquireFunc is one way to be granted on a session.
type acquireFunc func(context.Context, *framework.Session) (*Lease, error)

// acquire asks for a lease, under the one that ctx belongs to if there is one.
func (l *Line) acquire(ctx context.Context, op string, grant acquireFunc) (lease *Lease, err error) {
	if l.err != nil {
		return nil, framework.Wrap(op, l.name, l.err)
	}
	ctx, end := l.startSpan(ctx, op)
	defer func() { end(lease, err) }()
	if outer := leaseFromContext(ctx, l); outer != nil {
		lease, err = l.acquireNested(ctx, outer)
		return lease, framework.Wrap(op, l.name, err)
	}
	return l.acquireOnSessions(ctx, op, grant)
}

// acquireOnSessions asks on session after session.
func (l *Line) acquireOnSessions(ctx context.Context, op string, grant acquireFunc) (*Lease, error) {
	lost := lossPauses{retries: l.client.Backoff()}
	for {
		began := time.Now()
		s, err := l.client.Session(ctx)
		if err != nil {
			return nil, framework.Wrap(op, l.name, err)
		}
		lease, err := grant(ctx, s)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			err = framework.Ended(ctx)
		case errors.Is(err, framework.ErrSessionLost):
			continue
		case errors.Is(err, errPlaceLost):
			if lost.wait(ctx, began) == nil {
				continue
			}
			err = framework.Ended(ctx)
		}
		return nil, framework.Wrap(op, l.name, err)
	}
}

// lossPauses are the pauses before an ask is repeated that has lost its place, or a lease that it was granted. The first loss of a series is repeated at
// once, such as that of a candidate that a transfer has passed over. Later ones wait: somebody goes on deleting nodes.
type lossPauses struct {
	retries *framework.Backoff
	losses  int // of the series
}

// placeLossWindow is how long an ask must have lasted for its loss to begin a new series.
const placeLossWindow = 10 * time.Second

// wait waits before the ask is repeated that began at this time. It returns an error when ctx ends first.
func (p *lossPauses) wait(ctx context.Context, began time.Time) error {
	if time.Since(began) > placeLossWindow {
		p.losses = 0
		p.retries.Reset()
	}
	if p.losses++; p.losses == 1 {
		return nil
	}
	return p.retries.Pause(ctx)
}

// errPlaceLost says that somebody deleted a waiter's node.
var errPlaceLost = errors.New("the waiter's node was deleted")

// waitOnSession joins the line, waits for its turn and takes the lease.
func (l *Line) waitOnSession(ctx context.Context, s *framework.Session) (*Lease, error) {
	return l.grantAdmitted(ctx, s, l.joinAndWait, l.newLeaseIfSessionStands)
}

// tryOnSession takes the lease if nobody is there that it would have to wait for.
func (l *Line) tryOnSession(ctx context.Context, s *framework.Session) (*Lease, error) {
	return l.grantAdmitted(ctx, s, l.joinIfFree, l.newLeaseIfSessionStands)
}

// grantAdmitted takes what a contender may take once it has passed. A contender that fails leaves no
// node behind.
func (l *Line) grantAdmitted(ctx context.Context, s *framework.Session,
	pass func(context.Context, *contender) error, take func(context.Context, *contender) (*Lease, error)) (*Lease, error) {
	c := newContender(l, s)
	granted := false
	defer func() { // whatever happens, be it a panic of the user's function
		if !granted {
			c.abandon()
		}
	}()
	if err := pass(ctx, c); err != nil {
		return nil, err
	}
	lease, err := take(ctx, c)
	granted = err == nil
	return lease, err
}

// joinAndWait joins the line and waits for the contender's turn.
func (l *Line) joinAndWait(ctx context.Context, c *contender) error {
	v, err := c.join(ctx)
	if err == nil && l.queued != nil {
		v, err = c.callOnWait(ctx, v)
	}
	if err != nil {
		return err
	}
	return c.waitForGrant(ctx, v)
}

// joinIfFree joins the line if it will not have to wait.
func (l *Line) joinIfFree(ctx context.Context, c *contender) error {
	names, _, err := c.s.Children(ctx, l.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if err := l.checkVacant(names); err != nil {
		return err
	}
	v, err := c.join(ctx)
	if err == nil && !v.mine && c.local.waitStateOf(c) != passed {
		v, err = c.listLine(ctx) // a reader right behind another of its local waiters may pass before that one knows
	}
	if err == nil && !c.hasPassed(v) {
		err = ErrNotAcquired
	}
	return err
}

// checkVacant tells with ErrNotAcquired that there is somebody whom a newcomer would have to wait for.
func (l *Line) checkVacant(names []string) error {
	var taken error
	err := forEachContender(names, l.kindFilter, func(p position) {
		if !p.kind.isShared() || !l.kind.isShared() {
			taken = ErrNotAcquired
		}
	})
	if err != nil {
		return err
	}
	return taken
}

// newLeaseIfSessionStands makes the lease, if the session still stands.
func (l *Line) newLeaseIfSessionStands(ctx context.Context, c *contender) (*Lease, error) {
	return l.newLease(ctx, c, c.node.Zxid)
}

func (l *Line) newLease(ctx context.Context, c *contender, token int64) (*Lease, error) {
	lease := &Lease{path: l.name, kind: l.kind, node: c.node.Path, token: token, session: c.s, key: heldKey{l.client, l.path},
		contender: c, back: c.deleteNode}
	if err := lease.standWithHold(ctx, c.node.Path); err != nil {
		return nil, err
	}
	return lease.startTimers(l.maxHold), nil
}

// discardNodes gives nodes back. queued is called once their deletion is in the connection's queue; may be
// nil.
func (l *Line) discardNodes(s *framework.Session, early bool, queued func(), nodes ...string) (releaseProgress, *framework.Discarded) {
	return l.discardAndReport(early, queued, func(queued func()) *framework.Discarded { return s.Primitives().Discard(queued, nodes...) })
}

// discardAndReport gives back by discard, and has it told when that is in the connection's queue, if anybody is to
// wait for it.
func (l *Line) discardAndReport(early bool, queued func(), discard func(queued func()) *framework.Discarded) (releaseProgress, *framework.Discarded) {
	if !l.onWrite && !early {
		d := discard(queued)
		return releaseProgress{gone: d.Done()}, d
	}
	written := make(chan struct{})
	d := discard(func() {
		if queued != nil {
			queued()
		}
		close(written)
	})
	return releaseProgress{written: written, gone: d.Done()}, d
}

// contender is one node in the line.
type contender struct {
	line  *Line
	s     *framework.Session
	local *localWaiters
	node  framework.Created
	place position

	stirred chan struct{} // has room for one

	// Guarded by row.mu.
	prev, next *contender // those of the local waiters with consecutive numbers
	admitted   bool       // nobody is before it that it must wait for
	cleared    bool       // nobody is before it
	left       bool
}

func newContender(l *Line, s *framework.Session) *contender {
	return &contender{line: l, s: s, local: localWaitersOf(s, l), stirred: make(chan struct{}, 1)}
}

// join creates the contender's node and returns what it sees of the line; a view without the
// contender is none.
func (c *contender) join(ctx context.Context) (v lineView, err error) {
	first := c.local.announce()
	defer func() {
		c.local.addContender(c)
		c.hasPassed(v)
	}()
	names, err := c.create(ctx, c.line.ownerRecord(ctx), first)
	if err != nil {
		return lineView{}, err
	}
	_, name := framework.Split(c.node.Path)
	c.place, _ = parsePosition(name)
	if c.line.uncontended.isProven(c) {
		return lineView{mine: true}, nil
	}
	return viewFrom(names, c.line.kindFilter, c.place)
}

// create creates the node. The first of its local waiters has the line listed on the way, unless that is likely to
// be needless; who is not the first will most likely stand behind another one.
func (c *contender) create(ctx context.Context, data []byte, first bool) (names []string, err error) {
	l := c.line
	created, err := c.s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: l.path, Name: string(l.kind), Data: data, List: l.queued != nil || first && !l.uncontended.isLikely(),
	})
	if err != nil {
		return nil, err
	}
	c.node = created.Nodes[0]
	return created.Names, nil
}

// hasPassed reports whether the contender has passed, by what it sees or what its local waiters knows.
func (c *contender) hasPassed(v lineView) bool {
	if v.mine && v.blockers == 0 {
		c.local.markPassed(c, v.ahead == 0)
	}
	return c.local.waitStateOf(c) == passed
}

// callOnWait tells the user's function that the wait begins.
func (c *contender) callOnWait(ctx context.Context, v lineView) (lineView, error) {
	if !v.mine {
		var err error
		if v, err = c.listLine(ctx); err != nil {
			return v, err
		}
	}
	if !c.hasPassed(v) {
		c.line.queued(v.ahead)
	}
	return v, nil
}

// listLine lists the line. A contender that is not in it was deleted by somebody.
func (c *contender) listLine(ctx context.Context) (lineView, error) {
	names, err := c.local.listOnce(ctx)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return lineView{}, err
	}
	v, err := viewFrom(names, c.line.kindFilter, c.place)
	if err == nil && !v.mine {
		err = errPlaceLost
	}
	return v, err
}

// waitForGrant waits until nobody is before the contender that it must wait for.
func (c *contender) waitForGrant(ctx context.Context, v lineView) error {
	var near, far watchedContender
	defer near.stopWatch()
	defer far.stopWatch()
	for {
		var err error
		switch c.local.waitStateOf(c) {
		case passed:
			return nil
		case behind:
			near.stopWatch()
			far.stopWatch()
			v, err = lineView{}, c.waitForWake(ctx)
		case leading:
			v, err = c.watchPredecessors(ctx, v, &near, &far)
		}
		if err != nil {
			return err
		}
	}
}

// waitForWake waits to be told by the one before.
func (c *contender) waitForWake(ctx context.Context) error {
	select {
	case <-c.stirred:
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-c.s.Done():
		return context.Cause(c.s.Context())
	}
}

// watchPredecessors makes one step of a contender that no other of its local waiters stands right before.
//
// It watches the last contender that it must wait for and the one before that. When the far one is gone it
// looks once, while the near one holds, and so off the critical path; if the look shows the near
// one alone, the event of that node's deletion grants. Nothing can be inserted before a contender
// but in the place of a writer, so nodes ahead only vanish, and a server that lags shows more
// of them, never fewer.
func (c *contender) watchPredecessors(ctx context.Context, v lineView, near, far *watchedContender) (lineView, error) {
	if !v.mine {
		return c.listLine(ctx)
	}
	if c.hasPassed(v) {
		return v, nil
	}
	gone, err := c.waitForPredecessorEvent(ctx, v, near, far)
	if gone && v.blockers == 1 && !c.placeMayBeTaken(v.near) {
		c.local.markPassed(c, !c.place.kind.isShared())
	}
	return lineView{}, err
}

// waitForPredecessorEvent waits until something has happened ahead, and reports whether it is the end of the near neighbour.
func (c *contender) waitForPredecessorEvent(ctx context.Context, v lineView, near, far *watchedContender) (gone bool, err error) {
	if v.blockers == 1 || c.placeMayBeTaken(v.near) {
		far.stopWatch()
		c.watchContenders([]*watchedContender{near}, []position{v.near})
	} else {
		c.watchContenders([]*watchedContender{near, far}, []position{v.near, v.far})
	}
	select {
	case e := <-near.eventChannel():
		near.stopWatch()
		return e.Kind == framework.NodeDeleted, e.Err
	case e := <-far.eventChannel():
		far.stopWatch()
		return false, e.Err
	case <-c.stirred:
		return false, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-c.s.Done():
		return false, context.Cause(c.s.Context())
	}
}

// placeMayBeTaken reports whether somebody else that the contender must wait for may take p's place. What takes a
// writer's place is a reader.
func (c *contender) placeMayBeTaken(p position) bool {
	return p.kind.mayBeDowngraded() && !c.place.kind.isShared()
}

// leaveLine deletes the contender's node in the background and tells the one behind.
func (c *contender) leaveLine() *framework.Discarded {
	return c.s.Primitives().Discard(c.leaveLocalWaiters, c.node.Path)
}

// leaveLocalWaiters takes the contender out of its local waiters, once.
func (c *contender) leaveLocalWaiters() {
	if c.local.removeContender(c) {
		c.local.leave(c.line)
	}
}

// abandon leaves the line, if the contender has come that far.
func (c *contender) abandon() {
	if c.node.Path == "" {
		c.leaveLocalWaiters()
		return
	}
	c.leaveLine()
}

// deleteNode ends a lease of the line.
func (c *contender) deleteNode(early bool) releaseProgress {
	r, gone := c.line.discardNodes(c.s, early, c.leaveLocalWaiters, c.node.Path)
	r.after = func() { c.line.uncontended.recordRelease(c, gone.Zxid()) }
	return r
}

// watchedContender is a contender ahead that is watched, or none.
type watchedContender struct {
	name string
	w    *framework.Watch
}

// watchContenders watches each of the neighbours at its place, if it does not already, at one time.
func (c *contender) watchContenders(ns []*watchedContender, at []position) {
	var paths []string
	var late []*watchedContender
	for i, n := range ns {
		if n.w == nil || n.name != at[i].name {
			n.stopWatch()
			n.name = at[i].name
			late, paths = append(late, n), append(paths, framework.Join(c.line.path, n.name))
		}
	}
	for i, w := range c.s.Primitives().WatchNodes(paths...) {
		late[i].w = w
	}
}

// eventChannel gets what happens to the neighbour; nothing if there is none.
func (n *watchedContender) eventChannel() <-chan framework.Event {
	if n.w == nil {
		return nil
	}
	return n.w.C()
}

// stopWatch ends the watch.
func (n *watchedContender) stopWatch() {
	if n.w != nil {
		n.w.Stop()
		n.w = nil
	}
}
