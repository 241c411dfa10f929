package locks

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// The times of an ask that waits under a lease.
const (
	patience   = time.Second            // before it is recorded
	lookEvery  = time.Second            // while no cycle is seen
	cycleEvery = 250 * time.Millisecond // while one is seen, for mostQuickLooks looks

	mostQuickLooks = 20
)

// activeAsk is one call that waits for a lock while its caller holds others. Once it has waited for a second, it keeps a record beside the lock that it
// waits for, and looks for a deadlock.
//
// Only an ask of a cycle can break it, and each of them sees it: they all look every second. The record is an ephemeral node of the asking
// session. It is deleted after the ask has ended, and one that outlives its ask is never confirmed again.
type activeAsk struct {
	client  *framework.Client
	lock    string // path
	permits int
	mode    DeadlockMode
	tel     *waitline.Telemetry
	held    *heldLocks
	where   func() (askPlace, bool) // its place at present, false while it has none; nil: that of its own contender

	caller context.Context
	cancel context.CancelCauseFunc
	since  time.Time

	mu    sync.Mutex
	timer *time.Timer
	ended bool
	done  chan struct{} // closed when the goroutine has ended; nil until it was started

	deadlock atomic.Pointer[DeadlockError]
	reported int64 // the completing transaction of the cycle that was reported last
}

// contenderPlace notes the node with which a call waits in line.
type contenderPlace struct {
	node atomic.Pointer[primitives.Created]
}

// contenderPlaceKey is the key of the contenderPlace in the context of a call.
type contenderPlaceKey struct{}

// withContenderPlace returns a context for a call that waits in line, and where it does.
func withContenderPlace(ctx context.Context) (context.Context, *contenderPlace) {
	p := &contenderPlace{}
	return context.WithValue(ctx, contenderPlaceKey{}, p), p
}

// noteContender notes the node of a contender that waits for the call of ctx.
func noteContender(ctx context.Context) func(primitives.Created) {
	p, _ := ctx.Value(contenderPlaceKey{}).(*contenderPlace)
	if p == nil {
		return nil
	}
	return func(node primitives.Created) { p.node.Store(&node) }
}

// placeBelow is where the contender stands, with its path below root.
func (p *contenderPlace) placeBelow(root string) (askPlace, bool) {
	node := p.node.Load()
	if node == nil {
		return askPlace{}, false
	}
	return askPlace{Node: rootedPath(root, node.Path), Zxid: node.Zxid}, true
}

// waitInLine makes the place of an ask that of its own contender, which waits with the returned context.
func (a *activeAsk) waitInLine(ctx context.Context) context.Context {
	ctx, p := withContenderPlace(ctx)
	a.where = func() (askPlace, bool) { return p.placeBelow(a.client.Config().Root) }
	return ctx
}

// beginAsk starts the ask of a caller that holds locks. endAsk ends it.
func (a *activeAsk) beginAsk(ctx context.Context) context.Context {
	a.caller, a.since = ctx, time.Now()
	if a.where == nil {
		ctx = a.waitInLine(ctx)
	}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(patience, func() { a.startRecording(ctx) })
	return ctx
}

// endAsk ends the ask, and takes its record away in the background. It returns err, or the deadlock by which the ask has failed.
func (a *activeAsk) endAsk(granted bool, err error) error {
	if a == nil {
		return err
	}
	a.mu.Lock()
	a.ended = true
	a.timer.Stop()
	done := a.done
	a.mu.Unlock()
	a.cancel(nil)
	if done != nil {
		<-done
	}
	if found := a.deadlock.Load(); found != nil && !granted && a.caller.Err() == nil {
		return found
	}
	return err
}

func (a *activeAsk) startRecording(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		for ctx.Err() == nil {
			s, err := a.client.Session(ctx)
			if err != nil {
				return
			}
			if err := a.keepRecord(ctx, s); err != nil {
				a.client.Logger().Debug("deadlocks of an ask are not looked for", "path", a.lock, "error", err)
				return
			}
		}
	}()
}

// keepRecord keeps the record on one session, and looks. It returns nil when the session or the ask has ended, or when the record has to be made anew.
func (a *activeAsk) keepRecord(ctx context.Context, s *framework.Session) error {
	record, err := a.describeAsk()
	if err != nil { // it has no place yet, or the caller holds nothing any more
		_ = recipe.Pause(ctx, cycleEvery)
		return nil
	}
	created, err := s.Primitives().CreateProtected(ctx, primitives.ProtectedCreate{Dir: a.lock + askDirSuffix, Name: askName, Data: record.encode()})
	switch {
	case err == nil: // perhaps the ask has ended meanwhile
	case ctx.Err() != nil, s.Err() != nil:
		return nil
	case failure.IsTransient(err):
		_ = recipe.Pause(ctx, cycleEvery)
		return nil
	case err != nil:
		return err
	}
	node := created.Nodes[0]
	defer s.Primitives().Discard(nil, node.Path)
	for quick := mostQuickLooks; ctx.Err() == nil && s.Err() == nil; {
		pause := lookEvery
		seen, err := a.lookForDeadlock(ctx, s, node, &record)
		switch {
		case errors.Is(err, framework.ErrNoNode): // somebody has deleted the record
			return nil
		case err != nil && !failure.IsTransient(err) && ctx.Err() == nil && s.Err() == nil:
			return err
		case seen && quick > 0:
			pause = cycleEvery
			quick--
		}
		_ = recipe.Pause(ctx, pause)
	}
	return nil
}

// errNoPlace says that an ask has nothing to record at present.
var errNoPlace = errors.New("the ask has no place")

// describeAsk describes the ask at present.
func (a *activeAsk) describeAsk() (askRecord, error) {
	root := a.client.Config().Root
	place, ok := a.where()
	held := a.held.listHeld()
	if !ok || len(held) == 0 {
		return askRecord{}, errNoPlace
	}
	return askRecord{Version: askRecordVersion, Lock: rootedPath(root, a.lock), askPlace: place, Permits: a.permits, Held: held, Report: a.mode == DeadlockReport,
		Owner: a.client.Config().Identity, Host: host(), PID: os.Getpid(), Since: a.since.UTC()}, nil
}

// lookForDeadlock reads the asks once. It reports whether it has seen a cycle that this ask is in. It confirms in the record that the ask waits all the same, and
// once all asks of the cycle have done so, the youngest fails.
func (a *activeAsk) lookForDeadlock(ctx context.Context, s *framework.Session, node primitives.Created, recorded *askRecord) (seen bool, err error) {
	if _, err := s.Exists(ctx, node.Path); err != nil {
		return false, err
	}
	root := a.client.Config().Root
	g, err := lookFrom(ctx, s, root, a.heldPaths(root))
	if err != nil {
		return false, err
	}
	present, err := a.describeAsk() // behind the look: what it says was so after all that was seen
	if err != nil || ctx.Err() != nil {
		return false, nil
	}
	present.Seen = recorded.Seen
	all, me := askSet{}, (*seenAsk)(nil)
	for _, other := range g.asks {
		all[other] = true
		if other.path == node.Path {
			me = other
		}
	}
	var cycle askSet
	if me != nil {
		cycle = g.cycleOf(me, all)
	}
	if len(cycle) > 0 {
		present.Seen = max(present.Seen, g.completedBy(cycle))
	}
	moved := present.askPlace != recorded.askPlace || !slices.Equal(present.Held, recorded.Held)
	if moved || present.Seen != recorded.Seen {
		if _, err := s.Set(ctx, node.Path, present.encode(), framework.AnyVersion); err != nil {
			return len(cycle) > 0, err
		}
		*recorded = present
	}
	if moved { // what was looked at is not what is so now
		return true, nil
	}
	if certain := g.certainCycle(me, cycle, true); len(certain) > 0 && youngestAsk(certain) == me {
		return a.handleDeadlock(ctx, g, me, certain), nil
	}
	return len(cycle) > 0, nil
}

// heldPaths are the paths of the locks that the caller holds, below root.
func (a *activeAsk) heldPaths(root string) (paths []string) {
	for _, h := range a.held.listHeld() {
		if h, err := h.belowRoot(root); err == nil {
			paths = append(paths, h.Lock)
		}
	}
	return paths
}

// handleDeadlock fails the ask, or reports, because of a certain deadlock of which it is the youngest. It reports whether to look again soon.
func (a *activeAsk) handleDeadlock(ctx context.Context, g *askGraph, me *seenAsk, cycle askSet) bool {
	found := &DeadlockError{Cycle: g.describeCycle(me, cycle)}
	if completed := g.completedBy(cycle); a.mode == DeadlockReport {
		if completed != a.reported {
			a.reported = completed
			a.reportDeadlock(ctx, found, false)
		}
		return false
	}
	a.reportDeadlock(ctx, found, true)
	a.deadlock.Store(found)
	a.cancel(found)
	return true
}

func (a *activeAsk) reportDeadlock(ctx context.Context, found *DeadlockError, broken bool) {
	a.tel.RecordDeadlock(ctx, found.Error(), broken)
	level := slog.LevelInfo // the error is returned, too
	if !broken {
		level = slog.LevelWarn
	}
	a.client.Logger().Log(ctx, level, "found a deadlock", "path", a.lock, "broken", broken, "deadlock", found)
}
