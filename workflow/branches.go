package workflow

import (
	"context"
	"sync"
)

// branches are the functions of Parallel that a recorder has under way. One that waits for a time,
// a signal or a child waits in this process as long as another one works. When none works, all of
// them return ErrWaiting, and the run waits on the servers.
type branches struct {
	mu sync.Mutex
	// functions that have not returned, without those that wait or are in a Parallel of their own
	working int
	idle    context.Context // ends, for ever, when a function waits and none works
	setIdle context.CancelFunc
}

func newBranches() *branches {
	b := &branches{}
	b.idle, b.setIdle = context.WithCancel(context.Background())
	return b
}

// originKey is the key of a context's origin in a recorder.
type originKey struct{ *branches }

// contextOrigin is where a context comes from.
type contextOrigin int

const (
	besideBranches contextOrigin = iota // not from Parallel
	inBranch                            // from Parallel
	// from a step, whose functions in Parallel are no branches: the step does not wait for what
	// others do
	inStep
)

func (b *branches) originOf(ctx context.Context) contextOrigin {
	o, _ := ctx.Value(originKey{b}).(contextOrigin)
	return o
}

func (b *branches) withOrigin(ctx context.Context, o contextOrigin) context.Context {
	if b.originOf(ctx) == o {
		return ctx
	}
	return context.WithValue(ctx, originKey{b}, o)
}

// begin counts n functions of a Parallel that was called with ctx. It returns the context of these
// functions, and what each one calls at its end.
func (b *branches) begin(ctx context.Context, n int) (within context.Context, finish func()) {
	from := b.originOf(ctx)
	if from == inStep || n == 0 {
		return ctx, func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working += n
	if from == inBranch { // which does nothing but wait for these
		b.working--
	}
	return b.withOrigin(ctx, inBranch), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if n--; n == 0 && from == inBranch { // which goes on in the place of this one
			return
		}
		b.working--
		b.endWaitsIfIdle()
	}
}

// wait records that a function waits until it calls resume. ok is false if the function is to
// return ErrWaiting at once.
func (b *branches) wait(ctx context.Context) (resume func(), ok bool) {
	if b.originOf(ctx) != inBranch {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working--
	b.endWaitsIfIdle()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.working++
	}, b.idle.Err() == nil
}

// endWaitsIfIdle ends all waits if no function works. b.mu is held.
func (b *branches) endWaitsIfIdle() {
	if b.working <= 0 {
		b.setIdle()
	}
}
