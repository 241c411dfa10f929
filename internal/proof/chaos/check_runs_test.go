//go:build linux

package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/workflow"
)

// runChecker checks runs of workflows, one segment after the other.
type runChecker struct {
	keys map[string]string // the step of an idempotency key
}

func newRunChecker() *runChecker { return &runChecker{keys: map[string]string{}} }

// check returns the violations of a segment. If the clients did not come to rest, it does not check
// how the runs ended.
func (c *runChecker) check(calls []*operation, s segment) (wrong []error) {
	var shown []shownEvent
	for _, e := range s.shown {
		if e.Path == runsPath {
			shown = append(shown, e)
		}
	}
	byID := map[string]finishedRun{}
	for _, r := range s.runs {
		byID[r.ID] = r
		wrong = append(wrong, c.checkRun(r, calls)...)
	}
	wrong = append(wrong, checkExecutors(calls)...)
	wrong = append(wrong, checkReturned(shown)...)
	if s.atRest == nil {
		return wrong
	}
	for _, op := range calls {
		if _, there := byID[op.request.Item]; op.request.Kind == kindStart && op.succeeded() && !there {
			wrong = append(wrong, fmt.Errorf("%s: %s has started %s, which does not exist", runsPath, op.id,
				op.request.Item))
		}
	}
	for _, e := range shown {
		r := byID[e.Item]
		switch e.Kind {
		case kindFinish:
			if end := string(r.State) + " " + string(r.Result); e.Source != end {
				wrong = append(wrong, fmt.Errorf("%s: %s has waited for %s until it was %q, and it is %q", runsPath,
					e.process, e.Item, e.Source, end))
			}
		case kindStep:
			if got, recorded := resultOf(r.Report, e.Order); !recorded || got != e.Source {
				wrong = append(wrong, fmt.Errorf("%s: %s of %s has returned %q to %s, and %q is recorded", runsPath,
					e.Order, e.Item, e.Source, e.process, got))
			}
		}
	}
	return wrong
}

// resultOf returns the recorded result of a step.
func resultOf(info workflow.Report, step string) (result string, recorded bool) {
	for _, s := range info.Steps {
		if s.Name == step {
			return textOf(s.Result), true
		}
	}
	return "", false
}

// textOf decodes a string that is stored as JSON.
func textOf(data json.RawMessage) (text string) {
	_ = json.Unmarshal(data, &text) // else it is no result of these runs, and differs from all
	return text
}

// checkRun checks one run: it is done, or a client has cancelled it; before each record there is an
// effect with the same token; tokens do not fall; a key belongs to one step.
func (c *runChecker) checkRun(r finishedRun, calls []*operation) (wrong []error) {
	add := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s "+format, append([]any{runsPath, r.ID}, args...)...))
	}
	var results []string
	token := int64(0)
	for i, s := range r.Steps {
		results = append(results, textOf(s.Result))
		if s.Token < token {
			add("has a record of %s with token %d after one with token %d", s.Name, s.Token, token)
		}
		token = max(token, s.Token)
		if s.Name != fmt.Sprint("step", i) {
			add("has %s as its record number %d", s.Name, i)
		}
		if !slices.ContainsFunc(r.effects, func(e sinkEffect) bool {
			return e.Step == s.Name && e.Token == s.Token &&
				e.Result == textOf(s.Result)
		}) {
			add("has a record of %s with %s and token %d, and the sink has no such effect: %v", s.Name, s.Result,
				s.Token, r.effects)
		}
	}
	keys := map[string]string{}
	for _, e := range r.effects {
		step := r.ID + " " + e.Step
		if other, taken := c.keys[e.Key]; taken && other != step {
			add("has the key %s for %s, which was that of %s", e.Key, e.Step, other)
		}
		if former := keys[e.Step]; former != "" && former != e.Key {
			add("has two keys for %s: %s and %s", e.Step, former, e.Key)
		}
		c.keys[e.Key], keys[e.Step] = step, e.Key
	}
	cancelled := slices.ContainsFunc(calls, func(op *operation) bool {
		return op.request.Kind == kindCancelRun &&
			op.request.Item == r.ID
	})
	switch {
	case r.State == workflow.Cancelled && cancelled:
	case r.State != workflow.Done:
		add("is %s: %s", r.State, r.Error)
	case len(results) != runSteps:
		add("is done with %d steps", len(results))
	default:
		parts := strings.Split(textOf(r.Result), ",")
		if len(parts) != runSteps+1 || !slices.Equal(slices.Concat(parts[:2], parts[3:]), results) {
			add("is done with %s, and its steps are %q", r.Result, results)
		}
	}
	return wrong
}

// checkExecutors checks that no two executors of a run believe at the same time that they have it.
// An executor has the run from the call of its function to the last moment at which it was
// scheduled and its context was alive.
func checkExecutors(calls []*operation) (wrong []error) {
	byRun := map[string][]*operation{}
	for _, op := range calls {
		if op.request.Kind == kindExecution && op.grant.At > 0 && op.lastHeld > op.grant.At {
			byRun[op.request.Item] = append(byRun[op.request.Item], op)
		}
	}
	for run, executions := range byRun {
		slices.SortFunc(executions, func(a, b *operation) int { return cmp.Compare(a.grant.At, b.grant.At) })
		latest := executions[0]
		for _, op := range executions[1:] {
			if op.grant.At < latest.lastHeld {
				wrong = append(wrong, fmt.Errorf("%s: %s is executed by %s until %d, and by %s from %d on", runsPath,
					run, latest.id, latest.lastHeld, op.id, op.grant.At))
				break
			}
			if op.lastHeld > latest.lastHeld {
				latest = op
			}
		}
	}
	return wrong
}

// checkReturned checks that a step has returned the same result each time.
func checkReturned(shown []shownEvent) (wrong []error) {
	returned, reported := map[string]shownEvent{}, map[string]bool{}
	for _, e := range shown {
		if e.Kind != kindStep {
			continue
		}
		step := e.Item + " " + e.Order
		former, again := returned[step]
		if again && former.Source != e.Source && !reported[e.Item] {
			reported[e.Item] = true
			wrong = append(wrong, fmt.Errorf("%s: %s of %s has returned %q to %s and %q to %s", runsPath, e.Order,
				e.Item, former.Source, former.process, e.Source, e.process))
		}
		if !again {
			returned[step] = e
		}
	}
	return wrong
}
