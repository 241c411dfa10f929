package framework

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestAThrottledRequestIsRepeated has servers that put a request off twice.
func TestAThrottledRequestIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttled := replyError(link.Reply{Code: wire.ThrottledOp})
		require.ErrorIs(t, throttled, ErrOverloaded)
		require.True(t, failure.IsTransient(throttled))
		ready := make(chan struct{})
		close(ready)
		s := &caller{cfg: Config{}.WithDefaults(), session: t.Context(),
			whenConnected: func() <-chan struct{} { return ready }, requests: new(atomic.Int64)}
		for name, run := range map[string]func(context.Context, *caller, func(requester) (int, error)) (int,
			error){"a read": repeatUntilKnown[int], "a write": repeatUntilSent[int]} {
			tries, began := 0, time.Now()
			v, err := run(t.Context(), s, func(requester) (int, error) {
				if tries++; tries < 3 {
					return 0, throttled
				}
				return 7, nil
			})
			require.NoError(t, err, name)
			require.Equal(t, 7, v)
			require.Positive(t, time.Since(began), "it pauses")
		}
	})
}

// TestServerCodesAreNamed translates codes that servers answer with. A code that has no error of
// its own is named and is not transient.
func TestServerCodesAreNamed(t *testing.T) {
	for code, want := range map[wire.Code]error{
		wire.QuotaExceeded: ErrQuotaExceeded, wire.ThrottledOp: ErrOverloaded,
		wire.SessionClosedNeedsSASL: ErrAuthFailed, wire.NoAuth: ErrNoAuth,
		wire.SessionMoved: ErrSuspended, wire.SessionExpired: ErrSuspended,
	} {
		require.ErrorIs(t, codeError(code), want)
	}
	require.False(t, failure.IsTransient(codeError(wire.QuotaExceeded)))
	require.False(t, failure.IsTransient(codeError(wire.SessionClosedNeedsSASL)))
	for code, words := range map[wire.Code]string{
		wire.ReconfigInProgress: "zookeeper: error -14 (reconfiguration in progress)",
		wire.NotReadOnly:        "zookeeper: error -119 (not read-only)",
		-999:                    "zookeeper: error -999 (code -999)",
	} {
		err := codeError(code)
		require.EqualError(t, err, words)
		require.False(t, failure.IsTransient(err))
		require.False(t, wasNotExecuted(err))
	}
	require.NoError(t, codeError(wire.OK))
}
