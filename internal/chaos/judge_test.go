//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// judge checks segment after segment. What it carries from one to the next is little: everybody rests in between.
type judge struct {
	states  map[string]holders // by path
	doubts  []*episode         // puts that may still be done, or never were
	checked int                // operations
	places  []string           // what was written of violations
	dir     string             // where to
}

// seen is when a queue was found empty at the end of a segment, and the items that were dead letters then.
type seen struct {
	from, to int64
	dead     map[string]bool
}

func newJudge(dir string) *judge { return &judge{states: map[string]holders{}, dir: dir} }

// decisionTime is far more than a segment takes.
const decisionTime = time.Minute

// judge returns what is wrong with a segment.
func (j *judge) judge(number int, s segment, queues map[string]seen) (wrong []error) {
	wrong = append(wrong, s.faults...)
	byPath := map[string][]*episode{}
	for _, x := range s.episodes {
		byPath[x.ask.Path] = append(byPath[x.ask.Path], x)
	}
	for _, path := range slices.Sorted(maps.Keys(rules)) {
		wrong = append(wrong, j.holds(number, path, byPath[path], s)...)
	}
	for path, sight := range queues {
		wrong = append(wrong, j.items(number, path, byPath[path], sight, s)...)
		wrong = append(wrong, tooEarly(byPath[path])...)
	}
	if len(wrong) > 0 {
		j.write(fmt.Sprintf("segment-%d-history.txt", number), strings.Join(s.lines, "\n")+"\n")
	}
	return wrong
}

// holds checks who held what is at a path.
func (j *judge) holds(number int, path string, all []*episode, s segment) []error {
	var ops []porcupine.Operation
	from := j.states[path]
	state := from
	for _, x := range all {
		if x.ask.Kind == putting {
			continue
		}
		g := x.act(grant)
		if x.ask.Kind == taking { // of a strict queue
			g.permits, g.number = 1, 0
		}
		ops = append(ops, x.grantAs(g), x.ending(s.until))
		state.highest, state.number = max(state.highest, g.token), max(state.number, g.number)
		if g.kind != shared {
			state.fence = max(state.fence, g.token)
		}
	}
	j.states[path] = state
	return j.check(number, path, holdModel(rules[path], from), ops)
}

// items checks what became of the items of a queue.
func (j *judge) items(number int, path string, all []*episode, sight seen, s segment) (wrong []error) {
	groups := map[string][]*episode{}
	key := func(stream string, n int64) string {
		if path == strictPath {
			return stream
		}
		return fmt.Sprint(stream, "#", n)
	}
	for _, x := range all {
		stream, n := x.item()
		groups[key(stream, n)] = append(groups[key(stream, n)], x)
	}
	first := map[string]int64{}
	j.doubts = slices.DeleteFunc(j.doubts, func(x *episode) bool {
		stream, n := x.item()
		k := key(stream, n)
		if x.ask.Path != path || groups[k] == nil {
			return false
		}
		first[k] = n
		groups[k] = append(groups[k], x)
		return true
	})
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		model := itemModel
		if path == strictPath {
			model = streamModel(max(1, first[k]))
		}
		ops := j.queueOps(groups[k], s)
		if path == featuresPath {
			for _, p := range s.purges {
				if p.Return == unfinished {
					p.Return = s.until + 1 // after the queue was seen to be empty
				}
				ops = append(ops, p)
			}
		}
		last := act{what: empty, dead: sight.dead[k]}
		ops = append(ops, porcupine.Operation{Input: last, Call: sight.from, Return: sight.to})
		wrong = append(wrong, j.check(number, path+" "+k, model, ops)...)
	}
	return wrong
}

// tooEarly returns the items that were delivered before their delay was over. A delay counts whole seconds of the
// servers' clock, so it may be shorter by the part of a second that had passed.
func tooEarly(all []*episode) (wrong []error) {
	due := map[string]int64{}
	for _, x := range all {
		if x.ask.Kind == putting && x.ask.Delay > 0 {
			due[fmt.Sprint(x.ask.Item, "#", x.ask.Number)] = x.ask.At + x.ask.Delay
		}
	}
	for _, x := range all {
		if x.ask.Kind == taking {
			if name := fmt.Sprint(x.grant.Item, "#", x.grant.Number); x.grant.At < due[name] {
				wrong = append(wrong, fmt.Errorf("%s: %s was delivered %v before its delay was over", x.id, name, time.Duration(due[name]-x.grant.At)))
			}
		}
	}
	return wrong
}

// queueOps are the operations on one item, or one stream. The puts in doubt that came to nothing so far are kept.
func (j *judge) queueOps(group []*episode, s segment) (ops []porcupine.Operation) {
	delivered := map[int64]bool{}
	for _, x := range group {
		if x.ask.Kind == taking {
			_, n := x.item()
			delivered[n] = true
			ops = append(ops, x.grantAs(x.act(grant)), x.ending(s.until))
		}
	}
	for _, x := range group {
		if x.ask.Kind != putting {
			continue
		}
		op := porcupine.Operation{Input: x.act(put), Call: x.ask.At, Return: x.grant.At}
		if x.doubt {
			op.Return = s.until + 1 // after the queue was seen to be empty
			if _, n := x.item(); !delivered[n] {
				j.doubts = append(j.doubts, x)
			}
		}
		ops = append(ops, op)
	}
	return ops
}

// check has porcupine decide, and shows what is wrong.
func (j *judge) check(number int, name string, m porcupine.Model, ops []porcupine.Operation) []error {
	j.checked += len(ops)
	result := porcupine.CheckOperationsTimeout(m, ops, decisionTime)
	if result == porcupine.Ok {
		return nil
	}
	inLanes(ops)
	_, info := porcupine.CheckOperationsVerbose(m, ops, decisionTime)
	file := fmt.Sprintf("segment-%d-%s.html", number, strings.NewReplacer("/", "", " ", "-", "#", "-").Replace(name))
	place := filepath.Join(j.dir, file)
	if err := porcupine.VisualizePath(m, info, place); err != nil {
		place = err.Error()
	}
	j.places = append(j.places, place)
	if result == porcupine.Unknown {
		return []error{fmt.Errorf("%s: porcupine did not decide about %d operations within %v", name, len(ops), decisionTime)}
	}
	return []error{fmt.Errorf("%s: no order explains the %d operations", name, len(ops))}
}

// inLanes spreads operations that overlap over the lines of a picture.
func inLanes(ops []porcupine.Operation) {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var lanes []int64
	for i := range ops {
		lane := slices.IndexFunc(lanes, func(until int64) bool { return until < ops[i].Call })
		if lane < 0 {
			lane = len(lanes)
			lanes = append(lanes, 0)
		}
		lanes[lane], ops[i].ClientId = ops[i].Return, lane
	}
}

func (j *judge) write(name, text string) {
	place := filepath.Join(j.dir, name)
	if err := os.WriteFile(place, []byte(text), 0o644); err != nil {
		place = err.Error()
	}
	j.places = append(j.places, place)
}

// act is what a model is told of an episode.
func (x *episode) act(what verb) act {
	stream, n := x.item()
	a := act{what: what, id: x.id, who: x.id, kind: x.ask.Kind, permits: x.ask.Permits, token: x.grant.Token, number: x.grant.Number,
		stream: stream, attempt: x.grant.Attempt, how: x.end.How}
	if stream != "" {
		a.number = n
	}
	return a
}

// item is what was put or delivered.
func (x *episode) item() (stream string, number int64) {
	if x.ask.Kind == putting {
		return x.ask.Item, x.ask.Number
	}
	return x.grant.Item, x.grant.Number
}

// grantAs is the grant, at some moment between the ask and its answer.
func (x *episode) grantAs(a act) porcupine.Operation {
	return porcupine.Operation{Input: a, Call: x.ask.At, Return: x.grant.At}
}

// ending is the end, at some moment after the hold was seen to stand, and before its end was noticed.
func (x *episode) ending(until int64) porcupine.Operation {
	op := porcupine.Operation{Input: x.act(end), Call: max(x.ask.At, x.stood), Return: until}
	if x.end.At > 0 {
		op.Return = x.end.At
	}
	return op
}
