package locks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/locks"
)

// stopped is the clock of a process that is stopped: when it goes on, time has passed, and no timer
// has fired yet.
type stopped struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *stopped) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

// TestLeaseOfStoppedProcessEndsAtOnce by the context of each kind of lease, whatever it lies
// within.
func TestLeaseOfStoppedProcessEndsAtOnce(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, c *framework.Client) (*locks.Lease, error){
		"mutex": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			return locks.NewMutex(c, path).Lock(ctx)
		},
		"claim": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			return locks.NewClaim(c, path).Lock(ctx)
		},
		"turn of a slice": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			return locks.NewMutex(c, path, locks.WithLocalHandoff(time.Second)).Lock(ctx)
		},
		"nested": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			m := locks.NewMutex(c, path, locks.WithReentry())
			outer, err := m.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return m.Lock(outer.Context())
		},
		"read under write": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			rw := locks.NewRWLock(c, path)
			outer, err := rw.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return rw.RLock(outer.Context())
		},
		"several": func(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
			return locks.NewMultiLock(locks.NewMutex(c, path), locks.NewMutex(c, path+"-2")).Lock(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				clock := &stopped{Clock: clock.Time()}
				lease, err := take(t.Context(), w.zk.Member(t, "a", config, testclock.WithClock(clock)).Client)
				require.NoError(t, err)
				ctx := lease.Context()
				require.NoError(t, ctx.Err())
				clock.ahead.Store(int64(timeout))
				require.Error(t, ctx.Err())
				require.ErrorIs(t, context.Cause(ctx), framework.ErrSessionLost)
				require.ErrorIs(t, lease.Err(), framework.ErrSessionLost)
			})
		})
	}
}

// TestDoEndsAtOnceInStoppedProcess, by the context that the function got.
func TestDoEndsAtOnceInStoppedProcess(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		clock := &stopped{Clock: clock.Time()}
		c := w.zk.Member(t, "a", config, testclock.WithClock(clock)).Client
		err := locks.Do(t.Context(), locks.NewMutex(c, path), func(ctx context.Context, _ *locks.Lease) error {
			require.NoError(t, ctx.Err())
			clock.ahead.Store(int64(timeout))
			require.Error(t, ctx.Err())
			require.ErrorIs(t, context.Cause(ctx), framework.ErrSessionLost)
			return nil
		})
		require.ErrorIs(t, err, framework.ErrSessionLost)
	})
}
