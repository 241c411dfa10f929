package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

// Run is a run of Workflows while this process executes it: the function of its Kind gets one in
// each call.
type Run struct {
	*stepRecorder
	state *runState
}

// ID is the id that Start was given. It may be used again when the run has been removed after its
// retention time; a UUID is never used again.
func (r *Run) ID() string { return r.state.stored.id }

// runExecutor is the Executor of a run. Its guards are the guard of the run's delivery, and a check
// that the record has not changed since it was read.
type runExecutor struct {
	ctx      context.Context
	delivery *queue.Delivery[runItem]
	version  framework.Op // refuses a transaction after a change of the record
}

func (e *runExecutor) Context() context.Context { return e.ctx }

func (e *runExecutor) Guard() framework.Op { return e.delivery.Guard() }

func (e *runExecutor) Token() int64 { return e.delivery.Token() }

func (e *runExecutor) guards() []framework.Op { return []framework.Op{e.delivery.Guard(), e.version} }

// runState is what a Run has beside its steps.
type runState struct {
	store  *runStore
	stored storedRun

	mu      sync.Mutex
	timers  map[numbered]time.Time // when each timer is over, by the ensemble's clock
	signals map[numbered]signalRecord
	awaits  map[string]int    // how often each signal was awaited in this call of the function
	claim   int               // the latest claim of the run's latest item with which a step was recorded, or 0
	begun   int               // how many timers have begun, those of this call of the function among them
	used    map[numbered]bool // names of timers that the function has used
	waits   []runWait         // what the run waits for before its function is called again
}

// addWait records that the run has to wait, and returns ErrWaiting.
func (state *runState) addWait(w runWait) error {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.waits = append(state.waits, w)
	return ErrWaiting
}

// awaited returns what the run has to wait for.
func (state *runState) awaited() []runWait {
	state.mu.Lock()
	defer state.mu.Unlock()
	return state.waits
}

// useTimer returns when a timer is over, and false if it has not begun. Each name may be used once.
func (state *runState) useTimer(name numbered) (until time.Time, begun bool, err error) {
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.used[name] {
		return until, false, errRepeated
	}
	state.used[name] = true
	until, begun = state.timers[name]
	if begun {
		return until, true, nil
	}
	if state.begun++; state.begun > maxTimers {
		return until, false, fmt.Errorf("%w: the run has %d sleeps and waits with a limit and may have no more",
			framework.ErrTooLarge, maxTimers)
	}
	return until, false, nil
}

// nextSignal returns which signal of a name is awaited now, and that signal if it has come.
func (state *runState) nextSignal(name string) (next numbered, s signalRecord, come bool) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.awaits[name]++
	next = numbered{name, state.awaits[name]}
	s, come = state.signals[next]
	return next, s, come
}

// addSignal adds a signal that was found or settled.
func (state *runState) addSignal(name numbered, s signalRecord) {
	state.mu.Lock()
	defer state.mu.Unlock()
	state.signals[name] = s
}

// openStoredRun makes the Run of an executor from the nodes below the run's node.
func openStoredRun(ctx context.Context, s *framework.Session, store *runStore, r storedRun, e Executor) (*Run, error) {
	run := &Run{newStepRecorder(&Ledger{client: store.client, path: r.node, tel: store.tel}, e, r.UUID),
		&runState{store: store, stored: r, timers: map[numbered]time.Time{},
			signals: map[numbered]signalRecord{}, awaits: map[string]int{}, used: map[numbered]bool{}}}
	if r.stat.NumChildren == 0 {
		return run, nil
	}
	children, err := store.childrenOnce(ctx, s, r)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, recipe.ErrAgain
	}
	if err != nil {
		return nil, err
	}
	if err := run.addChildren(children); err != nil {
		return nil, err
	}
	if stored := &run.state.stored; stored.ends.version == stored.Ends && stored.Ends > 0 {
		// no other child has ended since the run was suspended
		stored.ends.unended = map[string]bool{}
		for _, id := range stored.Waited {
			stored.ends.unended[id] = true
		}
	}
	return run, nil
}

// addChildren adds the steps, timers and signals below a run.
func (r *Run) addChildren(children []childNode) error {
	for _, c := range children {
		node := znode.Join(r.ledger.path, c.name)
		switch kind, of := splitNumbered(c.name); kind {
		case stepPrefix:
			step, err := parseStep(node, c.Data)
			if err != nil {
				return err
			}
			r.addRecord(of.name, step)
			if step.ItemNumber == r.state.stored.ItemNumber {
				r.state.claim = max(r.state.claim, step.Claim)
			}
		case timerPrefix:
			timer, err := parseTimer(node, c.Data)
			if err != nil {
				return err
			}
			r.state.timers[of] = timer.until(c.Stat)
			r.state.begun++
		case signalPrefix:
			signal, err := parseSignal(node, c.Data)
			if err != nil {
				return err
			}
			r.state.addSignal(of, signal)
		case endsName:
			r.state.stored.ends.version = c.Stat.Version + 1
		default:
			return fmt.Errorf("%w: %q below %s is no step, timer or signal", errForeign, c.name, r.ledger.path)
		}
	}
	return nil
}
