package framework

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// NodeValue is what a node held at one moment.
type NodeValue struct {
	// Exists is false for a missing node. Then Data and Stat are empty.
	Exists bool
	// Data are the node's bytes. All followers of a node share them, so treat them as read-only.
	Data []byte
	// Stat is the node's metadata as of Data.
	Stat Stat
	// Zxid is the transaction that wrote the data, Stat.Mzxid. For a missing node it is the newest
	// transaction that the server knew. It rises with each value, also when a node is deleted and
	// created again. Stat.Version does not.
	Zxid int64
}

// followedNodes are the nodes that a client follows. Followers of one path share a followedNode.
type followedNodes struct {
	cfg        Config
	log        *slog.Logger
	onSessions func(context.Context, func(*Session) error) error
	tasks      background.Tasks

	mu    sync.Mutex
	nodes map[string]*followedNode
}

// followedNode is one node, its latest value, and the goroutine that reads it as long as it has
// followers.
type followedNode struct {
	all    *followedNodes
	path   string
	cancel context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended
	wake   chan struct{} // has room for one: a follower asks for a read

	// Guarded by all.mu.
	followers int
	asked     int64         // number of the latest read that a follower has asked for
	answered  int64         // number of the latest of them that a read behind a sync has answered
	changes   int64         // number of the latest value, from 1
	latest    NodeValue     // the latest value
	floor     int64         // the newest transaction seen; older values are refused
	older     bool          // the latest value that was read was older
	err       error         // why the goroutine has ended
	changed   chan struct{} // closed and replaced at each change of the fields above
}

// yieldValues yields the values of a node. It returns why it ends: ctx or the client has ended, the
// caller has left the loop, or the servers have refused to read the node.
func (all *followedNodes) yieldValues(ctx, client context.Context, path string, yield func(NodeValue) bool) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
	n, read, err := all.addFollower(path)
	if err != nil {
		return err
	}
	defer all.removeFollower(n)
	for seen := int64(0); ; {
		value, change, changed, err := n.latestValue(read)
		switch {
		case ctx.Err() != nil:
			return failure.Ended(ctx)
		case err != nil:
			return err
		case change > seen:
			if seen = change; !yield(value) {
				return failure.ErrLoopLeft
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-client.Done():
			return context.Cause(client)
		}
	}
}

// addFollower adds a follower and asks for a read. The follower waits for the read with the
// returned number, so that its first value was read behind a sync after it joined.
func (all *followedNodes) addFollower(path string) (n *followedNode, read int64, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	n = all.nodes[path]
	if n == nil {
		n = &followedNode{all: all, path: path, ended: make(chan struct{}), wake: make(chan struct{}, 1),
			changed: make(chan struct{})}
		var ctx context.Context
		ctx, n.cancel = context.WithCancel(context.Background())
		if !all.tasks.Start(func() { n.readChanges(ctx) }) {
			n.cancel()
			return nil, 0, ErrClosed
		}
		all.nodes[path] = n
	}
	n.followers++
	n.asked++
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return n, n.asked, nil
}

// removeFollower removes a follower. The last one ends the goroutine, which removes the watch, and
// waits for its end.
func (all *followedNodes) removeFollower(n *followedNode) {
	all.mu.Lock()
	n.followers--
	last := n.followers == 0
	if last && all.nodes[n.path] == n {
		delete(all.nodes, n.path)
	}
	all.mu.Unlock()
	if last {
		n.cancel()
		<-n.ended
	}
}

// latestValue returns the latest value and its number, and a channel that is closed at the next
// change. The number is 0 while the follower's read is not answered.
func (n *followedNode) latestValue(read int64) (value NodeValue, change int64, changed <-chan struct{}, err error) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	if n.answered < read {
		return NodeValue{}, 0, n.changed, n.err
	}
	return n.latest, n.changes, n.changed, n.err
}

// readChanges reads the node after each change, on session after session.
func (n *followedNode) readChanges(ctx context.Context) {
	defer close(n.ended)
	err := n.all.onSessions(ctx, func(s *Session) error { return n.followSession(ctx, s) })
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	if n.all.nodes[n.path] == n { // the next follower starts another goroutine
		delete(n.all.nodes, n.path)
	}
	n.err = err
	n.wakeFollowers()
}

// followSession follows the node until the session or ctx ends. It reads behind a sync at first,
// after each reconnect and when a follower has joined: the server may lag behind the server of the
// read before. After an event of a watch it reads without a sync, since the server knows the
// change.
func (n *followedNode) followSession(ctx context.Context, s *Session) error {
	var w *Watch
	defer func() { w.stopIfAny() }()
	if n.hasValue() {
		if err := n.waitToSpreadReads(ctx, s); err != nil {
			return err
		}
	}
	back := backoff.New(n.all.cfg.RetryBase, n.all.cfg.RetryMax)
	for sync := true; ; {
		reads := n.readsToAnswer()
		if sync || reads.isReadDue() {
			if err := primitives.Of(s).SyncForWatch(ctx, n.path, reads.isReadDue()); err != nil {
				return err
			}
		}
		value, next, err := s.watchValue(ctx, n.path)
		w.stopIfAny() // behind the new one, which keeps the server's watch
		if w = next; err != nil {
			return err
		}
		if n.publishValue(value, reads) {
			back.Reset()
			sync, err = n.waitForChange(ctx, s, w)
		} else {
			sync, err = true, n.waitBeforeRead(ctx, s, back.Next(), nil)
		}
		if err != nil {
			return err
		}
	}
}

// readCounts are the numbers of the latest read that a follower has asked for, and of the latest
// that was answered.
type readCounts struct{ asked, answered int64 }

func (r readCounts) isReadDue() bool { return r.asked > r.answered }

func (n *followedNode) readsToAnswer() readCounts {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	select {
	case <-n.wake:
	default:
	}
	return readCounts{n.asked, n.answered}
}

func (n *followedNode) hasValue() bool {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	return n.changes > 0
}

// publishValue publishes a value that was read, and reports false if the value is older than one
// before it. The log tells of the first of several older values: after a restore from a backup they
// go on for long.
func (n *followedNode) publishValue(value NodeValue, answers readCounts) bool {
	floor, again := n.storeValue(value, answers)
	older := value.Zxid < floor
	if older && !again {
		n.all.log.Warn("a server shows an older state of a node than was seen before; it is read again",
			"path", n.path, "zxid", value.Zxid, "seen", floor)
	}
	return !older
}

// storeValue stores a value that was read, unless it is older than the floor, and returns the
// floor. again says that the value before was older, too.
func (n *followedNode) storeValue(value NodeValue, answers readCounts) (floor int64, again bool) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	again, n.older = n.older, value.Zxid < n.floor
	if n.older {
		return n.floor, again
	}
	same := n.changes > 0 && value.Exists == n.latest.Exists && (!value.Exists || value.Zxid == n.latest.Zxid)
	n.floor = value.Zxid
	if !same {
		n.latest = value
		n.changes++
	}
	if !same || answers.isReadDue() {
		n.answered = answers.asked
		n.wakeFollowers()
	}
	return n.floor, again
}

// wakeFollowers makes the followers check the value again. Guarded by all.mu.
func (n *followedNode) wakeFollowers() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// waitForChange waits until the node is to be read again, and reports whether that needs a sync.
func (n *followedNode) waitForChange(ctx context.Context, s *Session, w *Watch) (sync bool, err error) {
	select {
	case event := <-w.C():
		if event.Kind == NodeCreated || event.Kind == NodeChanged || event.Kind == NodeDeleted {
			return false, nil
		}
		return true, n.waitToSpreadReads(ctx, s)
	case <-n.wake:
		return true, nil
	case <-ctx.Done():
		return false, failure.Ended(ctx)
	case <-s.Done():
		return false, context.Cause(s.ctx)
	}
}

// waitToSpreadReads waits for a random part of Config.FollowSpread, so that the clients of a lost
// server do not all read at once. A follower that joins ends the wait.
func (n *followedNode) waitToSpreadReads(ctx context.Context, s *Session) error {
	return n.waitBeforeRead(ctx, s, rand.N(min(n.all.cfg.FollowSpread, max(s.Timeout()/4, 1))), n.wake)
}

func (n *followedNode) waitBeforeRead(ctx context.Context, s *Session, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return failure.Ended(ctx)
	case <-s.Done():
		return context.Cause(s.ctx)
	}
}

// watchValue reads and watches a node. A missing node is watched for its creation.
func (s *Session) watchValue(ctx context.Context, path string) (NodeValue, *Watch, error) {
	for {
		r, w, err := s.readAndWatch(ctx, watchData, path, true)
		if !errors.Is(err, ErrNoNode) {
			return NodeValue{Exists: true, Data: r.data, Stat: r.stat, Zxid: r.stat.Mzxid}, w, err
		}
		r, w, err = s.readAndWatch(ctx, watchExists, path, true)
		if errors.Is(err, ErrNoNode) {
			return NodeValue{Zxid: r.zxid}, w, nil
		}
		w.stopIfAny()
		if err != nil {
			return NodeValue{}, nil, err
		}
	}
}

func (w *Watch) stopIfAny() {
	if w != nil {
		w.Stop()
	}
}
