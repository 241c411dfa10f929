package lifetime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is a parent that ends when its error is set.
type root struct {
	err error
	ctx context.Context
}

func (r *root) Err() error { return r.err }

func (r *root) BareContext() context.Context { return r.ctx }

// TestContextOfALifetimeThatEndsNow: another goroutine has ended the lifetime, and was stopped
// before it cancelled the context.
func TestContextOfALifetimeThatEndsNow(t *testing.T) {
	var l Lifetime
	l.Init(&root{ctx: t.Context()}, t.Context())
	ctx := l.Context()
	require.NoError(t, ctx.Err())
	cause := errors.New("ended")
	l.mu.Lock()
	l.cause = cause
	l.mu.Unlock()
	time.AfterFunc(time.Millisecond, func() { l.cancel(cause) })
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.Equal(t, cause, context.Cause(ctx))
}

// TestAReleaseDoesNotHideTheEndOfTheParent: a process was stopped, and goes on when its session is
// lost. It releases its lease before any timer has fired.
func TestAReleaseDoesNotHideTheEndOfTheParent(t *testing.T) {
	parent := &root{ctx: t.Context()}
	var l Lifetime
	l.Init(parent, t.Context())
	within := l.Child(t.Context())
	ctx := within.Context()
	parent.err = errors.New("the session is lost")
	l.End(errors.New("released"))
	require.Equal(t, parent.err, l.Err())
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.Equal(t, parent.err, context.Cause(ctx))
}

// TestAContextAskedForLateTellsItsLifetimesEnd: the parent ended after the lifetime, and before the
// lifetime's context was made.
func TestAContextAskedForLateTellsItsLifetimesEnd(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	var l Lifetime
	l.Init(&root{ctx: parent}, t.Context())
	cause := errors.New("ended first")
	l.End(cause)
	cancel(errors.New("the parent has ended"))
	ctx := l.Context()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.Equal(t, cause, context.Cause(ctx))
}

// TestALifetimeThatEndsWhileItIsJoinedIsForgotten: a part has ended it after it was added to that
// part, and before it was added to the other one.
func TestALifetimeThatEndsWhileItIsJoinedIsForgotten(t *testing.T) {
	var first, second Lifetime
	first.Init(&root{ctx: t.Context()}, t.Context())
	second.Init(&root{ctx: t.Context()}, t.Context())
	joint := Join(t.Context(), &first, &second)
	require.Len(t, second.dependents, 1)
	first.End(nil)
	require.Empty(t, second.dependents)
	joint.addToParts([]*Lifetime{&second})
	require.Empty(t, second.dependents)
}
