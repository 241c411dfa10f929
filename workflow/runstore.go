package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

// runStore is the runs on the servers:
//
//	<path>/runs/<shard>/<run>                 persistent: the run, JSON {"v":1,"kind":"run","id","workflow","state","turn","input",…}
//	<path>/runs/<shard>/<run>/step-<name>     persistent: a finished step, as in a Ledger
//	<path>/runs/<shard>/<run>/timer-<name>    persistent: when a Sleep, or a wait with a limit, has begun, JSON {"v":1,"ms"}
//	<path>/runs/<shard>/<run>/signal-<name>   persistent: a signal, JSON {"v":1,"data"} or {"v":1,"timedOut":true}
//	<path>/runs/<shard>/<run>/signal2-<name>  persistent: the second signal of a name, and so on; timer2-<name> likewise
//	<path>/runs/<shard>/<run>/ends            persistent: its version counts ends of children that the run did not wait for
//	<path>/queues/<kind>                      a queue.Queue in parallel order: items {"run","id","turn"}
//	<path>/ended/<minute>/<run>,<version>     persistent: done and cancelled runs, by the minute in which they ended
//	<path>/failed/<minute>/<run>,<version>    persistent: failed runs, in the same form
//	<path>/kept/<minute>/<run>,<version>      persistent: removed runs whose ids are kept, by the minute until which they are
//	<path>/sweeper                            a locks.Mutex: who removes finished runs
type runStore struct {
	client *framework.Client
	path   string
	tel    telemetry
	clock  recipe.EnsembleClock

	isRegistered func(kind string) bool // reports whether this process has registered the kind
	records      recordCache
	suspected    chan struct{} // has an element while a run is executed that may crash its processes

	mu           sync.Mutex
	queues       map[string]*queue.Queue[runItem]
	clockSession framework.SessionID // that has read the ensemble's time last
	closed       bool
}

func newRunStore(client *framework.Client, path string, isRegistered func(kind string) bool) *runStore {
	return &runStore{client: client, path: path, isRegistered: isRegistered, suspected: make(chan struct{}, 1),
		queues: map[string]*queue.Queue[runItem]{}}
}

// How runs are spread over directories, and when the ensemble is asked for its time again.
const (
	shards      = 256
	minuteForm  = "20060102T1504"
	clockMaxAge = time.Hour // how old the estimate of the ensemble's clock may be before it is asked again
	readAtOnce  = 500       // how many runs are read before they are used
)

func (store *runStore) shardDir(n int) string { return fmt.Sprintf("%s/runs/%02x", store.path, n) }

func (store *runStore) runNode(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return znode.Join(store.shardDir(int(h.Sum32()%shards)), id)
}

func (store *runStore) queuePath(kind string) string { return store.path + "/queues/" + kind }

func (store *runStore) endedDir() string { return store.path + "/ended" }

func (store *runStore) failedDir() string { return store.path + "/failed" }

func (store *runStore) keptDir() string { return store.path + "/kept" }

// checkKnown refuses a kind that no process has worked on.
func (store *runStore) checkKnown(ctx context.Context, s *framework.Session, kind string) error {
	if store.isRegistered(kind) {
		return nil
	}
	path := store.queuePath(kind)
	err := s.Sync(ctx, path)
	if err == nil {
		_, err = s.Exists(ctx, path)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return fmt.Errorf("%w: %q: register its function, or start a member that has it", errUnknownKind, kind)
	}
	return err
}

// queueOf returns the queue of a kind's runs.
func (store *runStore) queueOf(kind string) (*queue.Queue[runItem], error) {
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.closed {
		return nil, errClosed
	}
	q := store.queues[kind]
	if q == nil {
		q = queue.New(store.client, store.queuePath(kind), codec.JSON[runItem](), queue.WithOrder(queue.Parallel),
			queue.WithMaxInFlight(MaxWorkers))
		store.queues[kind] = q
	}
	return q, nil
}

// close closes the queues.
func (store *runStore) close(ctx context.Context) error {
	store.mu.Lock()
	store.closed = true
	queues := store.queues
	store.mu.Unlock()
	errs := make(chan error, len(queues))
	for _, q := range queues {
		go func() { errs <- q.Close(ctx) }()
	}
	var all []error
	for range queues {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// now is the ensemble's time. It asks the ensemble, with a write, once in each session and at most
// once an hour. After a suspension of the machine that its session has survived, the time may be
// behind by as long as that.
func (store *runStore) now(ctx context.Context, s *framework.Session) (time.Time, error) {
	store.mu.Lock()
	isCurrent := store.clockSession == s.ID() && store.clock.Age() <= clockMaxAge
	store.mu.Unlock()
	if !isCurrent {
		if _, err := store.clock.ReadTime(ctx, s, store.endedDir()); err != nil {
			return time.Time{}, err
		}
		store.mu.Lock()
		store.clockSession = s.ID()
		store.mu.Unlock()
	}
	return store.clock.Now(), nil
}

// storedRun is a run as it was read.
type storedRun struct {
	id   string // that Start was given
	node string
	runRecord
	stat framework.Stat
	ends childEnds // is set while the run is executed
}

// childEnds is what an executor knows of the ends of a run's children, as of the moment at which it
// has read the run.
type childEnds struct {
	version int32           // of the node that counts them, plus 1; or 0 if there is none
	unended map[string]bool // ids of children that have not ended, so that they need not be read
}

// read reads a run behind a sync. A missing one is framework.ErrNotFound.
func (store *runStore) read(ctx context.Context, s *framework.Session, id string) (r storedRun, err error) {
	if err := s.Sync(ctx, store.runNode(id)); err != nil {
		return r, err
	}
	return store.readWithoutSync(ctx, s, id)
}

// readWithoutSync reads a run as the session's server has it, which may be behind.
func (store *runStore) readWithoutSync(ctx context.Context, s *framework.Session, id string) (r storedRun, err error) {
	r.id, r.node = id, store.runNode(id)
	data, stat, err := s.Get(ctx, r.node)
	if errors.Is(err, framework.ErrNoNode) {
		return r, fmt.Errorf("%w: %q", errNoRun, id)
	}
	if err != nil {
		return r, err
	}
	r.stat = stat
	r.runRecord, err = parseRun(r.node, data)
	return r, err
}

// write is the operation that replaces the record that was read.
func (r storedRun) write(next runRecord) (framework.Op, error) {
	data, err := next.encode()
	return framework.SetOp(r.node, data, r.stat.Version), err
}

// unchanged is the operation that refuses a transaction if the record was replaced since it was
// read.
func (r storedRun) unchanged() framework.Op { return framework.CheckOp(r.node, r.stat.Version) }

// childNode is a step, a timer or a signal of a run.
type childNode struct {
	name string
	framework.Node
}

// children are the nodes below a run, in the order in which they were made.
func (store *runStore) children(ctx context.Context, s *framework.Session, node string) ([]childNode, error) {
	names, _, err := s.Children(ctx, node)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.Join(node, name)
	}
	all, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var children []childNode
	for i, n := range all {
		if n.Err == nil {
			children = append(children, childNode{names[i], n})
		} else if !errors.Is(n.Err, framework.ErrNoNode) {
			return nil, n.Err
		}
	}
	sortByAge(children)
	return children, nil
}

func sortByAge(children []childNode) {
	slices.SortFunc(children, func(a, b childNode) int { return cmp.Compare(a.Stat.Czxid, b.Stat.Czxid) })
}

// childrenOnce is children. It does not read nodes again that this process has read before.
func (store *runStore) childrenOnce(ctx context.Context, s *framework.Session, r storedRun) ([]childNode, error) {
	names, list, err := s.Children(ctx, r.node)
	if err != nil {
		return nil, err
	}
	known := store.records.get(r.node, r.stat.Czxid, list, len(names))
	children, nodes := make([]childNode, 0, len(names)), make(map[string]framework.Node, len(names))
	var unread, paths []string
	for _, name := range names {
		if n, ok := known[name]; ok {
			children, nodes[name] = append(children, childNode{name, n}), n
		} else {
			unread, paths = append(unread, name), append(paths, znode.Join(r.node, name))
		}
	}
	read, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for i, n := range read {
		if n.Err != nil { // also of a node that was deleted since: then the run was retried or removed
			return nil, n.Err
		}
		children = append(children, childNode{unread[i], n})
		if unread[i] != endsName { // which changes
			nodes[unread[i]] = n
		}
	}
	store.records.put(r.node, r.stat.Czxid, list, len(names), nodes)
	sortByAge(children)
	return children, nil
}
