package config

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// followTree yields the keys below directories as one value, encoded by encodeKeys, now and after
// each change. Keys with the same form by relax are one key.
func followTree(ctx context.Context, client *framework.Client, dirs []string, relax func(key string) string,
	quiet time.Duration) iter.Seq2[framework.NodeValue, error] {
	return func(yield func(framework.NodeValue, error) bool) {
		r := &treeReader{client: client, dirs: dirs, relax: relax, quiet: quiet, wake: make(chan struct{}, 1),
			yield: yield}
		err := recipe.OnSession(ctx, client, func(s *framework.Session) error { return r.followSession(ctx, s) },
			failure.IsTransient)
		if err = failure.LoopEnd(ctx, "config", strings.Join(dirs, " "), err); err != nil {
			yield(framework.NodeValue{}, err)
		}
	}
}

// treeReader reads the nodes below directories as of one moment.
//
// Each node has a watch on its data and one on its children. When all nodes are known, it reads
// them all again. If no node differs by its transactions, then no node has changed between its two
// reads. So all nodes had these states at the moment between the last of the first reads and the
// first of the second reads. Transactions' numbers do not repeat, so no change can be undone
// unnoticed.
//
// The states that one session sees only get newer, since a server refuses a client that has seen
// more than the server has. The creation of a session is a transaction, too: after it, the server
// has applied everything that the session before has seen.
type treeReader struct {
	client *framework.Client
	dirs   []string
	relax  func(key string) string
	quiet  time.Duration
	yield  func(framework.NodeValue, error) bool
	read   bool // a value was yielded

	nodes  map[string]*treeNode // by path
	wake   chan struct{}        // has room for one: a watch has fired
	resync atomic.Bool          // a watch was lost with its connection
}

// treeNode is a node as it was read, with its watches.
type treeNode struct {
	exists bool // a directory that is missing is known, too
	data   []byte
	names  []string       // of the children
	stat   framework.Stat // Czxid and Mzxid of the data's read, Pzxid of the children's
	// of a missing directory: the transaction that last changed the names in the nearest directory
	// above it that exists
	above int64
	fired atomic.Bool
	gone  chan struct{} // closed when the watches are not needed any more
}

// newestZxid is the newest transaction that has changed the node, as far as is known.
func (n *treeNode) newestZxid() int64 { return max(n.above, n.stat.Czxid, n.stat.Mzxid, n.stat.Pzxid) }

// followSession yields values until the session is lost.
func (r *treeReader) followSession(ctx context.Context, s *framework.Session) error {
	r.nodes = map[string]*treeNode{}
	defer func() {
		for _, n := range r.nodes {
			close(n.gone)
		}
	}()
	if r.read {
		if err := r.waitToSpreadReads(ctx, s); err != nil {
			return err
		}
	}
	r.resync.Store(true)
	for {
		if err := r.readAll(ctx, s); err != nil {
			return err
		}
		r.read = true
		if !r.yield(r.wholeValue(), nil) {
			return failure.ErrLoopLeft
		}
		if _, _, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Signal: r.wake}); err != nil {
			return err
		}
		if r.resync.Load() {
			if err := r.waitToSpreadReads(ctx, s); err != nil {
				return err
			}
		}
	}
}

// waitToSpreadReads waits at random, so that the readers of a lost server do not all read at once.
func (r *treeReader) waitToSpreadReads(ctx context.Context, s *framework.Session) error {
	timer := time.NewTimer(rand.N(max(1, min(r.client.Config().FollowSpread, s.Timeout()/4))))
	defer timer.Stop()
	_, _, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Timer: timer.C})
	return err
}

// readAll reads what has changed, until two reads of all nodes are the same. While keys change
// faster than that, it goes on with pauses.
func (r *treeReader) readAll(ctx context.Context, s *framework.Session) error {
	pauses := recipe.NewBackoff(r.client)
	for tries := 0; ; tries++ {
		if tries > 2 {
			if err := pauses.Pause(ctx); err != nil {
				return err
			}
		}
		if r.resync.Swap(false) {
			if err := primitives.Of(s).SyncForWatch(ctx, r.dirs[0], !r.read); err != nil {
				r.resync.Store(true)
				return err
			}
		}
		for _, dir := range r.dirs {
			if err := r.readBelow(ctx, s, dir, true); err != nil {
				return err
			}
		}
		if r.quiet > 0 {
			if err := recipe.Pause(ctx, r.quiet); err != nil {
				return err
			}
		}
		if same, err := r.isSame(ctx, s); same || err != nil {
			return err
		}
	}
}

// readBelow reads a node and those below it, unless they are known and their watches have not
// fired.
func (r *treeReader) readBelow(ctx context.Context, s *framework.Session, path string, isDir bool) error {
	n := r.nodes[path]
	if n == nil || n.fired.Load() {
		var err error
		if n, err = r.readNode(ctx, s, path, isDir); err != nil {
			return err
		}
		r.replaceNode(path, n)
		if n == nil {
			return nil
		}
	}
	for _, name := range n.names {
		if err := r.readBelow(ctx, s, znode.Join(path, name), false); err != nil {
			return err
		}
	}
	return nil
}

// replaceNode stores a node's new state, or forgets a deleted node, for which n is nil. It also
// forgets all nodes below that are not listed any more.
func (r *treeReader) replaceNode(path string, n *treeNode) {
	if before := r.nodes[path]; before != nil {
		close(before.gone)
		for _, name := range before.names {
			if n == nil || !slices.Contains(n.names, name) {
				r.replaceNode(znode.Join(path, name), nil)
			}
		}
		delete(r.nodes, path)
	}
	if n != nil {
		r.nodes[path] = n
	}
}

// readNode reads a node and watches it. A missing node is nil, a missing directory is a node that
// does not exist.
func (r *treeReader) readNode(ctx context.Context, s *framework.Session, path string, isDir bool) (*treeNode, error) {
	n := &treeNode{gone: make(chan struct{})}
	data, stat, changed, err := s.WatchData(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		if !isDir {
			return nil, nil
		}
		return r.readMissing(ctx, s, path)
	}
	if err != nil {
		return nil, err
	}
	names, listed, joined, err := s.WatchChildren(ctx, path)
	if err != nil {
		changed.Stop()
		if errors.Is(err, framework.ErrNoNode) {
			err = recipe.ErrAgain
		}
		return nil, err
	}
	slices.Sort(names)
	n.exists, n.data, n.names, n.stat = true, data, names, stat
	n.stat.Pzxid = listed.Pzxid
	go r.awaitEvent(n, changed)
	go r.awaitEvent(n, joined)
	return n, nil
}

// readMissing watches a directory that does not exist.
func (r *treeReader) readMissing(ctx context.Context, s *framework.Session, path string) (*treeNode, error) {
	_, created, err := s.WatchExists(ctx, path)
	if !errors.Is(err, framework.ErrNoNode) {
		if err == nil {
			created.Stop()
			err = recipe.ErrAgain
		}
		return nil, err
	}
	n := &treeNode{gone: make(chan struct{})}
	for above := path; n.above == 0 && above != "/"; {
		above, _ = znode.Split(above)
		stat, err := s.Exists(ctx, above)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			created.Stop()
			return nil, err
		}
		n.above = stat.Pzxid
	}
	go r.awaitEvent(n, created)
	return n, nil
}

// awaitEvent notes the event of a node's watch, until the node is not needed any more.
func (r *treeReader) awaitEvent(n *treeNode, w *framework.Watch) {
	defer w.Stop()
	select {
	case event := <-w.C():
		if event.Kind == framework.Reconnected || event.Err != nil {
			r.resync.Store(true)
		}
		n.fired.Store(true)
		select {
		case r.wake <- struct{}{}:
		default:
		}
	case <-n.gone:
	}
}

// isSame reads all nodes again, and reports whether all are unchanged. It marks the changed nodes,
// so that readBelow reads them again.
func (r *treeReader) isSame(ctx context.Context, s *framework.Session) (bool, error) {
	paths := make([]string, 0, len(r.nodes))
	for path := range r.nodes {
		paths = append(paths, path)
	}
	same := true
	all, err := s.GetAll(ctx, paths...)
	if err != nil {
		return false, err
	}
	for i, now := range all {
		if now.Err != nil && !errors.Is(now.Err, framework.ErrNoNode) {
			return false, now.Err
		}
		n := r.nodes[paths[i]]
		if n.exists != (now.Err == nil) || n.stat.Czxid != now.Stat.Czxid || n.stat.Mzxid != now.Stat.Mzxid ||
			n.stat.Pzxid != now.Stat.Pzxid {
			n.fired.Store(true)
			same = false
		}
	}
	return same, nil
}

// wholeValue returns the keys of all nodes as one value.
func (r *treeReader) wholeValue() (value framework.NodeValue) {
	var newest framework.Stat
	for _, n := range r.nodes {
		value.Zxid = max(value.Zxid, n.newestZxid())
		if n.stat.Mtime.After(newest.Mtime) {
			newest = n.stat
		}
	}
	keys := map[string]string{}
	for _, dir := range slices.Backward(r.dirs) {
		own := map[string]string{}
		r.addKeys(own, dir, "")
		addMissingKeys(own, keys, r.relax)
		keys = own
	}
	value.Exists, value.Stat, value.Data = len(keys) > 0, newest, encodeKeys(keys)
	return value
}

// addKeys adds the keys below a node, and replaces keys of the same name. A node without data is no
// key, as in Spring. Of the nodes a/b and a.b, a/b counts.
func (r *treeReader) addKeys(keys map[string]string, path, prefix string) {
	n := r.nodes[path]
	if n == nil {
		return
	}
	for _, name := range slices.Backward(n.names) {
		below := znode.Join(path, name)
		if child := r.nodes[below]; child != nil && len(child.data) > 0 {
			keys[prefix+name] = string(child.data)
		}
		r.addKeys(keys, below, prefix+name+".")
	}
}

func encodeKeys(keys map[string]string) []byte {
	data, err := json.Marshal(keys)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return data
}
