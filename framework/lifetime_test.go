package framework_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// jumping is a clock that can be put ahead, as a process finds it that was stopped.
type jumping struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *jumping) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

type valueKey struct{}

// lifetimes runs a test with two holds of one session.
func lifetimes(t *testing.T, test func(t *testing.T, clock *jumping, a, b primitives.Hold)) {
	synctest.Test(t, func(t *testing.T) {
		clock := &jumping{Clock: clock.Time()}
		s := session(t, zktest.Start(t).Member(t, "a", config, testclock.WithClock(clock)))
		var holds []primitives.Hold
		for _, path := range []string{"/a", "/b"} {
			h, err := primitives.Of(s).Hold(context.WithValue(t.Context(), valueKey{}, path), createOwn(t, s, path))
			require.NoError(t, err)
			holds = append(holds, h)
		}
		test(t, clock, holds[0], holds[1])
	})
}

// TestALifetimeReadsTheClock, however deep it lies and whether or not its context was asked for
// before.
func TestALifetimeReadsTheClock(t *testing.T) {
	for _, made := range []bool{false, true} {
		lifetimes(t, func(t *testing.T, clock *jumping, a, b primitives.Hold) {
			child := lifetime.Join(t.Context(), a.Lifetime(), b.Lifetime()).Child(t.Context()).Child(t.Context())
			if made {
				require.NoError(t, child.Context().Err())
			}
			require.NoError(t, child.Err())
			clock.ahead.Store(int64(config.SessionTimeout))
			require.Error(t, child.Context().Err())
			require.ErrorIs(t, child.Err(), framework.ErrSessionLost)
			require.ErrorIs(t, context.Cause(child.Context()), framework.ErrSessionLost)
		})
	}
}

// TestALifetimeHasItsOwnValues, and none of what it lies within.
func TestALifetimeHasItsOwnValues(t *testing.T) {
	lifetimes(t, func(t *testing.T, _ *jumping, a, b primitives.Hold) {
		own := context.WithValue(t.Context(), valueKey{}, "own")
		require.Equal(t, "/a", a.Context().Value(valueKey{}))
		require.Equal(t, "own", a.Lifetime().Child(own).Context().Value(valueKey{}))
		require.Nil(t, a.Lifetime().Child(t.Context()).Context().Value(valueKey{}))
		require.Equal(t, "own", lifetime.Join(own, a.Lifetime(), b.Lifetime()).Context().Value(valueKey{}))
	})
}

// TestLifetimesEndTogether: those that depend on one have ended when End returns.
func TestLifetimesEndTogether(t *testing.T) {
	cause := errors.New("it is over")
	for _, end := range []func(a, b primitives.Hold){func(a, _ primitives.Hold) { a.End(cause) },
		func(_, b primitives.Hold) { b.End(cause) }} {
		lifetimes(t, func(t *testing.T, _ *jumping, a, b primitives.Hold) {
			joint := lifetime.Join(t.Context(), a.Lifetime(), b.Lifetime())
			ctx := joint.Context()
			late := joint.Child(t.Context())
			end(a, b)
			select {
			case <-ctx.Done():
			default:
				require.Fail(t, "the joint lifetime goes on")
			}
			require.Equal(t, cause, context.Cause(ctx))
			require.Equal(t, cause, late.Err())
			require.Equal(t, cause, context.Cause(late.Context()))
			joint.End(errors.New("too late"))
			require.Equal(t, cause, joint.Err())
		})
	}
}

// TestALifetimesEndIsItsOwn: what it lies within goes on.
func TestALifetimesEndIsItsOwn(t *testing.T) {
	lifetimes(t, func(t *testing.T, _ *jumping, a, b primitives.Hold) {
		joint := lifetime.Join(t.Context(), a.Lifetime(), b.Lifetime())
		child := joint.Child(t.Context())
		child.End(nil)
		require.ErrorIs(t, child.Err(), context.Canceled)
		require.NoError(t, joint.Err())
		joint.End(context.Canceled)
		require.ErrorIs(t, context.Cause(joint.Context()), context.Canceled)
		require.NoError(t, a.Err())
		require.NoError(t, b.Err())
	})
}

// TestAContextOfALifetimeNeedsNoGoroutine for those that are derived from it, whatever values it
// carries.
func TestAContextOfALifetimeNeedsNoGoroutine(t *testing.T) {
	lifetimes(t, func(t *testing.T, _ *jumping, a, _ primitives.Hold) {
		asked, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := context.WithValue(a.Lifetime().Child(asked).Context(), valueKey{}, 1)
		before := runtime.NumGoroutine()
		for range 100 {
			_, cancel := context.WithCancel(ctx)
			defer cancel()
		}
		require.Less(t, runtime.NumGoroutine(), before+50)
	})
}
