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

// Monitor is one process's part in watching over a root.
type Monitor struct {
	client   *framework.Client
	path     string
	root     string
	err      error // of the arguments; Run returns it
	settings settings
	tel      *telemetry
}

// New returns a monitor of what is at and below root, which may be "/". path is where the monitors of this root elect their leader and keep their record; all that are
// to stand in for each other give the same path and root.
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

// Err returns the error of an argument of New that cannot be used, or nil.
func (m *Monitor) Err() error { return failure.Wrap("monitor", m.path, m.err) }

// ElectionPath is where the monitors elect their leader; see election.Observe.
func (m *Monitor) ElectionPath() string { return znode.Join(m.path, "election") }

// Run stands by until this process leads, then looks and tells at the interval, and so on until ctx ends. It waits for a call of the function of WithOnEvent that goes on.
//
// The error is that of ctx, or wraps ErrOption, ErrForeign, ErrBadRecord, ErrNewerRecord, framework.ErrInvalidPath, framework.ErrClosed, or framework.ErrNoAuth if the
// monitor's own nodes cannot be written.
func (m *Monitor) Run(ctx context.Context) error {
	if m.err != nil {
		return m.Err()
	}
	t := newTeller(m.settings, m.client.Logger())
	defer t.calls.Wait()
	defer m.tel.register()()
	err := election.New(m.client, m.ElectionPath()).Lead(ctx, func(ctx context.Context, term *election.Term) error {
		w := &watch{
			Monitor: m, term: term, teller: t, looker: newLooker(m.client, m.root, m.settings), hysteresis: newHysteresis(m.settings),
			newID: ids(term.Token()), log: m.client.Logger().With("root", m.root), logged: map[string]bool{}, failures: map[string]int{},
		}
		return w.run(ctx)
	})
	return failure.Wrap("monitor", m.path, err)
}

// watch is the work of one leader in its term.
type watch struct {
	*Monitor
	term       *election.Term
	teller     *teller
	looker     *looker
	hysteresis *hysteresis
	newID      func() string
	log        *slog.Logger

	record   storedRecord
	loaded   bool // record is what is stored
	resumed  bool // looker knows the findings of the leader before
	logged   map[string]bool
	failures map[string]int
}

// run looks until ctx ends.
func (w *watch) run(ctx context.Context) error {
	defer w.tel.stopLeading()
	if _, err := w.client.Exists(ctx, w.root); errors.Is(err, framework.ErrNoNode) {
		w.log.Warn("there is no such root (yet)")
	}
	for {
		began := time.Now()
		err := w.lookAndTell(ctx, began)
		switch {
		case ctx.Err() != nil:
			return nil
		case isFinal(err):
			return election.Permanent(err)
		case err != nil:
			w.log.Warn("a look failed; the next one comes at the interval", "error", err)
		}
		if recipe.Pause(ctx, max(time.Until(began.Add(w.settings.interval)), w.settings.interval/10)) != nil {
			return nil
		}
	}
}

// isFinal reports whether the next looks would fail, too. What a look may not read is a finding, so ErrNoAuth is of the monitor's own nodes.
func isFinal(err error) bool {
	for _, final := range []error{ErrForeign, ErrBadRecord, ErrNewerRecord, framework.ErrNoAuth, framework.ErrClosed, framework.ErrAuthFailed, framework.ErrInvalidPath} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// lookAndTell looks once, and tells what has begun and ended.
func (w *watch) lookAndTell(ctx context.Context, began time.Time) error {
	requests := w.client.Status().Requests
	seen, err := w.look(ctx)
	w.tel.looked(ctx, seen, w.record.Findings, time.Since(began), w.client.Status().Requests-requests, err)
	if err != nil {
		return err
	}
	if w.hysteresis.leftOut > 0 {
		w.log.Warn("there are more findings than are kept; they begin when others have ended", "left_out", w.hysteresis.leftOut)
	}
	return w.tellAll(ctx, began.Add(w.settings.interval))
}

// look looks once, and records what has begun and ended.
func (w *watch) look(ctx context.Context) (seen *look, err error) {
	var at time.Time
	err = recipe.OnSession(ctx, w.client, func(s *framework.Session) error {
		at, err = new(recipe.EnsembleClock).Ask(ctx, s, w.ElectionPath())
		return err
	})
	if err == nil {
		err = w.load(ctx)
	}
	if err == nil {
		seen, err = w.looker.look(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	open, changed := w.hysteresis.apply(seen, w.record.Findings, w.newID)
	if changed {
		w.record.Findings = open
		err = w.save(ctx)
	}
	return seen, err
}

func (w *watch) recordPath() string { return znode.Join(w.path, "findings") }

// load reads the record unless it is known.
func (w *watch) load(ctx context.Context) (err error) {
	if w.loaded {
		return nil
	}
	if w.record, err = readRecord(ctx, w.client, w.recordPath(), w.root); err != nil {
		return err
	}
	w.loaded = true
	for _, f := range w.record.Findings {
		if !w.resumed {
			w.looker.locks.resume(f.Finding)
		}
	}
	w.resumed = true
	return nil
}

// save writes the record. Only the leader can.
func (w *watch) save(ctx context.Context) error {
	err := w.record.write(ctx, w.client, w.recordPath(), w.term.Guard())
	w.loaded = err == nil
	return err
}

// tellAll tells what the record says is to be told, and records that it was. What is not told until the deadline is told after the next look.
func (w *watch) tellAll(ctx context.Context, deadline time.Time) error {
	changed := false
	left := make([]openFinding, 0, len(w.record.Findings))
	for _, f := range w.record.Findings {
		e := Event{Kind: Begins, ID: f.ID, Finding: f.Finding, Began: f.Began}
		if !f.Told && w.tell(ctx, e, deadline) {
			f.Told, changed = true, true
		}
		if f.Told && !f.Ended.IsZero() {
			e.Kind, e.Ended = Ends, f.Ended
			if w.tell(ctx, e, deadline) {
				changed = true
				continue
			}
		}
		left = append(left, f)
	}
	if !changed {
		return nil
	}
	w.record.Findings = slices.Clip(left)
	return w.save(ctx)
}

// mostLogged bounds what is kept of what was logged and failed.
const mostLogged = 4 * mostOpen

// tell tells one event, and reports whether that is done.
func (w *watch) tell(ctx context.Context, e Event, deadline time.Time) bool {
	id := e.ID + string(e.Kind)
	if !w.logged[id] {
		if len(w.logged) == mostLogged {
			clear(w.logged)
			clear(w.failures)
		}
		w.logged[id] = true
		w.tel.told(ctx, e)
		attributes := []any{"problem", e.Problem, "path", e.Path, "text", e.Text, "id", e.ID}
		if e.Kind == Begins {
			w.log.Warn("a finding begins", attributes...)
		} else {
			w.log.Info("a finding ends", append(attributes, "lasted", e.Lasted())...)
		}
	}
	if ctx.Err() != nil || w.teller.f != nil && time.Now().After(deadline) {
		return false
	}
	err := w.teller.tell(ctx, e)
	switch {
	case err == nil:
		delete(w.failures, id)
		return true
	case ctx.Err() != nil:
		return false
	case errors.Is(err, errBusy):
		w.log.Warn("an event is not told yet", "id", e.ID, "error", err)
		return false
	}
	w.failures[id]++
	w.log.Error("an event could not be told", "id", e.ID, "attempt", w.failures[id], "error", err)
	return w.failures[id] >= w.settings.eventAttempts
}
