//go:build linux

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is one request of a process and its outcome.
type operation struct {
	id, process string
	request     event
	grant       event // At is 0 if not granted
	lastHeld    int64 // when the hold was last seen alive
	acking      bool  // it was about to acknowledge
	end         event // At is 0 while it is not over
	uncertain   bool  // of a call: its outcome is unknown
	abandoned   bool  // of a service's call: it was not carried out
}

// shownEvent is what a follower in a process was shown.
type shownEvent struct {
	process string
	event
}

// history collects the events since all clients last rested, and which processes are alive.
type history struct {
	mu         sync.Mutex
	lines      []string // in order of arrival
	open       map[string]*operation
	closed     []*operation
	alive      map[string]bool
	killed     map[string]bool // the harness killed it
	stopped    map[string]bool // the harness stopped it
	resting    map[string]string
	healedAt   int64            // time of faultsHealed
	firstGrant map[string]int64 // first grant since then, by process and by progressName
	summary    *summary
	errors     []error // found without a model
	purges     []porcupine.Operation
	shown      []shownEvent
	// what the followers of living processes were shown last, by process and path
	latest   map[string]event
	listings map[string]map[string]*listed // what living processes have registered or joined, by path and id
}

func newHistory(s *summary) *history {
	return &history{open: map[string]*operation{}, alive: map[string]bool{}, killed: map[string]bool{},
		stopped: map[string]bool{},
		resting: map[string]string{}, firstGrant: map[string]int64{}, summary: s, latest: map[string]event{},
		listings: map[string]map[string]*listed{instancesPath: {}, groupPath: {}}}
}

// add adds an event, and the line that it was read from.
func (h *history) add(process string, e event, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, process+" "+line)
	id := fmt.Sprintf("%s/%d", process, e.Op)
	if e.Step == stepGoroutine {
		return
	}
	if e.Step == stepResting {
		h.resting[process] = e.Order
		return
	}
	if e.Step == stepShown {
		h.addShown(process, e)
		return
	}
	if e.Step == stepUndocumented {
		h.errors = append(h.errors,
			fmt.Errorf("%s: %s of %s has returned an error that its documentation does not allow: %s", process, e.Order,
				e.Path, e.Error))
		return
	}
	if e.Step == stepRequested {
		h.open[id] = &operation{id: id, process: process, request: e}
		if e.Kind == kindLeave {
			delete(h.listings[e.Path], e.Item)
		}
		return
	}
	if op := h.open[id]; op != nil {
		h.update(op, e)
	}
}

// update applies an event to its operation.
func (h *history) update(op *operation, e event) {
	switch e.Step {
	case stepGranted:
		op.grant = e
		h.summary.addOperation(op.request.Kind)
		h.noteProgress(e.At, op.process, progressName(op.request.Path, op.request.Kind))
		if op.request.Kind.isCall() {
			h.closeOperation(op, e)
		}
		h.updateListing(op)
	case stepStillHeld:
		op.lastHeld = e.At
	case stepAcking:
		op.acking = true
	case stepAbandoned:
		h.summary.addMissed(op.request.Kind)
		delete(h.open, op.id)
		if op.request.Kind.isServiceCall() {
			op.abandoned = true
			h.closeOperation(op, e)
		}
	case stepUnknown:
		h.summary.addMissed(op.request.Kind)
		op.uncertain = true
		h.closeOperation(op, e)
		h.updateListing(op)
	case stepFailed:
		h.errors = append(h.errors,
			fmt.Errorf("%s: %s of %s failed: %s", op.id, op.request.Kind, op.request.Path, e.Error))
		delete(h.open, op.id)
	case stepEnded:
		op.lastHeld = max(op.lastHeld, e.LastHeld)
		h.summary.addEnd(e.End)
		if e.End == endReleased && e.Error != "" {
			// without servers, the release of a lock and of a term is unconfirmed; it never fails
			h.errors = append(h.errors, fmt.Errorf("%s: the release of %s failed: %s", op.id, op.request.Path, e.Error))
		}
		h.closeOperation(op, e)
	}
}

// progressName returns the name of what a request asks for.
func progressName(path string, k requestKind) string {
	if k == kindPut || k == kindDelivery || k == kindExecution {
		return path + " " + string(k)
	}
	return path
}

func (h *history) noteProgress(at int64, names ...string) {
	for _, name := range names {
		if _, known := h.firstGrant[name]; !known && at > h.healedAt {
			h.firstGrant[name] = at
		}
	}
}

// faultsHealed notes that the last fault was undone.
func (h *history) faultsHealed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.healedAt = now()
	clear(h.firstGrant)
}

// withoutProgress returns the living processes, and those of the names, that were granted nothing
// since the faults were healed. If all were granted something, elapsed is how long that took.
func (h *history) withoutProgress(names ...string) (missing []string, elapsed time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range append(slices.Sorted(maps.Keys(h.alive)), names...) {
		at, known := h.firstGrant[name]
		if !known {
			missing = append(missing, name)
		}
		elapsed = max(elapsed, time.Duration(at-h.healedAt))
	}
	return missing, elapsed
}

func (h *history) closeOperation(op *operation, e event) {
	op.end = e
	h.closed = append(h.closed, op)
	delete(h.open, op.id)
}

func (h *history) processStarted(process string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive[process] = true
}

func (h *history) expectKill(process string) { h.markProcess(h.killed, process) }
func (h *history) expectExit(process string) { h.markProcess(h.stopped, process) }

func (h *history) markProcess(as map[string]bool, process string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	as[process] = true
}

// processEnded notes the end of a process. Its holds ended at some time after they were last seen
// alive.
func (h *history) processEnded(process string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.killed[process] && (!h.stopped[process] || err != nil) {
		h.errors = append(h.errors, fmt.Errorf("%s ended without an order: %w", process, err))
	}
	delete(h.alive, process)
	delete(h.killed, process)
	delete(h.stopped, process)
	delete(h.resting, process)
	delete(h.firstGrant, process)
	for _, path := range followedPaths {
		delete(h.latest, process+" "+path)
	}
	for _, listing := range h.listings {
		maps.DeleteFunc(listing, func(_ string, l *listed) bool { return l.process == process })
	}
	for _, id := range slices.Sorted(maps.Keys(h.open)) {
		if op := h.open[id]; op.process == process {
			h.closeOfDeadProcess(op)
		}
	}
}

// closeOfDeadProcess closes an open operation of a dead process.
func (h *history) closeOfDeadProcess(op *operation) {
	delete(h.open, op.id)
	switch {
	case op.request.Kind.isCall():
		op.uncertain = true
		h.closed = append(h.closed, op)
	case op.grant.At == 0: // it was not granted
	default:
		op.end = event{End: endProcessDied}
		if op.acking {
			op.end.End = endUncertain
		}
		h.summary.addEnd(endProcessDied)
		h.closed = append(h.closed, op)
	}
}

// addError adds a violation that was found without a model.
func (h *history) addError(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors = append(h.errors, err)
}

// notResting returns the living processes that have not reported that they have carried out this
// order.
func (h *history) notResting(order string) (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.alive {
		if h.resting[name] != order {
			names = append(names, name)
		}
	}
	return names
}

// segment is the history from one rest to the next.
type segment struct {
	operations []*operation
	until      int64
	lines      []string
	errors     []error
	purges     []porcupine.Operation // of the queue at featuresPath
	shown      []shownEvent          // in the order of arrival
	atRest     *servicesAtRest       // nil if the clients did not come to rest
	runs       []finishedRun         // that no earlier segment has seen
}

// takeSegment removes and returns the history since the last rest.
func (h *history) takeSegment() segment {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := segment{operations: h.closed, until: now(), lines: h.lines, errors: h.errors, purges: h.purges, shown: h.shown}
	for _, op := range h.open {
		s.errors = append(s.errors, fmt.Errorf("%s is still busy with %s %s when all clients should rest", op.id,
			op.request.Kind, op.request.Path))
	}
	h.closed, h.lines, h.errors, h.purges, h.shown = nil, nil, nil, nil, nil
	return s
}

// noReturn is the end of a purge that returned an error: the server may still carry it out.
const noReturn = 0

// addPurge adds a purge of the queue at featuresPath.
func (h *history) addPurge(from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purges = append(h.purges, porcupine.Operation{Input: modelInput{op: opPurge}, Call: from, Return: to})
}

// logHarness adds a line on what the harness does.
func (h *history) logHarness(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf(`harness {"t":%d,"fault":%q}`, now(), text))
}
