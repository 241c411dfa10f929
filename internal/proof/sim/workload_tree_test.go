package sim

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

func init() { newWorkload["tree"] = newTreeWorkload }

// treeWorkload is a configuration of several keys that all processes follow. Actors write the same
// number into all keys, or delete them all, in one transaction, while servers lag behind.
type treeWorkload struct {
	workloadBase

	mu        sync.Mutex
	written   map[int64]int64 // the transaction of each number
	newest    int64           // the newest transaction that wrote or deleted the keys
	deletedAt int64           // the newest transaction that deleted them
}

// simTree is what the keys are: one number, or 0 if there are none.
type simTree struct{ A, B, C int64 }

var simTreeKeys = []string{"a", "b", "c"}

func newTreeWorkload(sim *simulation, spec workloadSpec) workload {
	s := &treeWorkload{workloadBase: workloadBase{sim, spec}, written: map[int64]int64{}}
	sim.zk.Observe(s.observe)
	return s
}

// observe notes which transaction wrote each number, and which deleted the keys.
func (s *treeWorkload) observe(q zktest.Request) {
	if q.Op != zktest.OpMulti || q.Err != 0 || len(q.Parts) != len(simTreeKeys) || q.Parts[0].Path != s.key(0) {
		return
	}
	for _, part := range q.Parts {
		if part.Err != 0 {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = q.Zxid
	if q.Parts[0].Op == zktest.OpDelete {
		s.deletedAt = q.Zxid
		return
	}
	n, _ := strconv.ParseInt(string(q.Parts[0].Data), 10, 64) // actors write numbers alone
	s.written[n] = q.Zxid
}

func (s *treeWorkload) key(i int) string { return znode.Join(s.path(), simTreeKeys[i]) }

// tree returns the process's tree, which it follows from the first use to its end.
func (s *treeWorkload) tree(p *process) *config.Tree[simTree] {
	return processLocal(p, s.path(), func() *config.Tree[simTree] {
		t := config.NewTree(p.client, []string{s.path()}, config.WithDefault(simTree{}))
		s.sim.tasks.Go(func() { s.followChanges(p, t) })
		return t
	})
}

// followChanges checks that each value is of one moment, and that no moment is older than one
// before it.
func (s *treeWorkload) followChanges(p *process, t *config.Tree[simTree]) {
	newest := int64(0)
	for now, err := range t.Follow(p.ctx) {
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) {
				s.sim.addViolation(s.path(), "errors", "%s cannot follow: %v", p.name, err)
			}
			return
		}
		s.sim.countOperation("followed tree")
		moment, known := s.momentOf(p.name, now.Value)
		if known && moment < newest {
			s.sim.addViolation(s.path(), "order", "%s sees %d of transaction %d after transaction %d", p.name,
				now.Value.A, moment, newest)
		}
		newest = max(newest, moment)
	}
}

// momentOf returns the transaction that wrote a value. It is not known of keys that were deleted,
// which happens again and again.
func (s *treeWorkload) momentOf(who string, v simTree) (moment int64, known bool) {
	if v.A != v.B || v.B != v.C {
		s.sim.addViolation(s.path(), "moment", "%s sees %v, which no transaction has written", who, v)
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	moment, known = s.written[v.A]
	if !known && v.A != 0 {
		s.sim.addViolation(s.path(), "moment", "%s sees %d, which no transaction has written", who, v.A)
	}
	return moment, known
}

func (s *treeWorkload) runActor(a *actor) {
	t := s.tree(a.process)
	for a.nextStep() {
		ctx, cancel := a.callContext()
		switch a.rng.IntN(8) {
		case 0, 1:
			a.lagServer()
			s.load(a, ctx, t)
		case 2, 3:
			s.load(a, ctx, t)
		default:
			s.write(a, ctx)
		}
		cancel()
	}
}

// write writes, creates or deletes all keys in one transaction.
func (s *treeWorkload) write(a *actor, ctx context.Context) {
	data := []byte(strconv.Itoa(s.sim.nextNumber()))
	err := a.client.MakeDirs(ctx, s.path())
	_, exists := s.sim.zk.Node(s.key(0))
	remove := oneIn(a.rng, 5)
	var ops []framework.Op
	for i := range simTreeKeys {
		switch {
		case exists && remove:
			ops = append(ops, framework.DeleteOp(s.key(i), framework.AnyVersion))
		case exists:
			ops = append(ops, framework.SetOp(s.key(i), data, framework.AnyVersion))
		default:
			ops = append(ops, framework.CreateOp(s.key(i), data, framework.Persistent))
		}
	}
	if err == nil {
		_, err = a.client.Multi(ctx, ops...)
	}
	a.waitWhileFrozen()
	s.sim.history.add(s.path(), "%s writes %s: %s", a.name, data, outcome(err))
	switch {
	case err == nil:
		s.sim.countOperation("write")
	case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNodeExists),
		errors.Is(err, framework.ErrOutcomeUnknown):
		// others write, too
	default:
		s.checkError(a, ctx, "write", err)
	}
}

// load checks that Load returns nothing that was replaced before it began.
func (s *treeWorkload) load(a *actor, ctx context.Context, t *config.Tree[simTree]) {
	s.mu.Lock()
	before := s.newest
	s.mu.Unlock()
	now, err := t.Load(ctx)
	a.waitWhileFrozen()
	if err != nil {
		s.checkError(a, ctx, "load", err)
		return
	}
	s.sim.countOperation("load")
	moment, known := s.momentOf(a.name, now.Value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known && moment < before || !known && now.Value == (simTree{}) && s.deletedAt < before && len(s.written) > 0 {
		s.sim.addViolation(s.path(), "freshness", "%s loads %v of transaction %d, and transaction %d was there before",
			a.name, now.Value, moment, before)
	}
}

func (s *treeWorkload) checkError(a *actor, ctx context.Context, what string, err error) {
	if !a.isExpectedError(ctx, err) && a.ctx.Err() == nil && !failure.IsTransient(err) {
		s.sim.addViolation(s.path(), "errors", "%s cannot %s: %v", a.name, what, err)
	}
}

// mayRemain allows for the watches of processes that still follow the keys.
func (s *treeWorkload) mayRemain(node string) bool { return belongsTo(node, s.path()) }

// checkAtEnd checks that all living processes show what the keys are.
func (s *treeWorkload) checkAtEnd() {
	node, _ := s.sim.zk.Node(s.key(0))
	want, _ := strconv.ParseInt(string(node.Data), 10, 64)
	for _, p := range s.sim.liveProcesses() {
		if now := s.tree(p).Current(); now.Value != (simTree{want, want, want}) {
			s.sim.addViolation(s.path(), "newest", "%s shows %v at the end, the keys are %d", p.name, now.Value, want)
		}
	}
}
