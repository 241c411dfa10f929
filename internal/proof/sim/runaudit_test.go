package sim

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// runAudit knows from the server's requests what has become of each run, and checks each change
// against the one before.
type runAudit struct {
	sim       *simulation
	path      string // of the workflows
	retention time.Duration

	mu       sync.Mutex
	moment   int // counts the requests that have changed something
	lives    []*runLife
	standing map[string]*runLife // the run that is on the servers, by its name
	byID     map[string]*runLife
	items    map[string]string // the UUID of the run of an item, by the item's node
	hit      map[string]bool   // nodes of items whose claims an operator has deleted, perhaps before the item was there
	keys     map[string]string // which step of which run has an idempotency key
}

// runLife is a run from its start until it was removed. Another run may have its name before or
// after.
type runLife struct {
	name, id, kind string
	input, parent  string
	from, until    int // moments; until is 0 while it is on the servers
	versions       []runVersion
	steps          map[string]string   // the recorded results
	recorded       map[string][]string // all results that a step has ever had
	signals        map[string]simSignal
	retriedWaits   map[string]bool      // signals whose wait had timed out before a retry
	timers         map[string]time.Time // when they began, by the ensemble's clock
	deletions      int                  // transactions that have deleted steps
	swept          bool                 // records were deleted, and not by a retry
	cancels        int                  // calls of Cancel that have begun
	retries        int                  // calls of Retry that have begun, without the changes that they explain

	effects  map[string][]string // what the functions of steps have returned
	returned []string            // what the run's function has returned
	token    int64               // the highest that any step was given
	tokenOf  string              // the process that had it
	hit      bool                // an operator has deleted a claim on its item
	executor *execution          // the latest
}

// runVersion is the record of a run, which stood from this moment until that of the next version.
type runVersion struct {
	from   int
	at     time.Time // by the ensemble's clock
	record simRunRecord
}

// simRunRecord is what the checker reads of a run's record.
type simRunRecord struct {
	ID, Workflow string
	State        workflow.State
	ItemNumber   int64 `json:"turn"`
	Input        json.RawMessage
	Result       json.RawMessage
	Error        string
	Held         bool
	Waits        []simRunWait
	Requests     []string // the latest calls of Cancel and Retry
	Parent       *struct{ Run, ID string }
}

type simRunWait struct {
	Signal, Child string
	Until         int64
	Retry         bool
}

// simSignal is a signal's node.
type simSignal struct {
	Data     json.RawMessage
	TimedOut bool
}

func newRunAudit(sim *simulation, path string, retention time.Duration) *runAudit {
	u := &runAudit{sim: sim, path: path, retention: retention, standing: map[string]*runLife{},
		byID:  map[string]*runLife{},
		items: map[string]string{}, keys: map[string]string{}, hit: map[string]bool{}}
	sim.zk.Observe(u.observe)
	return u
}

func (l *runLife) record() simRunRecord { return l.versions[len(l.versions)-1].record }

func (u *runAudit) observe(q zktest.Request) {
	parts := q.Parts
	if len(parts) == 0 {
		parts = []zktest.Request{q}
	}
	if q.Err != 0 || slices.ContainsFunc(parts, func(part zktest.Request) bool { return part.Err != 0 }) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.moment++
	retried := map[string]bool{}
	for _, part := range parts {
		node, isRun := strings.CutPrefix(part.Path, u.path+"/runs/")
		names := strings.Split(node, "/") // the shard, the run, its child
		switch {
		case isRun && len(names) == 2:
			retried[names[1]] = u.noteRun(part, names[1])
		case isRun && len(names) == 3:
			u.noteChild(part, names[1], names[2], retried[names[1]])
		}
	}
	for _, part := range parts { // after the runs that the items are for
		if strings.HasPrefix(part.Path, u.path+"/queues/") {
			u.noteQueue(part, q.Session)
		}
	}
}

func isCreate(part zktest.Request) bool {
	return part.Op == zktest.OpCreate || part.Op == zktest.OpCreate2 || part.Op == zktest.OpCreateContainer
}

// noteRun notes a change of a run's record. It reports whether the run goes on after a retry.
func (u *runAudit) noteRun(part zktest.Request, name string) (retried bool) {
	l := u.standing[name]
	switch {
	case isCreate(part):
		r := decodeRecord[simRunRecord](part.Data)
		l = &runLife{name: name, id: r.ID, kind: r.Workflow, input: string(r.Input), from: u.moment,
			steps: map[string]string{}, recorded: map[string][]string{},
			signals: map[string]simSignal{}, retriedWaits: map[string]bool{}, timers: map[string]time.Time{},
			effects: map[string][]string{}}
		if r.Parent != nil {
			l.parent = r.Parent.Run
		}
		l.versions = []runVersion{{u.moment, u.sim.ensembleTime(), r}}
		u.lives = append(u.lives, l)
		u.standing[name], u.byID[r.ID] = l, l
	case part.Op == zktest.OpSetData:
		before, r := l.record(), decodeRecord[simRunRecord](part.Data)
		retried = u.checkChange(l, before, r)
		l.versions = append(l.versions, runVersion{u.moment, u.sim.ensembleTime(), r})
	case part.Op == zktest.OpDelete:
		last := l.versions[len(l.versions)-1]
		if !last.record.State.IsFinished() || !u.isLeftByFormerParent(last.record) &&
			u.sim.ensembleTime().Sub(last.at) < u.retention-time.Millisecond {
			// times of nodes leave out what is less
			u.add("retention", "run %s was removed, it is %s since %v", name, last.record.State,
				u.sim.ensembleTime().Sub(last.at))
		}
		l.until = u.moment
		delete(u.standing, name)
	}
	return retried
}

// isLeftByFormerParent reports whether a run is the child of a run that was removed, and whose id
// another run has now: that one removes the child once it has finished.
func (u *runAudit) isLeftByFormerParent(r simRunRecord) bool {
	if r.Parent == nil || u.byID[r.Parent.ID] == nil {
		return false
	}
	now := u.standing[u.byID[r.Parent.ID].name]
	return now != nil && now.id != r.Parent.ID
}

// checkChange checks that a run may change from one record to the next. It reports whether somebody
// has retried the run.
func (u *runAudit) checkChange(l *runLife, before, after simRunRecord) (retried bool) {
	switch {
	case before.State.IsFinished() && after.State == workflow.Active, isRetryWait(before) &&
		after.State == workflow.Active && after.ItemNumber > before.ItemNumber:
		retried = true
		if l.swept {
			u.add("retention", "run %s goes on after its records were removed", l.name)
		}
		if l.retries--; l.retries < 0 {
			u.add("one end", "run %s was %s and is active, though nobody has retried it", l.name, before.State)
		}
	case before.State.IsFinished() && (before.State != after.State || !bytes.Equal(before.Result, after.Result)):
		u.add("one end", "run %s was %s with result %s and is %s with result %s", l.name, before.State, before.Result,
			after.State, after.Result)
	case before.State.IsFinished():
	case after.State == workflow.Done && !slices.Contains(l.returned, string(after.Result)):
		u.add("result", "run %s is done with %s, which its function has not returned; it has %q", l.name,
			after.Result, l.returned)
	case after.State == workflow.Done && before.State != workflow.Active:
		u.add("one end", "run %s is done, though it was %s", l.name, before.State)
	case after.State == workflow.Cancelled && l.cancels == 0:
		u.add("one end", "run %s is cancelled, though nobody has asked for that", l.name)
	case after.State == workflow.Failed && after.Error == "":
		u.add("reason", "run %s has failed without a reason", l.name)
	case after.State == workflow.Waiting && len(after.Waits) == 0:
		u.add("reason", "run %s waits for nothing", l.name)
	}
	if after.ItemNumber < before.ItemNumber || after.ID != before.ID || after.Workflow != before.Workflow ||
		!bytes.Equal(after.Input, before.Input) {
		u.add("identity", "run %s was %+v and is %+v", l.name, before, after)
	}
	return retried
}

func isRetryWait(r simRunRecord) bool {
	return r.State == workflow.Waiting && len(r.Waits) == 1 && r.Waits[0].Retry
}

// noteChild notes that a step, a timer or a signal of a run was made or deleted.
func (u *runAudit) noteChild(part zktest.Request, run, child string, retried bool) {
	l := u.standing[run]
	kind, name, _ := strings.Cut(child, "-")
	switch {
	case part.Op == zktest.OpDelete && kind == "step":
		if !retried && !l.record().State.IsFinished() {
			u.add("recorded", "the record of step %s of run %s was deleted", name, run)
		}
		l.deletions++
		l.swept = l.swept || !retried
		delete(l.steps, name)
	case part.Op == zktest.OpDelete && kind == "signal":
		s := l.signals[name]
		if (len(s.Data) > 0 || s.TimedOut && !retried) && !l.record().State.IsFinished() {
			u.add("signals", "signal %s of run %s was deleted", name, run)
		}
		l.retriedWaits[name] = l.retriedWaits[name] || s.TimedOut
		delete(l.signals, name)
	case part.Op == zktest.OpDelete:
		delete(l.timers, name)
	case !isCreate(part):
	case kind == "signal" && len(part.Data) > 0:
		l.signals[name] = decodeRecord[simSignal](part.Data)
	case kind == "timer":
		l.timers[name] = u.sim.ensembleTime()
	case kind == "step":
		u.noteStep(l, name, part.Data)
	}
}

// noteStep checks the record of a step.
func (u *runAudit) noteStep(l *runLife, name string, data []byte) {
	r := decodeRecord[struct {
		Result json.RawMessage
		Token  int64
	}](data)
	result := string(r.Result)
	switch {
	case l.record().State != workflow.Active:
		u.add("zombie", "step %s of run %s was recorded while the run is %s", name, l.name, l.record().State)
	case r.Token < l.token:
		u.add("zombie", "step %s of run %s was recorded with token %d after one of token %d", name, l.name,
			r.Token, l.token)
	case isChildStep(name) && !u.hasChildResult(l.name+"."+name, result):
		u.add("children", "%s of run %s was recorded with %s, with which no child has ended", name, l.name, result)
	case !isChildStep(name) && !slices.Contains(l.effects[name], result):
		u.add("recorded", "step %s of run %s was recorded with %s, which its function has not returned", name,
			l.name, result)
	}
	l.steps[name] = result
	l.recorded[name] = append(l.recorded[name], result)
	u.sim.countOperation("run's step")
}

func isChildStep(name string) bool { return strings.HasPrefix(name, "child") }

func (u *runAudit) hasChildResult(child, result string) bool {
	for _, l := range u.lives {
		if l.name == child && slices.ContainsFunc(l.versions,
			func(v runVersion) bool { return v.record.State == workflow.Done && string(v.record.Result) == result }) {
			return true
		}
	}
	return false
}

// runOfItem finds the UUID of a run in the data of an item.
var runOfItem = regexp.MustCompile(`"run":"[^"]*","id":"([^"]*)"`)

// noteQueue notes which run an item is for, and which claims an operator deletes.
func (u *runAudit) noteQueue(part zktest.Request, session framework.SessionID) {
	rest := strings.TrimPrefix(part.Path, u.path+"/queues/")
	kind, inside, _ := strings.Cut(rest, "/")
	if found := runOfItem.FindSubmatch(part.Data); isCreate(part) && found != nil {
		node := part.Path
		if part.Result != "" {
			node = part.Result
		}
		u.items[node] = string(found[1])
		u.noteHit(node)
	}
	if part.Op == zktest.OpDelete && strings.HasPrefix(inside, "tickets/") && u.sim.observer.processOf(session) == nil {
		node := itemOfTicket(u.path+"/queues/"+kind, part.Path)
		u.hit[node] = true
		u.noteHit(node)
	}
}

// noteHit notes that the executor of the run of an item may find out late that it has ended.
func (u *runAudit) noteHit(node string) {
	if l := u.byID[u.items[node]]; l != nil && u.hit[node] {
		l.hit = true
	}
}

// itemOfTicket is the item's node that a ticket of a queue claims.
func itemOfTicket(queue, ticket string) string {
	segment, name := znode.Split(strings.TrimPrefix(ticket, queue+"/tickets/"))
	if !strings.HasPrefix(segment, "items/") {
		segment = "lanes/" + segment
	}
	return queue + "/" + segment + "/i-" + name[strings.LastIndex(name, "-")+1:]
}

func (u *runAudit) add(rule, format string, args ...any) {
	u.sim.addViolation(u.path, rule, format, args...)
}

// execution is one call of a run's function.
type execution struct {
	process *process
	ctx     interface{ Done() <-chan struct{} }
	life    *runLife
	version int // how many versions the record had
	over    bool
}

// isStanding reports whether the code of an execution may believe that it is the only one.
func (u *runAudit) isStanding(e *execution) bool {
	select {
	case <-e.ctx.Done():
		return false
	default:
	}
	return !e.over && !e.life.hit && e.version == len(e.life.versions) && e.process.ctx.Err() == nil &&
		!e.process.frozen() && !u.sim.isHitByOperator(e.process)
}

// begin notes that a run's function was called, beside no other one.
func (u *runAudit) begin(e *execution, id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	e.life = u.byID[id]
	e.version = len(e.life.versions)
	u.sim.countOperation("run's execution")
	if former := e.life.executor; former != nil && u.isStanding(former) && u.isStanding(e) {
		u.add("exclusion", "%s executes run %s beside %s", e.process.name, e.life.name, former.process.name)
	}
	e.life.executor = e
}

// end notes what the function returns.
func (u *runAudit) end(e *execution, result string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	e.over = true
	if err == nil {
		data, _ := json.Marshal(result)
		e.life.returned = append(e.life.returned, string(data))
	}
}

// beginEffect checks that a step's function may be called.
func (u *runAudit) beginEffect(e *execution, name string, key workflow.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := e.life
	step := l.id + " " + name
	if other, taken := u.keys[key.ID]; taken && other != step {
		u.add("keys", "step %s of run %s has the key %s, as %s", name, l.name, key.ID, other)
	}
	u.keys[key.ID] = step
	if u.isStanding(e) {
		switch _, done := l.steps[name]; {
		case done:
			u.add("repeated", "%s runs step %s of run %s, which has a record", e.process.name, name, l.name)
		case key.Token < l.token || key.Token == l.token && l.tokenOf != e.process.name:
			u.add("order", "%s runs step %s of run %s with token %d after token %d of %s", e.process.name, name, l.name,
				key.Token, l.token, l.tokenOf)
		case l.executor != e && u.isStanding(l.executor):
			u.add("exclusion", "%s runs step %s of run %s beside %s", e.process.name, name, l.name,
				l.executor.process.name)
		}
	}
	if key.Token > l.token {
		l.token, l.tokenOf = key.Token, e.process.name
	}
}

// endEffect notes the result of a step's function.
func (u *runAudit) endEffect(e *execution, name, result string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	data, _ := json.Marshal(result)
	e.life.effects[name] = append(e.life.effects[name], string(data))
}

// checkStep checks that a step returns what is recorded.
func (u *runAudit) checkStep(e *execution, name, result string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	data, _ := json.Marshal(result)
	recorded := e.life.recorded[name]
	if !slices.Contains(recorded, string(data)) || e.life.deletions == 0 && len(recorded) > 1 {
		u.add("recorded", "step %s of run %s returns %s, %q were recorded", name, e.life.name, data, recorded)
	}
}
