package workflow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// runExecutor is the Executor of a run: it has the run's delivery, and the record has not changed since it was read.
type runExecutor struct {
	ctx      context.Context
	delivery *queue.Delivery[runItem]
	version  framework.Op
}

func (e *runExecutor) Context() context.Context { return e.ctx }

func (e *runExecutor) Guard() framework.Op { return e.delivery.Guard() }

func (e *runExecutor) Token() int64 { return e.delivery.Token() }

func (e *runExecutor) guards() []framework.Op { return []framework.Op{e.delivery.Guard(), e.version} }

// runState is what a Run of Workflows has beside its steps.
type runState struct {
	store  *runStore
	stored storedRun

	mu      sync.Mutex
	timers  map[string]time.Time // when they are over, by the ensemble's clock
	signals map[string]signalRecord
	used    map[string]bool // names of timers that the function has used
	nodes   int             // below the run
	waits   []runWait       // for which the function has to be called again
	checks  []framework.Op  // that refuse to wait for what has come meanwhile
}

// addWait notes that the run has to wait, and returns ErrWaiting.
func (st *runState) addWait(w runWait, checks ...framework.Op) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waits, st.checks = append(st.waits, w), append(st.checks, checks...)
	return ErrWaiting
}

// awaited returns what the run has to wait for.
func (st *runState) awaited() ([]runWait, []framework.Op) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.waits, st.checks
}

// useTimer returns when a timer is over, and false if it has not begun. Each name may be used once.
func (st *runState) useTimer(name string) (until time.Time, begun bool, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.used[name] {
		return until, false, ErrRepeated
	}
	st.used[name] = true
	until, begun = st.timers[name]
	if st.nodes++; !begun && st.nodes > maxChildren {
		return until, false, fmt.Errorf("%w: the run has %d steps, timers and signals and may have no more", framework.ErrTooLarge, maxChildren)
	}
	return until, begun, nil
}

func (st *runState) signal(name string) (signalRecord, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s, ok := st.signals[name]
	return s, ok
}

// noteSignal notes a signal that was found or settled.
func (st *runState) noteSignal(name string, s signalRecord) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.signals[name] = s
}
