package waitgraph

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// The times of a request that waits.
const (
	recordAfter       = time.Second            // before it is recorded
	scanInterval      = time.Second            // while no cycle is seen
	quickScanInterval = 250 * time.Millisecond // while one is seen, for maxQuickScans scans

	maxQuickScans = 20
)

// Request is one call that waits for a lock while its caller holds others. Once it has waited for a
// second, it keeps a record beside the lock that it waits for, and searches for a deadlock.
//
// Each request scans every second, together with the others of its session, so all requests of a
// cycle see the cycle, and the victim breaks it. The record is an ephemeral node of the requesting
// session. The request deletes it at its end. A record that outlives its request is not confirmed
// again.
type Request struct {
	// Client is the client that requests.
	Client *framework.Client
	// Lock is the path of the lock.
	Lock string
	// Permits is how many permits of a semaphore the caller wants, or 0.
	Permits int
	// Held returns what the caller holds now.
	Held func() []Held
	// Waits returns the node with which the request waits now. It returns false while it has none,
	// and an empty node for a claim.
	Waits func() (LineNode, bool)
	// ReportOnly says that the request does not fail.
	ReportOnly bool
	// Report is called with the cycle when the request is the victim of a certain deadlock. The
	// request fails with the returned error unless it is ReportOnly.
	Report func(ctx context.Context, cycle []Waiter) error

	caller context.Context
	cancel context.CancelCauseFunc
	since  time.Time

	mu    sync.Mutex
	timer *time.Timer
	ended bool
	done  chan struct{} // closed when the goroutine has ended; nil until it was started

	deadlock atomic.Pointer[error]
	reported int64 // the completing transaction of the cycle that was reported last
}

// Begin starts the request. The caller waits with the returned context, and then calls End.
func (q *Request) Begin(ctx context.Context) context.Context {
	q.caller, q.since = ctx, time.Now()
	ctx, q.cancel = context.WithCancelCause(ctx)
	q.timer = time.AfterFunc(recordAfter, func() { q.startRecording(ctx) })
	return ctx
}

// End ends the request, and deletes its record in the background. It returns err, or the deadlock
// by which the request has failed.
func (q *Request) End(granted bool, err error) error {
	q.mu.Lock()
	q.ended = true
	q.timer.Stop()
	done := q.done
	q.mu.Unlock()
	q.cancel(nil)
	if done != nil {
		<-done
	}
	if found := q.deadlock.Load(); found != nil && !granted && q.caller.Err() == nil {
		return *found
	}
	return err
}

// startRecording keeps a record in the background until ctx ends, on session after session. It goes
// on after a refusal such as that of a quota, which may end. It does not go on if the client may
// not read or write the records.
func (q *Request) startRecording(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.done = make(chan struct{})
	go func() {
		defer close(q.done)
		_ = recipe.OnSession(ctx, q.Client, func(s *framework.Session) error {
			for ctx.Err() == nil && s.Err() == nil {
				if err := q.keepRecord(ctx, s); err != nil {
					q.Client.Logger().Debug("cannot search for deadlocks of a lock request", "path", q.Lock, "error",
						err)
					return err
				}
			}
			return s.Err()
		}, func(err error) bool { return !errors.Is(err, framework.ErrNoAuth) })
	}()
}

// keepRecord keeps the record on one session, and searches for a deadlock meanwhile. It returns nil
// when the session or the request has ended, or when the record has to be created anew.
func (q *Request) keepRecord(ctx context.Context, s *framework.Session) error {
	stored, waits := q.describe()
	if !waits {
		_ = recipe.Pause(ctx, quickScanInterval)
		return nil
	}
	created, err := primitives.Of(s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: q.Lock + recipe.LockRequestsSuffix, Name: recipe.LockRequestName, Data: stored.encode()})
	switch {
	case err == nil: // perhaps the request has ended meanwhile
	case ctx.Err() != nil, s.Err() != nil:
		return nil
	case failure.IsTransient(err):
		_ = recipe.Pause(ctx, quickScanInterval)
		return nil
	case err != nil:
		return err
	}
	node := created.Nodes[0]
	defer primitives.Of(s).Discard(nil, node.Path)
	scanner := scannerOf(s, q.Client.Config().Root)
	defer scanner.leave()
	pause := quickScanInterval
	for quick := maxQuickScans; ctx.Err() == nil && s.Err() == nil; {
		done, err := scanner.awaitScan(ctx, node.Path, q.heldPaths, pause)
		seen := false
		if err == nil {
			seen, err = q.judgeScan(ctx, scanner, done, node.Path, &stored)
		}
		pause = scanInterval
		switch {
		case errors.Is(err, framework.ErrNoNode): // another client has deleted the record
			return nil
		case err != nil && !failure.IsTransient(err) && ctx.Err() == nil && s.Err() == nil:
			return err
		case seen && quick > 0:
			pause = quickScanInterval
			quick--
		}
	}
	return nil
}

// describe returns the record of what the request waits for now, and of what its caller holds now.
// It returns false if the request has no node in line yet, or if the caller holds no lock any more.
func (q *Request) describe() (r record, waits bool) {
	node, ok := q.Waits()
	held := q.Held()
	if !ok || len(held) == 0 {
		return record{}, false
	}
	owner := recipe.OwnerOf(q.Client)
	return record{Version: recordVersion, Lock: WithRoot(q.Client.Config().Root, q.Lock), LineNode: node,
		Permits: q.Permits, Held: held, Report: q.ReportOnly, Owner: owner, Since: q.since.UTC()}, true
}

// judgeScan reports whether a scan has seen a cycle with this request in it. It confirms in the
// request's record that the request still waits. Once all requests of the cycle have confirmed
// that, the victim fails.
func (q *Request) judgeScan(ctx context.Context, scanner *sessionScanner, done *scan, path string,
	stored *record) (seen bool, err error) {
	if done.gone[path] {
		return false, framework.ErrNoNode
	}
	current, waits := q.describe() // after the reads: it describes a later moment than all that was read
	if !waits || ctx.Err() != nil {
		return false, nil
	}
	current.Seen = stored.Seen
	g := done.graph
	me := g.records[path]
	cycle := g.cycles[me]
	if len(cycle) > 0 {
		current.Seen = max(current.Seen, g.completedBy(cycle))
	}
	moved := current.LineNode != stored.LineNode || !slices.Equal(current.Held, stored.Held)
	if moved || current.Seen != stored.Seen {
		scanner.count(1)
		if _, err := scanner.s.Set(ctx, path, current.encode(), framework.AnyVersion); err != nil {
			return len(cycle) > 0, err
		}
		*stored = current
	}
	if moved { // the graph shows what this request waited for before
		return true, nil
	}
	if certain := g.certainCycle(me, cycle, true); len(certain) > 0 && g.victim(certain) == me {
		return q.handleDeadlock(ctx, g, me, certain), nil
	}
	return len(cycle) > 0, nil
}

// heldPaths are the paths of the locks that the caller holds, below the client's root.
func (q *Request) heldPaths() (paths []string) {
	for _, h := range q.Held() {
		if h, err := h.below(q.Client.Config().Root); err == nil {
			paths = append(paths, h.Lock)
		}
	}
	return paths
}

// handleDeadlock handles a certain deadlock of which this request is the victim: the request fails,
// or only reports the deadlock. It returns whether to scan again soon.
func (q *Request) handleDeadlock(ctx context.Context, g *graph, me *vertex, cycle vertexSet) bool {
	if q.ReportOnly {
		if completed := g.completedBy(cycle); completed != q.reported {
			q.reported = completed
			_ = q.Report(ctx, g.describeCycle(me, cycle))
		}
		return false
	}
	found := q.Report(ctx, g.describeCycle(me, cycle))
	q.deadlock.Store(&found)
	q.cancel(found)
	return true
}
