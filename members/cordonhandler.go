package members

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/usercode"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// cordonHandler follows the node of a member's cordon, runs the drain function, and writes the
// member's answers.
type cordonHandler struct {
	group   *Group
	path    string // of the cordon's node
	drain   func(context.Context, Cordon) error
	changed func() // called when the answer may have to be written
	tel     telemetry

	cordon atomic.Pointer[Cordon] // as it was read last, or nil
	known  chan struct{}          // closed once cordon is known
	once   sync.Once              // closes known
	err    error                  // why followCordon has ended; read it afterwards

	mu      sync.Mutex
	request string // the request that reply answers
	reply   Answer
	latest  *drainWork // the latest call of the drain function, or nil if there was none or it was withdrawn

	refused refusedAnswer // the latest answer that was refused; used only by writeAnswer
}

// refusedAnswer is an answer that the servers have refused.
type refusedAnswer struct {
	request string
	reply   Answer
}

// refusedAnswerPause is the pause before an answer that the servers have refused is tried again.
const refusedAnswerPause = time.Minute

func newCordonHandler(g *Group, id string, drain func(context.Context, Cordon) error, changed func(),
	tel telemetry) *cordonHandler {
	return &cordonHandler{group: g, path: g.nodePath(cordonName(id)), drain: drain, changed: changed, tel: tel,
		known: make(chan struct{})}
}

// drainWork is a call of the drain function, under way or ended.
type drainWork struct {
	request string
	cancel  context.CancelCauseFunc // ends the function's context
	ended   chan struct{}           // closed when the function has returned
	// closed when the servers have the answer or have refused it, or the drain was withdrawn
	answered     chan struct{}
	markAnswered func() // closes answered
}

func newDrainWork(request string) *drainWork {
	w := &drainWork{request: request, ended: make(chan struct{}), answered: make(chan struct{})}
	w.markAnswered = sync.OnceFunc(func() { close(w.answered) })
	return w
}

// stopAndWait ends the function's context and waits until the function has returned. It does
// nothing if the receiver is nil.
func (w *drainWork) stopAndWait(cause error) {
	if w != nil {
		w.cancel(cause)
		<-w.ended
	}
}

// latestDrain returns the latest call of the drain function, or nil if there was none or it was
// withdrawn.
func (h *cordonHandler) latestDrain() *drainWork {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

func (h *cordonHandler) setLatestDrain(w *drainWork) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = w
}

// drainAnswered is called when the servers have this answer to a request, or have refused it.
func (h *cordonHandler) drainAnswered(request string, reply Answer) {
	if w := h.latestDrain(); w != nil && w.request == request && reply.State != Cordoned {
		w.markAnswered()
	}
}

// followCordon follows the cordon until ctx ends, the client is closed, or the cordon cannot be
// read for the first time. Then it ends the drain function's context and waits for the function.
func (h *cordonHandler) followCordon(ctx context.Context) {
	defer func() {
		h.latestDrain().stopAndWait(ErrLeft) // who waits for the drain notices the end of ctx
		h.tel.changeCordoned(h.cordon.Load() != nil, false)
	}()
	pauses := recipe.NewBackoff(h.group.client)
	for {
		var err error
		for value, failed := range h.group.client.Follow(ctx, h.path) {
			if err = failed; err != nil {
				break
			}
			pauses.Reset()
			h.takeCordon(ctx, value)
			h.once.Do(func() { close(h.known) })
			h.changed()
		}
		h.err = err
		if ctx.Err() != nil || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) ||
			!h.isKnown() {
			return
		}
		h.group.client.Logger().Warn("a member's cordon cannot be read; its last known state stays in force", "path",
			h.path, "error", err)
		if pauses.Pause(ctx) != nil {
			return
		}
	}
}

func (h *cordonHandler) isKnown() bool {
	select {
	case <-h.known:
		return true
	default:
		return false
	}
}

// takeCordon stores the cordon as it was read, ends the drain function of an earlier request, and
// begins that of a new one.
func (h *cordonHandler) takeCordon(ctx context.Context, value framework.NodeValue) {
	var c *Cordon
	if value.Exists {
		_, name := znode.Split(h.path)
		c = decodeCordon(name, value.Data, value.Stat)
	}
	h.tel.changeCordoned(h.cordon.Swap(c) != nil, c != nil)
	if c != nil && c.request != "" {
		h.recordAnswer(c.request, Answer{State: Cordoned}, true)
	}
	present := h.latestDrain()
	if present != nil && c != nil && c.Drain && c.request == present.request {
		return
	}
	present.stopAndWait(ErrWithdrawn)
	h.setLatestDrain(nil)
	if c != nil && c.Drain {
		h.beginDrain(ctx, *c.cloneCordon())
	}
	if present != nil {
		present.markAnswered() // last: who waits for it then sees the present drain
	}
}

// beginDrain calls the drain function in another goroutine, which keeps the answer when the
// function has returned. Without a drain function it keeps the answer that the drain has failed.
func (h *cordonHandler) beginDrain(ctx context.Context, c Cordon) {
	w := newDrainWork(c.request)
	ctx, w.cancel = context.WithCancelCause(ctx)
	h.setLatestDrain(w)
	if h.drain == nil {
		close(w.ended)
		h.recordAnswer(c.request, Answer{State: Failed, Error: "the member has no drain function (members.WithDrain)"},
			false)
		return
	}
	go func() {
		defer close(w.ended)
		began := time.Now()
		err := usercode.Call(h.group.client.Logger(), failure.ErrPanic, "the function of WithDrain",
			[]any{"path", h.path}, func() error { return h.drain(ctx, c) })
		took := time.Since(began)
		switch {
		case ctx.Err() != nil: // withdrawn, or the member leaves
			h.tel.recordDrain(took, "withdrawn")
			return
		case err != nil:
			h.tel.recordDrain(took, "failed")
			h.recordAnswer(c.request, Answer{State: Failed, Error: stored.Excerpt(err.Error(), maxReason)}, false)
		default:
			h.tel.recordDrain(took, "drained")
			h.recordAnswer(c.request, Answer{State: Drained}, false)
		}
		h.changed()
	}()
}

// recordAnswer keeps the answer to a request, for writeAnswer. With first, the answer to another
// request is replaced, and an answer to this request stays. Without first, an answer to this
// request is replaced, and an answer to another one stays: this request was withdrawn then.
func (h *cordonHandler) recordAnswer(request string, reply Answer, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first != (h.request == request) {
		h.request, h.reply = request, reply
	}
}

// readGroup returns the names of the group's nodes, and the version of the group's node. It returns
// no names if the cordon is not the present one: the follower reads the present one.
func (h *cordonHandler) readGroup(ctx context.Context, s *framework.Session,
	c *Cordon) (names []string, version int32, err error) {
	if err := s.Sync(ctx, h.group.path); err != nil {
		return nil, 0, err
	}
	names, group, err := s.Children(ctx, h.group.path)
	if err != nil {
		return nil, 0, err
	}
	_, stat, err := s.Get(ctx, h.path)
	if errors.Is(err, framework.ErrNoNode) || err == nil && stat.Mzxid != c.zxid {
		return nil, 0, nil
	}
	return names, group.Version, err
}

// writeAnswer writes the answer that was kept into the cordon's node, unless the node has it, and
// removes the answers of nodes that are gone. The transaction checks that the member's node exists:
// a former session cannot answer. It also checks that nothing has changed in the group since the
// cordon was read: the version of the cordon's node does not tell whether the cordon was withdrawn
// and requested again meanwhile, since the versions of the next node begin at 0.
//
// refused is true if the servers have refused the answer, such as for want of permission to write
// the cordon. The member stays listed all the same, and keeps to the cordon.
func (h *cordonHandler) writeAnswer(ctx context.Context, s *framework.Session, node string) (refused bool, err error) {
	h.mu.Lock()
	request, reply := h.request, h.reply
	h.mu.Unlock()
	c := h.cordon.Load()
	_, name := znode.Split(node)
	if c == nil || request == "" || c.request != request {
		return false, nil
	}
	if c.Answers[name] == reply {
		h.drainAnswered(request, reply)
		return false, nil
	}
	err = h.sendAnswer(ctx, s, c, node, reply)
	var conflict *framework.TxError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil || s.Err() != nil:
		return false, err
	case isConflict(err) && errors.As(err, &conflict) && conflict.Index > 0:
		// the follower reads the changed cordon, or the watch of the member's node shows that the
		// node is gone
		return false, nil
	case isConflict(err) || isUnknown(err) || failure.IsTransient(err):
		h.changed()
		return false, nil
	}
	h.drainAnswered(request, reply)
	if this := (refusedAnswer{request, reply}); this != h.refused {
		h.refused = this
		h.group.client.Logger().Warn(
			"the servers refuse a member's answer to its cordon; the member keeps to the cordon and tries again "+
				"every minute", "path", h.path, "answer", reply.State,
			"error", err)
	}
	return true, nil
}

// sendAnswer writes an answer into the cordon's node, unless another cordon is the present one.
func (h *cordonHandler) sendAnswer(ctx context.Context, s *framework.Session, c *Cordon, node string,
	reply Answer) error {
	present, group, err := h.readGroup(ctx, s, c)
	if err != nil || present == nil {
		return err
	}
	_, name := znode.Split(node)
	data, err := c.toRecord().withAnswer(name, reply, present)
	if err != nil {
		return err
	}
	_, err = s.Multi(ctx, framework.CheckOp(h.group.path, group), framework.CheckOp(node, framework.AnyVersion),
		framework.SetOp(h.path, data, c.version), h.group.announceOp())
	if err == nil {
		h.drainAnswered(c.request, reply)
	}
	return err
}
