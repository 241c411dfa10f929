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

// checker checks one segment after the other. From one segment to the next it keeps tokens, numbers
// and uncertain puts; all clients rest between two segments.
type checker struct {
	holdStates        map[string]holdState // by path
	uncertainPuts     []*operation         // puts that may still be done
	checkedOperations int
	services          *serviceChecker
	runs              *runChecker
	evidenceFiles     []string // pictures and histories of violations
	dir               string   // the directory of evidenceFiles
}

// drainedQueue says when a queue was found empty at the end of a segment, and which items were dead
// letters then.
type drainedQueue struct {
	from, to    int64
	deadLetters map[string]bool
}

func newChecker(dir string) *checker {
	return &checker{holdStates: map[string]holdState{}, services: newServiceChecker(), runs: newRunChecker(), dir: dir}
}

// checkTimeout bounds porcupine's search; a segment takes a fraction of it.
const checkTimeout = time.Minute

// checkSegment returns the violations of a segment.
func (c *checker) checkSegment(segmentNumber int, s segment, queues map[string]drainedQueue) (wrong []error) {
	wrong = append(wrong, s.errors...)
	byPath := map[string][]*operation{}
	for _, op := range s.operations {
		byPath[op.request.Path] = append(byPath[op.request.Path], op)
	}
	for _, path := range slices.Sorted(maps.Keys(holdRules)) {
		wrong = append(wrong, c.checkHolds(segmentNumber, path, byPath[path], s)...)
	}
	for path, drained := range queues {
		wrong = append(wrong, c.checkItems(segmentNumber, path, byPath[path], drained, s)...)
		wrong = append(wrong, deliveredEarly(byPath[path])...)
	}
	wrong = append(wrong, c.services.check(byPath, s)...)
	wrong = append(wrong, c.runs.check(byPath[runsPath], s)...)
	if len(wrong) > 0 {
		c.writeEvidence(fmt.Sprintf("segment-%d-history.txt", segmentNumber), strings.Join(s.lines, "\n")+"\n")
	}
	return wrong
}

// checkHolds checks the grants and ends at a path against its hold model.
func (c *checker) checkHolds(segmentNumber int, path string, all []*operation, s segment) []error {
	var ops []porcupine.Operation
	from := c.holdStates[path]
	state := from
	for _, op := range all {
		if op.request.Kind == kindPut {
			continue
		}
		g := op.modelInput(opGrant)
		if op.request.Kind == kindDelivery { // of a strict queue
			g.permits, g.number = 1, 0
		}
		ops = append(ops, op.grantOperation(g), op.endOperation(s.until))
		state.highestToken, state.highestNumber = max(state.highestToken, g.token), max(state.highestNumber, g.number)
		if g.kind != kindReadLock {
			state.highestExclusive = max(state.highestExclusive, g.token)
		}
	}
	c.holdStates[path] = state
	return c.runPorcupine(segmentNumber, path, holdModel(holdRules[path], from), ops)
}

// checkItems checks the puts, cancels, deliveries and acknowledgements of a queue against the item
// or stream model.
func (c *checker) checkItems(segmentNumber int, path string, all []*operation, drained drainedQueue,
	s segment) (wrong []error) {
	groups := map[string][]*operation{}
	key := func(stream string, n int64) string {
		if path == strictPath {
			return stream
		}
		return fmt.Sprint(stream, "#", n)
	}
	for _, op := range all {
		stream, n := op.item()
		groups[key(stream, n)] = append(groups[key(stream, n)], op)
	}
	first := map[string]int64{}
	c.uncertainPuts = slices.DeleteFunc(c.uncertainPuts, func(op *operation) bool {
		stream, n := op.item()
		k := key(stream, n)
		if op.request.Path != path || groups[k] == nil {
			return false
		}
		first[k] = n
		groups[k] = append(groups[k], op)
		return true
	})
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		model := itemModel
		if path == strictPath {
			model = streamModel(max(1, first[k]))
		}
		ops := c.queueOps(groups[k], s)
		if path == featuresPath {
			for _, p := range s.purges {
				if p.Return == noReturn {
					p.Return = s.until + 1 // after the queue was seen to be empty
				}
				ops = append(ops, p)
			}
		}
		last := modelInput{op: opSeenEmpty, deadLetter: drained.deadLetters[k]}
		ops = append(ops, porcupine.Operation{Input: last, Call: drained.from, Return: drained.to})
		wrong = append(wrong, c.runPorcupine(segmentNumber, path+" "+k, model, ops)...)
	}
	return wrong
}

// deliveredEarly returns the items that were delivered before their delay was over. A delay counts
// whole seconds of the servers' clock, so it may be shorter by a fraction of a second.
func deliveredEarly(all []*operation) (wrong []error) {
	due := map[string]int64{}
	for _, op := range all {
		if op.request.Kind == kindPut && op.request.Delay > 0 {
			due[fmt.Sprint(op.request.Item, "#", op.request.Number)] = op.request.At + op.request.Delay
		}
	}
	for _, op := range all {
		if op.request.Kind == kindDelivery {
			if name := fmt.Sprint(op.grant.Item, "#", op.grant.Number); op.grant.At < due[name] {
				wrong = append(wrong, fmt.Errorf("%s: %s was delivered %v before its delay was over", op.id, name,
					time.Duration(due[name]-op.grant.At)))
			}
		}
	}
	return wrong
}

// queueOps returns the operations on one item, or on one stream. It keeps uncertain puts whose item
// was not seen yet.
func (c *checker) queueOps(group []*operation, s segment) (ops []porcupine.Operation) {
	settled := map[int64]bool{} // it was put
	for _, op := range group {
		if op.request.Kind == kindDelivery {
			_, n := op.item()
			settled[n] = true
			ops = append(ops, op.grantOperation(op.modelInput(opGrant)), op.endOperation(s.until))
		}
	}
	for _, op := range group {
		if op.request.Kind != kindCancel {
			continue
		}
		if op.uncertain { // it may remove the item now or later, as a purge does
			ops = append(ops, porcupine.Operation{Input: op.modelInput(opPurge), Call: op.request.At,
				Return: s.until + 1})
			continue
		}
		_, n := op.item()
		settled[n] = true
		ops = append(ops, porcupine.Operation{Input: op.modelInput(opCancel), Call: op.request.At, Return: op.grant.At})
	}
	for _, op := range group {
		if op.request.Kind != kindPut {
			continue
		}
		put := porcupine.Operation{Input: op.modelInput(opPut), Call: op.request.At, Return: op.grant.At}
		if op.uncertain {
			put.Return = s.until + 1 // after the queue was seen to be empty
			if _, n := op.item(); !settled[n] {
				c.uncertainPuts = append(c.uncertainPuts, op)
			}
		}
		ops = append(ops, put)
	}
	return ops
}

// runPorcupine searches for an order that explains the operations. Without one it writes a picture
// and returns an error.
func (c *checker) runPorcupine(segmentNumber int, name string, m porcupine.Model, ops []porcupine.Operation) []error {
	c.checkedOperations += len(ops)
	result := porcupine.CheckOperationsTimeout(m, ops, checkTimeout)
	if result == porcupine.Ok {
		return nil
	}
	assignLanes(ops)
	_, info := porcupine.CheckOperationsVerbose(m, ops, checkTimeout)
	base := fmt.Sprintf("segment-%d-%s.html", segmentNumber,
		strings.NewReplacer("/", "", " ", "-", "#", "-").Replace(name))
	file := filepath.Join(c.dir, base)
	if err := porcupine.VisualizePath(m, info, file); err != nil {
		file = err.Error()
	}
	c.evidenceFiles = append(c.evidenceFiles, file)
	if result == porcupine.Unknown {
		return []error{fmt.Errorf("%s: porcupine did not decide about %d operations within %v", name, len(ops),
			checkTimeout)}
	}
	return []error{fmt.Errorf("%s: no order explains its %d operations", name, len(ops))}
}

// assignLanes puts operations that overlap on separate lines of the picture.
func assignLanes(ops []porcupine.Operation) {
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

func (c *checker) writeEvidence(name, text string) {
	file := filepath.Join(c.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		file = err.Error()
	}
	c.evidenceFiles = append(c.evidenceFiles, file)
}

// modelInput returns the input of the model for this operation.
func (op *operation) modelInput(what inputOp) modelInput {
	stream, n := op.item()
	a := modelInput{op: what, id: op.id, label: op.id, kind: op.request.Kind, permits: op.request.Permits,
		token: op.grant.Token, number: op.grant.Number,
		stream: stream, attempt: op.grant.Attempt, reason: op.end.End}
	if stream != "" {
		a.number = n
	}
	return a
}

// item returns the item that was put, cancelled or delivered.
func (op *operation) item() (stream string, segmentNumber int64) {
	if op.request.Kind == kindPut || op.request.Kind == kindCancel {
		return op.request.Item, op.request.Number
	}
	return op.grant.Item, op.grant.Number
}

// grantOperation returns the grant as an operation. It happens between the request and its answer.
func (op *operation) grantOperation(a modelInput) porcupine.Operation {
	return porcupine.Operation{Input: a, Call: op.request.At, Return: op.grant.At}
}

// endOperation returns the end of a hold as an operation. It happens after the hold was last seen
// alive and before the holder noticed its end.
func (op *operation) endOperation(until int64) porcupine.Operation {
	end := porcupine.Operation{Input: op.modelInput(opEnd), Call: max(op.request.At, op.lastHeld), Return: until}
	if op.end.At > 0 {
		end.Return = op.end.At
	}
	return end
}
