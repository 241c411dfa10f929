package members

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// cordonDuty is a member's side of its cordon: it follows the cordon's node, runs the drain function, and answers.
type cordonDuty struct {
	group   *Group
	path    string // of the cordon
	drain   func(context.Context, Cordon) error
	changed func() // called when there may be something to answer
	tel     telemetry

	cordon atomic.Pointer[Cordon] // as the servers had it last, or nil
	known  chan struct{}          // closed once cordon is known
	once   sync.Once
	err    error // why it is not followed any more; read it after follow

	mu      sync.Mutex
	request string // the answer is to this one
	reply   Answer
}

func newDuty(g *Group, id string, drain func(context.Context, Cordon) error, changed func(), tel telemetry) *cordonDuty {
	return &cordonDuty{group: g, path: g.nodePath(cordonName(id)), drain: drain, changed: changed, tel: tel, known: make(chan struct{})}
}

// drainWork is a drain function that runs, or has run.
type drainWork struct {
	request string
	cancel  context.CancelCauseFunc
	ended   chan struct{}
}

// stopAndWait ends the function's context and waits for the function. A nil work needs none.
func (w *drainWork) stopAndWait(cause error) {
	if w != nil {
		w.cancel(cause)
		<-w.ended
	}
}

// followCordon follows the cordon until ctx or the client ends.
func (d *cordonDuty) followCordon(ctx context.Context) {
	var present *drainWork
	defer func() {
		present.stopAndWait(ErrLeft)
		d.tel.changeCordoned(d.cordon.Load() != nil, false)
	}()
	pauses := recipe.NewBackoff(d.group.client)
	for {
		var err error
		for value, failed := range d.group.client.Follow(ctx, d.path) {
			if err = failed; err != nil {
				break
			}
			pauses.Reset()
			present = d.takeCordon(ctx, value, present)
			d.once.Do(func() { close(d.known) })
			d.changed()
		}
		d.err = err
		if ctx.Err() != nil || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) || !d.isKnown() {
			return
		}
		d.group.client.Logger().Warn("the cordon of a member cannot be read; what is known stays", "path", d.path, "error", err)
		if pauses.Pause(ctx) != nil {
			return
		}
	}
}

func (d *cordonDuty) isKnown() bool {
	select {
	case <-d.known:
		return true
	default:
		return false
	}
}

// takeCordon takes in what the servers have of the cordon, and returns the drain function's work.
func (d *cordonDuty) takeCordon(ctx context.Context, value framework.NodeValue, present *drainWork) *drainWork {
	var c *Cordon
	if value.Exists {
		_, name := znode.Split(d.path)
		c = decodeCordon(name, value.Data, value.Stat)
	}
	d.tel.changeCordoned(d.cordon.Swap(c) != nil, c != nil)
	if c != nil && c.request != "" {
		d.noteAnswer(c.request, Answer{State: Cordoned}, true)
	}
	if present != nil && c != nil && c.Drain && c.request == present.request {
		return present
	}
	present.stopAndWait(ErrWithdrawn)
	if c == nil || !c.Drain {
		return nil
	}
	return d.beginDrain(ctx, *c.cloneCordon())
}

// beginDrain calls the drain function, and notes the answer when it has ended.
func (d *cordonDuty) beginDrain(ctx context.Context, c Cordon) *drainWork {
	w := &drainWork{request: c.request, ended: make(chan struct{})}
	if d.drain == nil {
		w.cancel = func(error) {}
		close(w.ended)
		d.noteAnswer(c.request, Answer{State: Failed, Error: "it has no function for that (WithDrain)"}, false)
		return w
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(w.ended)
		began := time.Now()
		err := d.drain(ctx, c)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil: // withdrawn, or the member leaves
			d.tel.recordDrain(took, "withdrawn")
			return
		case err != nil:
			d.tel.recordDrain(took, "failed")
			text := err.Error()
			d.noteAnswer(c.request, Answer{State: Failed, Error: text[:min(len(text), maxReason)]}, false)
		default:
			d.tel.recordDrain(took, "drained")
			d.noteAnswer(c.request, Answer{State: Drained}, false)
		}
		d.changed()
	}()
	return w
}

// noteAnswer notes the answer to a request. The first one to a request replaces those to others; a later one counts only while the request stands.
func (d *cordonDuty) noteAnswer(request string, reply Answer, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first != (d.request == request) {
		d.request, d.reply = request, reply
	}
}

// writeAnswer writes the answer to the cordon as it was followed last, unless it is there. The transaction checks that the member's node exists: a former session cannot answer.
func (d *cordonDuty) writeAnswer(ctx context.Context, s *framework.Session, node string) error {
	d.mu.Lock()
	request, reply := d.request, d.reply
	d.mu.Unlock()
	c := d.cordon.Load()
	_, name := znode.Split(node)
	if c == nil || request == "" || c.request != request || c.Answers[name] == reply {
		return nil
	}
	present, _, err := s.Children(ctx, d.group.path)
	if err != nil {
		return err
	}
	record := c.storedRecord()
	record.Answers = maps.Clone(c.Answers)
	maps.DeleteFunc(record.Answers, func(name string, _ Answer) bool { return !slices.Contains(present, name) })
	if record.Answers == nil {
		record.Answers = map[string]Answer{}
	}
	record.Answers[name] = reply
	data, err := record.encode()
	if err != nil {
		return err
	}
	_, err = s.Multi(ctx, framework.CheckOp(node, framework.AnyVersion), framework.SetOp(d.path, data, c.version), d.group.announceOp())
	if isRaced(err) { // the cordon is told anew, or the node is gone
		return nil
	}
	if isUnknown(err) || failure.IsTransient(err) {
		d.changed()
		return nil
	}
	return err
}
