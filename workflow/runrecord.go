package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// State is where a run is in its life.
type State string

// The states of a run.
const (
	// Active: an executor has the run, or takes it as soon as one is free.
	Active State = "active"
	// Waiting: the run waits for a time, a signal or a child run. It has no executor.
	Waiting State = "waiting"
	// Done: the function has returned a result.
	Done State = "done"
	// Failed: the function's attempts are used up, its error was Permanent, or too many executors
	// died. Retry goes on with the run.
	Failed State = "failed"
	// Cancelled: Cancel has ended the run.
	Cancelled State = "cancelled"
)

// IsFinished reports whether the run has ended.
func (s State) IsFinished() bool { return s == Done || s == Failed || s == Cancelled }

// The limits of runs, beside those of a ledger.
const (
	// MaxWorkers is the most runs of one kind that a process may execute at once.
	MaxWorkers = 256
	// MaxSignal is how many bytes the data of a signal may have as JSON.
	MaxSignal = 8 << 10
	// maxTimers is how many sleeps and waits with a limit a run may have.
	maxTimers = 2 * MaxSteps
	// maxSignals is how many signals a run may have that it does not wait for, together with its
	// waits that have timed out.
	maxSignals = 2 * MaxSteps
	// maxChildren is how many nodes a run may have when it gets a signal that it waits for.
	maxChildren = 6 * MaxSteps
)

const (
	runKind      = "run"
	formerKind   = "former"
	timerPrefix  = "timer-"
	signalPrefix = "signal-"
	endsName     = "ends"
)

// runRecord is the data of a run's node.
type runRecord struct {
	Kind       string          `json:"kind"`
	UUID       string          `json:"id"` // made at the start: not the id that Start was given
	Workflow   string          `json:"workflow"`
	State      State           `json:"-"`
	StateText  string          `json:"state"` // State as it is stored; only encode and parseRun use it
	ItemNumber int64           `json:"turn"`  // number of the run's latest item in the queue
	Input      json.RawMessage `json:"input"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`    // of the latest failed attempt, or the reason of the end
	Failures   int             `json:"failures,omitempty"` // failed attempts since the run last waited
	Waits      []runWait       `json:"waits,omitempty"`
	// ids of the children that it waited for last, without the one whose end has woken it
	Waited []string `json:"waited,omitempty"`
	// the version of the node that counts ends of children, plus 1, when the run was suspended
	// last; 0: there is none
	Ends int32 `json:"ends,omitempty"`
	Held bool  `json:"held,omitempty"` // cancelled while the latest item is in the queue
	// the UUIDs of the latest calls of Cancel and Retry, the latest one last
	Requests []string          `json:"requests,omitempty"`
	Parent   *parentRun        `json:"parent,omitempty"`
	Trace    map[string]string `json:"trace,omitempty"`
	Keep     int64             `json:"keep,omitempty"` // for how many milliseconds after the run's end its id is kept

	unknown recipe.Unknown
}

// runWait is one thing that a waiting run waits for. Several of them end with the first.
type runWait struct {
	Signal string `json:"signal,omitempty"`
	Number int    `json:"number,omitempty"` // of the signal among those of its name, from 2; 0: the first one
	Child  string `json:"child,omitempty"`
	Until  int64  `json:"until,omitempty"` // a time of the ensemble's clock, in milliseconds
	Retry  bool   `json:"retry,omitempty"` // after a failed attempt
}

// signal is what the wait is for, if it is for a signal.
func (w runWait) signal() numbered { return numbered{w.Signal, max(1, w.Number)} }

// parentRun is the run that has started a child run.
type parentRun struct {
	ID   string `json:"run"`
	UUID string `json:"id"`
}

// runItem is an item of the queue. It lets one executor take the run, if it is still the
// run's latest item.
type runItem struct {
	ID         string `json:"run"`
	UUID       string `json:"id"`
	ItemNumber int64  `json:"turn"`
}

// item is the run's latest item.
func (r runRecord) item(id string) *runItem { return &runItem{id, r.UUID, r.ItemNumber} }

// waitsFor reports whether a run waits for something that matches.
func (r runRecord) waitsFor(match func(runWait) bool) bool {
	if r.State != Waiting {
		return false
	}
	for _, w := range r.Waits {
		if match(w) {
			return true
		}
	}
	return false
}

// begin returns the record of a run that is to be started.
func (r runRecord) begin() runRecord {
	r.Kind, r.UUID, r.State, r.ItemNumber = runKind, uuid.NewString(), Active, 1
	return r
}

// activate returns the record of a run that gets another item.
func (r runRecord) activate() runRecord {
	r.ItemNumber++
	return r.resume()
}

// resume returns the record of a run that waits no more.
func (r runRecord) resume() runRecord {
	r.Waited = nil
	for _, w := range r.Waits {
		if w.Child != "" {
			r.Waited = append(r.Waited, w.Child)
		}
	}
	r.State, r.Waits = Active, nil
	return r
}

// keptRequests is how many UUIDs of requests a record keeps.
const keptRequests = 4

// withRequest returns the record with the UUID of one more request.
func (r runRecord) withRequest(request string) runRecord {
	r.Requests = append(slices.Clone(r.Requests[max(0, len(r.Requests)-keptRequests+1):]), request)
	return r
}

// hasRequestsSince reports whether the record has the UUIDs of all requests since an earlier record
// of the run.
func (r runRecord) hasRequestsSince(before runRecord) bool {
	if len(r.Requests) < keptRequests {
		return true
	}
	return len(before.Requests) > 0 && slices.Contains(r.Requests, before.Requests[len(before.Requests)-1])
}

// parseRun reads the data of the node at path.
func parseRun(path string, data []byte) (r runRecord, err error) {
	if r.unknown, err = recipe.Decode(data, recordVersion, &r); err != nil {
		return runRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	r.State, r.StateText = stateTexts.ValueOf(r.StateText), ""
	if r.Kind == formerKind {
		return runRecord{}, fmt.Errorf("%w: that of %s was removed", errNoRun, path)
	}
	if r.Kind != runKind || r.UUID == "" {
		return runRecord{}, fmt.Errorf("%w: %s is no run", errForeign, path)
	}
	if r.ItemNumber < 1 || len(r.Input) == 0 || !r.State.isKnown() {
		return runRecord{}, fmt.Errorf("%w: %s has item number %d, state %.20q and %d bytes of input", framework.ErrBadRecord,
			path, r.ItemNumber, r.State, len(r.Input))
	}
	return r, nil
}

func (s State) isKnown() bool { return s == Active || s == Waiting || s.IsFinished() }

func (r runRecord) encode() ([]byte, error) {
	r.StateText = stateTexts.TextOf(r.State)
	return r.unknown.Encode(recordVersion, r)
}

// stateTexts stay as they are when the texts that applications see change.
var stateTexts = stored.Texts[State]{Active: "active", Waiting: "waiting", Done: "done", Failed: "failed",
	Cancelled: "cancelled"}

// formerRecord is the data of the node of a run that was removed and whose id is kept (WithKeptID).
// It tells Start what was started.
type formerRecord struct {
	Kind     string `json:"kind"`
	Workflow string `json:"workflow"`
	Input    string `json:"input"` // the SHA-256 of the run's input, in hexadecimal digits
	Until    int64  `json:"until"` // a time of the ensemble's clock, in milliseconds
}

// former is what stays of a run that has ended at a time.
func (r runRecord) former(ended time.Time) formerRecord {
	sum := sha256.Sum256(r.Input)
	return formerRecord{formerKind, r.Workflow, hex.EncodeToString(sum[:]), ended.UnixMilli() + r.Keep}
}

func parseFormer(path string, data []byte) (f formerRecord, err error) {
	if _, err = recipe.Decode(data, recordVersion, &f); err == nil && f.Kind != formerKind {
		err = fmt.Errorf("%w: it is no former run", errForeign)
	}
	if err != nil {
		return formerRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// timerRecord is the data of a timer's node: when the node was made and how long the timer runs say
// when it is over.
type timerRecord struct {
	Millis int64 `json:"ms"`
}

// until is when the timer is over, by the ensemble's clock, which stamps whole milliseconds.
func (r timerRecord) until(node framework.Stat) time.Time {
	return node.Ctime.Add(time.Duration(r.Millis+1) * time.Millisecond)
}

// maxWait is the longest time of a Sleep or an Await.
const maxWait = 5 * 365 * 24 * time.Hour

func parseTimer(path string, data []byte) (r timerRecord, err error) {
	if _, err = recipe.Decode(data, recordVersion, &r); err == nil &&
		(r.Millis < 0 || r.Millis > maxWait.Milliseconds()) {
		err = fmt.Errorf("%w: %d ms", framework.ErrBadRecord, r.Millis)
	}
	if err != nil {
		return timerRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// signalRecord is the data of a signal's node. The node settles for ever whether the signal came or
// the wait for it timed out.
type signalRecord struct {
	Data     json.RawMessage `json:"data,omitempty"`
	ID       string          `json:"id,omitempty"` // that the sender gave it (WithSignalID)
	TimedOut bool            `json:"timedOut,omitempty"`
}

func parseSignal(path string, data []byte) (r signalRecord, err error) {
	if _, err = recipe.Decode(data, recordVersion, &r); err == nil && !r.TimedOut && len(r.Data) == 0 {
		err = fmt.Errorf("%w: it has no data", framework.ErrBadRecord)
	}
	if err != nil {
		return signalRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// splitChild splits the name of a node below a run into its kind and the name. The kind is "" for a
// foreign node.
func splitChild(node string) (kind, name string) {
	kind, of := splitNumbered(node)
	return kind, of.name
}

// numbered is the k-th signal of a name, or the timer of the k-th wait for it, from 1. A step and a
// sleep are the first of their names.
type numbered struct {
	name   string
	number int
}

// node is the name of the node of a kind: signal-<name>, and signal<k>-<name> from the second on.
func (n numbered) node(kind string) string {
	if n.number == 1 {
		return kind + n.name
	}
	return strings.TrimSuffix(kind, "-") + strconv.Itoa(n.number) + "-" + n.name
}

// splitNumbered is splitChild with the number.
func splitNumbered(node string) (kind string, of numbered) {
	if node == endsName {
		return endsName, of
	}
	for _, kind := range []string{stepPrefix, timerPrefix, signalPrefix} {
		if name, ok := strings.CutPrefix(node, kind); ok {
			return kind, numbered{name, 1}
		}
		rest, ok := strings.CutPrefix(node, strings.TrimSuffix(kind, "-"))
		digits, name, hyphen := strings.Cut(rest, "-")
		number, err := strconv.Atoi(digits)
		if ok && hyphen && kind != stepPrefix && err == nil && number > 1 && strconv.Itoa(number) == digits {
			return kind, numbered{name, number}
		}
	}
	return "", numbered{node, 1}
}
