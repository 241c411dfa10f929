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

// episode is one operation of a process: an ask, and what came of it.
type episode struct {
	id, process string
	ask         event
	grant       event // its At is 0 if nothing was granted
	stood       int64 // when the hold was seen to stand last
	leaving     bool  // its acknowledgement was about to be sent
	end         event // its At is 0 while it is not over
	doubt       bool  // of a put: nobody knows whether it was done
}

// record is the history since the last rest, and who is alive.
type record struct {
	mu      sync.Mutex
	lines   []string // as they came
	open    map[string]*episode
	over    []*episode
	living  map[string]bool
	killed  map[string]bool // by the harness
	done    map[string]bool // sent home by the harness
	resting map[string]string
	healed  int64            // when
	first   map[string]int64 // grant since then, by process and by what is asked for
	tally   *tally
	faults  []error // what no model is needed for
	purges  []porcupine.Operation
}

func newRecord(t *tally) *record {
	return &record{open: map[string]*episode{}, living: map[string]bool{}, killed: map[string]bool{}, done: map[string]bool{},
		resting: map[string]string{}, first: map[string]int64{}, tally: t}
}

// note takes an event down, and the line that told it.
func (r *record) note(process string, e event, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, process+" "+line)
	id := fmt.Sprintf("%s/%d", process, e.Op)
	if e.Step == resting {
		r.resting[process] = string(e.How)
		return
	}
	if e.Step == asked {
		r.open[id] = &episode{id: id, process: process, ask: e}
		return
	}
	if x := r.open[id]; x != nil {
		r.follow(x, e)
	}
}

// follow takes down how an episode goes on.
func (r *record) follow(x *episode, e event) {
	switch e.Step {
	case granted:
		x.grant = e
		r.tally.operation(x.ask.Kind)
		r.progress(e.At, x.process, what(x.ask.Path, x.ask.Kind))
		if x.ask.Kind == putting {
			r.close(x, e)
		}
	case stands:
		x.stood = e.At
	case leaving:
		x.leaving = true
	case missed:
		r.tally.miss(x.ask.Kind)
		delete(r.open, x.id)
	case unknown:
		r.tally.miss(x.ask.Kind)
		x.doubt = true
		r.close(x, e)
	case failed:
		r.faults = append(r.faults, fmt.Errorf("%s: %s of %s failed: %s", x.id, x.ask.Kind, x.ask.Path, e.Why))
		delete(r.open, x.id)
	case ended:
		x.stood = max(x.stood, e.Stood)
		r.tally.end(e.How)
		r.close(x, e)
	}
}

// what is a name for what is asked for at a path.
func what(path string, k kind) string {
	if k == putting || k == taking {
		return path + " " + string(k)
	}
	return path
}

func (r *record) progress(at int64, names ...string) {
	for _, name := range names {
		if _, known := r.first[name]; !known && at > r.healed {
			r.first[name] = at
		}
	}
}

// heal is called when the last fault has been undone.
func (r *record) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healed = now()
	clear(r.first)
}

// late are those of the living processes, and of these, that were granted nothing since all was healed; when
// there are none, after is how long it took.
func (r *record) late(names ...string) (late []string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range append(slices.Sorted(maps.Keys(r.living)), names...) {
		at, known := r.first[name]
		if !known {
			late = append(late, name)
		}
		after = max(after, time.Duration(at-r.healed))
	}
	return late, after
}

func (r *record) close(x *episode, e event) {
	x.end = e
	r.over = append(r.over, x)
	delete(r.open, x.id)
}

func (r *record) born(process string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.living[process] = true
}

func (r *record) doomed(process string)    { r.mark(r.killed, process) }
func (r *record) dismissed(process string) { r.mark(r.done, process) }

func (r *record) mark(as map[string]bool, process string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	as[process] = true
}

// gone is called when a process has ended. What it held is over at some time after it was seen to stand.
func (r *record) gone(process string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.killed[process] && (!r.done[process] || err != nil) {
		r.faults = append(r.faults, fmt.Errorf("%s ended by itself: %w", process, err))
	}
	delete(r.living, process)
	delete(r.killed, process)
	delete(r.done, process)
	delete(r.resting, process)
	delete(r.first, process)
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		if x := r.open[id]; x.process == process {
			r.leave(x)
		}
	}
}

// leave closes what a dead process has left open.
func (r *record) leave(x *episode) {
	delete(r.open, x.id)
	switch {
	case x.ask.Kind == putting:
		x.doubt = true
		r.over = append(r.over, x)
	case x.grant.At == 0: // nobody ever held it
	default:
		x.end = event{How: died}
		if x.leaving {
			x.end.How = inDoubt
		}
		r.tally.end(died)
		r.over = append(r.over, x)
	}
}

// fault notes what is wrong in itself.
func (r *record) fault(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, err)
}

// restless are the living processes that have not said that they rest as they were told to.
func (r *record) restless(order string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.living {
		if r.resting[name] != order {
			names = append(names, name)
		}
	}
	return names
}

// segment is a piece of the history from one rest to the next.
type segment struct {
	episodes []*episode
	until    int64
	lines    []string
	faults   []error
	purges   []porcupine.Operation // of the queue at featuresPath
}

// cut takes the history since the last rest out of the record.
func (r *record) cut() segment {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := segment{episodes: r.over, until: now(), lines: r.lines, faults: r.faults, purges: r.purges}
	for _, x := range r.open {
		s.faults = append(s.faults, fmt.Errorf("%s is at %s %s while all should rest", x.id, x.ask.Kind, x.ask.Path))
	}
	r.over, r.lines, r.faults, r.purges = nil, nil, nil, nil
	return s
}

// unfinished is the end of a purge that returned an error: what was on its way may still be done.
const unfinished = 0

// purged notes a purge of the queue at featuresPath.
func (r *record) purged(from, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.purges = append(r.purges, porcupine.Operation{Input: act{what: purge}, Call: from, Return: to})
}

// remark writes what the harness does into the history.
func (r *record) remark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(`harness {"t":%d,"fault":%q}`, now(), text))
}
