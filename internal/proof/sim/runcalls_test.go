package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
)

// This file checks what calls of workflows return against the truth of the time of the call.

// now is the present moment.
func (u *runAudit) now() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.moment
}

// was reports whether a run with this name has had a version that matches, since a moment.
func (u *runAudit) was(from int, name string, match func(l *runLife, r simRunRecord) bool) bool {
	for _, l := range u.lives {
		if l.name != name || l.until != 0 && l.until <= from {
			continue
		}
		for i, v := range l.versions {
			if (i+1 == len(l.versions) || l.versions[i+1].from > from) && match(l, v.record) {
				return true
			}
		}
	}
	return false
}

// wasMissing reports whether there was a moment since from without a run of this name.
func (u *runAudit) wasMissing(from int, name string) bool {
	covered := slices.ContainsFunc(u.lives, func(l *runLife) bool {
		return l.name == name && l.from <= from &&
			l.until == 0
	})
	return !covered
}

// runCall is one call of workflows that has returned.
type runCall struct {
	actor *actor
	ctx   context.Context
	from  int    // the moment at which it began
	name  string // of the run, or ""
	err   error
}

// checkError checks that a call failed for a reason: expected says that its error is right.
func (u *runAudit) checkError(c runCall, what string, expected bool) {
	switch {
	case expected, c.actor.isExpectedError(c.ctx, c.err), c.actor.ctx.Err() != nil,
		errors.Is(c.err, context.Canceled) && c.ctx.Err() != nil:
	case errors.Is(c.err, framework.ErrNotFound) && u.wasMissing(c.from, c.name):
	default:
		u.add("errors", "%s: %s %s: %v", c.actor.name, what, c.name, c.err)
	}
}

func isState(states ...workflow.State) func(*runLife, simRunRecord) bool {
	return func(_ *runLife, r simRunRecord) bool { return slices.Contains(states, r.State) }
}

func (u *runAudit) checkStart(c runCall, kind string, ops []simOp) {
	data, _ := json.Marshal(ops)
	u.mu.Lock()
	defer u.mu.Unlock()
	same := func(l *runLife, _ simRunRecord) bool {
		return l.kind == kind && l.input == string(data) && l.parent == ""
	}
	other := func(l *runLife, r simRunRecord) bool { return !same(l, r) }
	switch {
	case c.err == nil && !u.was(c.from, c.name, same):
		u.add("start", "%s has started %s, which is not there", c.actor.name, c.name)
	case c.err != nil:
		u.checkError(c, "start", errors.Is(c.err, workflow.ErrIDInUse) && u.was(c.from, c.name, other))
	}
}

// awaited is a signal that a run may wait for.
func (u *runAudit) awaited(name string, r *rand.Rand) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.standing[name]; l != nil {
		var names []string
		for _, w := range l.record().Waits {
			if w.Signal != "" {
				names = append(names, w.Signal)
			}
		}
		var ops []simOp
		_ = json.Unmarshal([]byte(l.input), &ops)
		names = append(names, awaitsOf(ops)...)
		if len(names) > 0 {
			return pickOne(r, names...)
		}
	}
	return "await0"
}

func awaitsOf(ops []simOp) (names []string) {
	for _, op := range ops {
		switch op.Do {
		case "await":
			names = append(names, op.Name)
		case "parallel":
			names = append(names, awaitsOf(op.Ops)...)
		}
	}
	return names
}

func (u *runAudit) checkSignal(c runCall, signal string, data int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	had := func(l *runLife, _ simRunRecord) bool {
		return string(l.signals[signal].Data) == fmt.Sprint(data) || l.until != 0
	}
	other := func(l *runLife, _ simRunRecord) bool {
		s, has := l.signals[signal]
		return has && (s.TimedOut || string(s.Data) != fmt.Sprint(data)) || l.retriedWaits[signal] || l.until != 0
	}
	switch {
	case c.err == nil && !u.was(c.from, c.name, had):
		u.add("signals", "%s has signalled %s to %s, which does not have it", c.actor.name, signal, c.name)
	case c.err != nil:
		u.checkError(c, "signal", errors.Is(c.err, workflow.ErrSignalled) && u.was(c.from, c.name, other) ||
			errors.Is(c.err, workflow.ErrFinished) &&
				u.was(c.from, c.name, isState(workflow.Done, workflow.Failed, workflow.Cancelled)))
	}
}

// executed picks a run that has an executor, or else this one.
func (u *runAudit) executed(r *rand.Rand, name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var names []string
	for _, l := range u.lives[max(0, len(u.lives)-50):] {
		if l.executor != nil && u.isStanding(l.executor) {
			names = append(names, l.name)
		}
	}
	if len(names) == 0 || oneIn(r, 3) {
		return name
	}
	return pickOne(r, names...)
}

// noteCancel notes that a call of Cancel begins.
func (u *runAudit) noteCancel(name string) (from int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.standing[name]; l != nil {
		l.cancels++
	}
	return u.moment
}

// cannotTell reports whether a call of Cancel or Retry may say that its outcome is unknown: since
// it began, the run was removed, or so many other calls have changed it that its record has
// forgotten this one.
func (u *runAudit) cannotTell(c runCall) bool {
	const kept = 4
	forgotten := func(l *runLife, _ simRunRecord) bool {
		others := map[string]bool{}
		for _, v := range l.versions {
			for _, request := range v.record.Requests {
				others[request] = true
			}
		}
		return l.until != 0 || len(others) > kept
	}
	return errors.Is(c.err, framework.ErrOutcomeUnknown) && u.was(c.from, c.name, forgotten)
}

func (u *runAudit) checkCancel(c runCall) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case c.err == nil && !u.was(c.from, c.name, isState(workflow.Cancelled)):
		u.add("cancels", "%s has cancelled %s, which was not", c.actor.name, c.name)
	case c.err != nil:
		u.checkError(c, "cancel", u.cannotTell(c) || errors.Is(c.err, workflow.ErrFinished) &&
			u.was(c.from, c.name, isState(workflow.Done, workflow.Failed)))
	}
}

// noteRetry notes that a call of Retry begins, and draws the step to retry from.
func (u *runAudit) noteRetry(name string, r *rand.Rand) (from int, step string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.standing[name]; l != nil {
		l.retries++
		if len(l.steps) > 0 && oneIn(r, 2) {
			for s := range l.steps {
				step = max(step, s)
			}
		}
	}
	return u.moment, step
}

func (u *runAudit) checkRetry(c runCall) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case c.err == nil && !u.was(c.from, c.name, isState(workflow.Active)):
		u.add("retries", "%s has retried %s, which was not active", c.actor.name, c.name)
	case c.err != nil:
		u.checkError(c, "retry", u.cannotTell(c) || errors.Is(c.err, workflow.ErrFinished) &&
			u.was(c.from, c.name, isState(workflow.Done)) ||
			errors.Is(c.err, workflow.ErrNotFinished) &&
				u.was(c.from, c.name, isState(workflow.Active, workflow.Waiting)) ||
			errors.Is(c.err, framework.ErrInvalid))
	}
}

// checkInfo checks that a run is what the servers had during the call.
func (u *runAudit) checkInfo(c runCall, info workflow.Report, finished bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.err != nil {
		u.checkError(c, "look at", false)
		return
	}
	if finished && !info.State.IsFinished() {
		u.add("looks", "%s has waited for %s, which is %s", c.actor.name, c.name, info.State)
	}
	if !u.was(c.from, c.name, func(l *runLife, r simRunRecord) bool {
		for _, s := range info.Steps {
			if !slices.Contains(l.recorded[s.Name], string(s.Result)) {
				return false
			}
		}
		return r.State == info.State && string(r.Result) == string(info.Result) && r.Error == info.Error &&
			l.kind == info.Kind
	}) {
		u.add("looks", "%s sees %s as %+v, which it was not during the call", c.actor.name, c.name, info)
	}
}

func (u *runAudit) checkList(c runCall, infos []workflow.Report) {
	if c.err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.checkError(c, "list", false)
		return
	}
	seen := map[string]bool{}
	for _, info := range infos {
		one := c
		one.name = info.ID
		u.checkInfo(one, info, false)
		seen[info.ID] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, l := range u.standing {
		if l.from <= c.from && !seen[name] {
			u.add("looks", "%s does not see %s in a list", c.actor.name, c.name)
		}
	}
}

// checkTimer checks that a sleep has lasted long enough.
func (u *runAudit) checkTimer(e *execution, op simOp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	began, ok := e.life.timers[op.Name]
	if slept := u.sim.ensembleTime().Sub(began); ok && slept < time.Duration(op.Millis)*time.Millisecond {
		u.add("sleeps", "%s of run %s was over after %v, not %d ms", op.Name, e.life.name, slept, op.Millis)
	}
}

// checkAwait checks what a run gets for a signal, and returns the result.
func (u *runAudit) checkAwait(e *execution, op simOp, data int, err error) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, has := e.life.signals[op.Name]
	timedOut := errors.Is(err, framework.ErrTimeout)
	if e.life.until == 0 && (err == nil && (!has || string(s.Data) != fmt.Sprint(data)) ||
		timedOut && (!has || !s.TimedOut) && !e.life.retriedWaits[op.Name]) {
		u.add("signals", "run %s gets %d (%v) for %s, the servers have %v %s", e.life.name, data, err,
			op.Name, has, s.Data)
	}
	if timedOut {
		return "timed out", nil
	}
	return fmt.Sprint(data), err
}

// unfinished are copies of the runs that have not ended. Their signals are those that they wait
// for.
func (u *runAudit) unfinished() (stuck []runLife) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.standing {
		r := l.record()
		if r.State.IsFinished() {
			continue
		}
		signals := map[string]simSignal{}
		for _, w := range r.Waits {
			if w.Signal != "" {
				signals[w.Signal] = simSignal{}
			}
		}
		stuck = append(stuck, runLife{name: l.name, signals: signals})
	}
	slices.SortFunc(stuck, func(a, b runLife) int { return strings.Compare(a.name, b.name) })
	return stuck
}
