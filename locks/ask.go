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
	recordAfter       = time.Second            // before it is recorded
	lookInterval      = time.Second            // while no cycle is seen
	quickLookInterval = 250 * time.Millisecond // while one is seen, for maxQuickLooks looks

	maxQuickLooks = 20
)

// activeAsk is one call that waits for a lock while its caller holds others. Once it has waited for
// a second, it keeps a record beside the lock that it waits for, and looks for a deadlock.
//
// Each ask looks every second, together with the others of its session, so all asks of a cycle see
// the cycle, and the youngest of them breaks it. The record is an ephemeral node of the asking
// session. The ask deletes it at its end. A record that outlives its ask is not confirmed again.
type activeAsk struct {
	client  *framework.Client
	lock    string // path
	permits int
	mode    DeadlockMode
	tel     *waitline.Telemetry
	held    *heldLocks
	place   func() (askPlace, bool) // where it waits now, false while it has no place; nil: at its own contender's node

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

// beginAsk starts the ask of a caller that holds locks. The caller waits with the returned context,
// and then calls endAsk.
func (a *activeAsk) beginAsk(ctx context.Context) context.Context {
	a.caller, a.since = ctx, time.Now()
	if a.place == nil {
		ctx = a.waitInLine(ctx)
	}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.timer = time.AfterFunc(recordAfter, func() { a.startRecording(ctx) })
	return ctx
}

// waitInLine sets the place of an ask to the node of its own contender, which waits with the
// returned context.
func (a *activeAsk) waitInLine(ctx context.Context) context.Context {
	ctx, p := withContenderPlace(ctx)
	a.place = func() (askPlace, bool) { return p.placeBelow(a.client.Config().Root) }
	return ctx
}

// endAsk ends the ask, and deletes its record in the background. It returns err, or the deadlock by
// which the ask has failed.
func (a *activeAsk) endAsk(granted bool, err error) error {
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

// startRecording keeps a record in the background until ctx ends, on session after session. It goes
// on after a refusal such as that of a quota, which may end. It does not go on if the client may
// not read or write the records.
func (a *activeAsk) startRecording(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		pauses := recipe.RetryPauses{Client: a.client}
		for ctx.Err() == nil {
			s, err := a.client.Session(ctx)
			if err != nil {
				return
			}
			began := time.Now()
			err = a.keepRecord(ctx, s)
			if err == nil {
				continue
			}
			a.client.Logger().Debug("deadlocks of an ask are not looked for", "path", a.lock, "error", err)
			if errors.Is(err, framework.ErrNoAuth) || pauses.Wait(ctx, began) != nil {
				return
			}
		}
	}()
}

// keepRecord keeps the record on one session, and looks for a deadlock meanwhile. It returns nil
// when the session or the ask has ended, or when the record has to be created anew.
func (a *activeAsk) keepRecord(ctx context.Context, s *framework.Session) error {
	record, err := a.describeAsk()
	if err != nil { // it has no place yet, or the caller holds nothing any more
		_ = recipe.Pause(ctx, quickLookInterval)
		return nil
	}
	created, err := s.Primitives().CreateProtected(ctx,
		primitives.ProtectedCreate{Dir: a.lock + askDirSuffix, Name: askName, Data: record.encode()})
	switch {
	case err == nil: // perhaps the ask has ended meanwhile
	case ctx.Err() != nil, s.Err() != nil:
		return nil
	case failure.IsTransient(err):
		_ = recipe.Pause(ctx, quickLookInterval)
		return nil
	case err != nil:
		return err
	}
	node := created.Nodes[0]
	defer s.Primitives().Discard(nil, node.Path)
	root := a.client.Config().Root
	search := askSearchOf(s, root)
	defer search.leave()
	pause := quickLookInterval
	for quick := maxQuickLooks; ctx.Err() == nil && s.Err() == nil; {
		look, err := search.awaitLook(ctx, node.Path, func() []string { return a.heldPaths(root) }, pause)
		seen := false
		if err == nil {
			seen, err = a.judgeLook(ctx, search, look, node.Path, &record)
		}
		pause = lookInterval
		switch {
		case errors.Is(err, framework.ErrNoNode): // another client has deleted the record
			return nil
		case err != nil && !failure.IsTransient(err) && ctx.Err() == nil && s.Err() == nil:
			return err
		case seen && quick > 0:
			pause = quickLookInterval
			quick--
		}
	}
	return nil
}

// errNoPlace is the error of an ask that has no place in line yet, or whose caller holds no lock
// any more.
var errNoPlace = errors.New("the ask has no place")

// describeAsk returns the record of what the ask waits for now, and of what its caller holds now.
func (a *activeAsk) describeAsk() (askRecord, error) {
	root := a.client.Config().Root
	place, ok := a.place()
	held := a.held.listHeld()
	if !ok || len(held) == 0 {
		return askRecord{}, errNoPlace
	}
	return askRecord{Version: askRecordVersion, Lock: rootedPath(root, a.lock), askPlace: place, Permits: a.permits,
		Held: held, Report: a.mode == DeadlockReport,
		Owner: a.client.Config().Identity, Host: host(), PID: os.Getpid(), Since: a.since.UTC()}, nil
}

// judgeLook reports whether a look has seen a cycle with this ask in it. It confirms in the ask's
// record that the ask still waits. Once all asks of the cycle have confirmed that, the youngest of
// them fails.
func (a *activeAsk) judgeLook(ctx context.Context, search *askSearch, look *askLook, record string,
	recorded *askRecord) (seen bool, err error) {
	if look.gone[record] {
		return false, framework.ErrNoNode
	}
	current, err := a.describeAsk() // after the reads: it describes a later moment than all that was read
	if err != nil || ctx.Err() != nil {
		return false, nil
	}
	current.Seen = recorded.Seen
	g := look.graph
	me := g.records[record]
	cycle := g.cycles[me]
	if len(cycle) > 0 {
		current.Seen = max(current.Seen, g.completedBy(cycle))
	}
	moved := current.askPlace != recorded.askPlace || !slices.Equal(current.Held, recorded.Held)
	if moved || current.Seen != recorded.Seen {
		search.count(1)
		if _, err := search.s.Set(ctx, record, current.encode(), framework.AnyVersion); err != nil {
			return len(cycle) > 0, err
		}
		*recorded = current
	}
	if moved { // the graph shows this ask at its former place
		return true, nil
	}
	if certain := g.certainCycle(me, cycle, true); len(certain) > 0 && g.youngestAsk(certain) == me {
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

// handleDeadlock handles a certain deadlock of which this ask is the youngest: it fails the ask, or
// only reports the deadlock. It returns whether to look again soon.
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

// reportDeadlock counts and logs a deadlock. broken says that the ask fails.
func (a *activeAsk) reportDeadlock(ctx context.Context, found *DeadlockError, broken bool) {
	a.tel.RecordDeadlock(ctx, found.Error(), broken)
	level := slog.LevelInfo // the error is returned, too
	if !broken {
		level = slog.LevelWarn
	}
	a.client.Logger().Log(ctx, level, "found a deadlock", "path", a.lock, "broken", broken, "deadlock", found)
}
