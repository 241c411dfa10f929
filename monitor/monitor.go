package monitor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Monitor scans the locks, jobs, queues and workflows at and below a root while it leads among the
// monitors of its path.
type Monitor struct {
	client   *framework.Client
	path     string
	root     string
	err      error // of the arguments; Run returns it
	settings settings
	tel      *telemetry
}

// New returns a monitor of the locks, jobs, queues and workflows at and below root, which may be
// "/". Below path the monitors of this root elect their leader and keep the record of their
// findings. Give the same path and root to all monitors that replace each other. New sends no
// request.
func New(client *framework.Client, path, root string, opts ...Option) *Monitor {
	m := &Monitor{client: client, path: path, root: root}
	m.settings, m.err = newSettings(opts)
	if err := recipe.CheckClientAndPath(client, path, "a monitor"); err != nil {
		m.err = err
	} else if err := checkRoot(client, root); err != nil {
		m.err = err
	}
	if m.err == nil {
		m.tel = newTelemetry(client, root)
	}
	return m
}

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (m *Monitor) Validate() error { return failure.Wrap("monitor", m.path, m.err) }

// ElectionPath is where the monitors elect their leader; see election.Election.Follow.
func (m *Monitor) ElectionPath() string { return znode.Join(m.path, "election") }

// Run stands by until this process leads. Then it scans at the interval and reports events, until
// it loses the lead, and stands by again. It returns nil when ctx has ended, and an error that
// later scans would meet again at once. Before it returns, it waits until the last call of the
// function of WithOnEvent has returned.
//
// The error wraps framework.ErrInvalid, framework.ErrForeign, framework.ErrBadRecord,
// framework.ErrNewer, framework.ErrClosed, framework.ErrAuthFailed, or framework.ErrNoAuth if the
// monitor's own nodes cannot be written.
func (m *Monitor) Run(ctx context.Context) error {
	if m.err != nil {
		return m.Validate()
	}
	caller := newEventCaller(m.settings, m.client.Logger())
	defer caller.calls.Wait()
	defer m.tel.registerGauges()()
	err := election.New(m.client, m.ElectionPath()).Lead(ctx, func(ctx context.Context, term *election.Term) error {
		w := &leaderWork{
			Monitor: m, term: term, caller: caller, scanner: newRootScanner(m.client, m.root, m.settings),
			hysteresis: newHysteresis(m.settings),
			newID:      newFindingIDs(term.Token()), log: m.client.Logger().With("root", m.root),
			logged: map[string]bool{}, failures: map[string]int{},
		}
		return w.scanUntilDone(ctx)
	})
	return failure.Wrap("monitor", m.path, err)
}

// leaderWork is the work of one leader in one term. One goroutine uses it.
type leaderWork struct {
	*Monitor
	term       *election.Term
	caller     *eventCaller
	scanner    *rootScanner
	hysteresis *hysteresis
	newID      func() string
	log        *slog.Logger

	record   recordAtVersion
	loaded   bool            // record is what the servers store
	resumed  bool            // scanner knows the long holds that former leaders have recorded
	logged   map[string]bool // events that were logged and counted, by ID and kind
	failures map[string]int  // calls of WithOnEvent's function that have failed, by the event's ID and kind
}

// scanUntilDone scans at the interval and reports events, until ctx ends, or until a scan or the
// write of the record fails with an error that isFinal.
func (w *leaderWork) scanUntilDone(ctx context.Context) error {
	defer w.tel.stopLeading()
	if stat, err := w.client.Exists(ctx, w.root); errors.Is(err, framework.ErrNoNode) ||
		err == nil && stat.NumChildren == 0 {
		w.log.Warn("the root has no nodes yet: the monitor scans again at each interval")
	}
	for {
		began := time.Now()
		err := w.scanAndReport(ctx, began)
		switch {
		case ctx.Err() != nil:
			return nil
		case isFinal(err):
			return election.Permanent(err)
		case err != nil:
			w.log.Warn("a scan failed, or the record could not be written; the monitor scans again the next interval", "error", err)
		}
		if recipe.Pause(ctx, max(time.Until(began.Add(w.settings.interval)), w.settings.interval/10)) != nil {
			return nil
		}
	}
}

// isFinal reports whether later scans would fail with the same error. A path that the credentials
// do not permit to read is a finding, not an error. So ErrNoAuth concerns the monitor's own nodes.
func isFinal(err error) bool {
	for _, final := range []error{errForeign, framework.ErrBadRecord, framework.ErrNewer, framework.ErrNoAuth,
		framework.ErrClosed, framework.ErrAuthFailed, failure.ErrInvalidPath} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// scanAndReport scans once, and reports the findings that have begun and ended. began is when the
// scan begins.
func (w *leaderWork) scanAndReport(ctx context.Context, began time.Time) error {
	requests := w.client.Status().Requests
	seen, err := w.scanAndRecord(ctx)
	w.tel.recordScan(ctx, seen, w.record.Findings, time.Since(began), w.client.Status().Requests-requests, err)
	if err != nil {
		return err
	}
	if w.hysteresis.leftOut > 0 {
		w.log.Warn("there are more findings than the record holds; the others begin when some have ended", "left_out",
			w.hysteresis.leftOut)
	}
	deadline := began.Add(w.settings.interval)
	if earliest := time.Now().Add(w.settings.interval / 2); deadline.Before(earliest) {
		deadline = earliest // a slow scan must not prevent the calls
	}
	return w.reportEvents(ctx, deadline)
}

// scanAndRecord scans once, and records the findings that have begun and ended.
func (w *leaderWork) scanAndRecord(ctx context.Context) (seen *scanResult, err error) {
	var at time.Time
	err = recipe.OnSession(ctx, w.client, func(s *framework.Session) error {
		at, err = new(recipe.EnsembleClock).ReadTime(ctx, s, w.ElectionPath())
		return err
	})
	if err == nil {
		err = w.loadRecord(ctx)
	}
	if err == nil {
		seen, err = w.scanner.scanRoot(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	open, changed := w.hysteresis.applyScan(seen, w.record.Findings, w.newID)
	if changed {
		w.record.Findings = open
		err = w.saveRecord(ctx)
	}
	return seen, err
}

func (w *leaderWork) recordPath() string { return znode.Join(w.path, "findings") }

// loadRecord reads the record, unless w.record is what the servers store.
func (w *leaderWork) loadRecord(ctx context.Context) (err error) {
	if w.loaded {
		return nil
	}
	if w.record, err = readRecord(ctx, w.client, w.recordPath(), w.root); err != nil {
		return err
	}
	w.loaded = true
	for _, f := range w.record.Findings {
		if !w.resumed {
			w.scanner.locks.resumeHold(f.Finding)
		}
	}
	w.resumed = true
	return nil
}

// saveRecord writes the record. The servers refuse the write once the term has ended.
func (w *leaderWork) saveRecord(ctx context.Context) error {
	err := w.record.writeGuarded(ctx, w.client, w.recordPath(), w.term.Guard())
	w.loaded = err == nil
	return err
}

// reportEvents reports the begins and ends that the record has as unreported, and records that they
// were reported. It begins no call after the deadline; the events that are left are reported after
// the next scan.
func (w *leaderWork) reportEvents(ctx context.Context, deadline time.Time) error {
	changed := false
	unfinished := make([]openFinding, 0, len(w.record.Findings))
	for _, f := range w.record.Findings {
		e := Event{Kind: Begins, ID: f.ID, Finding: f.Finding, Began: f.Began}
		if !f.BeginReported && w.reportEvent(ctx, e, deadline) {
			f.BeginReported, changed = true, true
		}
		if f.BeginReported && !f.Ended.IsZero() {
			e.Kind, e.Ended = Ends, f.Ended
			if w.reportEvent(ctx, e, deadline) {
				changed = true
				continue
			}
		}
		unfinished = append(unfinished, f)
	}
	if !changed {
		return nil
	}
	w.record.Findings = slices.Clip(unfinished)
	return w.saveRecord(ctx)
}

// maxLogged bounds leaderWork.logged, and so leaderWork.failures.
const maxLogged = 4 * maxOpen

// reportEvent logs and counts an event the first time, and calls the function of WithOnEvent with
// it. It returns true if the event needs no further call: the function has returned nil, there is
// none, or the calls have failed often enough.
func (w *leaderWork) reportEvent(ctx context.Context, e Event, deadline time.Time) bool {
	id := e.ID + string(e.Kind)
	if !w.logged[id] {
		if len(w.logged) == maxLogged {
			clear(w.logged)
			clear(w.failures)
		}
		w.logged[id] = true
		w.tel.countEvent(ctx, e)
		attributes := []any{"problem", e.Problem, "path", e.Path, "text", e.Text, "id", e.ID}
		if e.Kind == Begins {
			w.log.Warn("a finding begins", attributes...)
		} else {
			w.log.Info("a finding ends", append(attributes, "lasted", e.Lasted())...)
		}
	}
	if ctx.Err() != nil || w.caller.f != nil && time.Now().After(deadline) {
		return false
	}
	err := w.caller.callWithEvent(ctx, e)
	switch {
	case err == nil:
		delete(w.failures, id)
		return true
	case ctx.Err() != nil:
		return false
	case errors.Is(err, errBusy):
		w.log.Warn("an event was not reported; the monitor tries again after the next scan", "id", e.ID, "error", err)
		return false
	}
	w.failures[id]++
	w.log.Error("an event could not be reported", "id", e.ID, "attempt", w.failures[id], "error", err)
	return w.failures[id] >= w.settings.eventAttempts
}
