package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// actor is a goroutine of a process that plays a scene.
type actor struct {
	*process
	name string
	r    *rand.Rand
	lazy time.Duration // its longest pauses
}

func newActor(p *process, spec sceneSpec, n int) *actor {
	name := fmt.Sprintf("%s%c", p.name, 'a'+n)
	return &actor{process: p, name: name, r: stream(p.w.plan.seed, "actor "+spec.path+" "+name), lazy: p.w.plan.length / 20}
}

// goOn lets some time pass, and tells whether to do another thing.
func (a *actor) goOn() bool {
	a.rest(a.ctx, pick(a.r, 0, between(a.r, 0, 5*time.Millisecond), between(a.r, 0, 500*time.Millisecond), between(a.r, 0, a.lazy)))
	return a.ctx.Err() == nil && !a.w.isOver()
}

// rest waits for d, or until ctx ends, or the program is over, and longer while the process is frozen.
func (a *actor) rest(ctx context.Context, d time.Duration) {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-a.w.over:
		}
	}
	a.gate()
}

// patience returns a context for one call, which may end at any point of it.
func (a *actor) patience() (context.Context, context.CancelFunc) {
	switch a.r.IntN(5) {
	case 0:
		return context.WithTimeout(a.ctx, pick(a.r, between(a.r, 0, 20*time.Millisecond), between(a.r, 0, 2*time.Second), between(a.r, 0, 2*a.w.plan.timeout)))
	case 1:
		ctx, cancel := context.WithCancel(a.ctx)
		a.at(1+a.r.IntN(8), cancel)
		return ctx, cancel
	}
	return context.WithCancel(a.ctx)
}

// hasSession tells whether a session is the one that the process has now.
func (a *actor) hasSession(id int64) bool {
	ctx, cancel := context.WithTimeout(a.ctx, time.Nanosecond)
	defer cancel()
	s, err := a.client.Session(ctx)
	return err == nil && s.ID() == id && s.Err() == nil
}

// excused tells whether a call may fail with an error: its context has ended, or its process.
func (a *actor) excused(ctx context.Context, err error, also ...error) bool {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		a.w.hit(contextEnd)
		return true
	}
	for _, other := range also {
		if errors.Is(err, other) {
			return true
		}
	}
	return a.ctx.Err() != nil && (errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrSessionLost))
}

// outcome is an error in a word.
func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}
