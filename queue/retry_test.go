package queue

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestRetryPoliciesAreChecked(t *testing.T) {
	for _, p := range []RetryPolicy{{}, {Min: time.Microsecond}, {Min: -time.Second},
		{Min: time.Second, Max: time.Millisecond},
		{Min: time.Second, Max: 11 * 365 * 24 * time.Hour}, {Min: time.Second, Factor: 0.5},
		{Min: time.Second, Factor: math.NaN()},
		{Min: time.Second, Factor: math.Inf(1)}, {Min: time.Second, Jitter: -0.1}, {Min: time.Second, Jitter: 1.1},
		{Min: time.Second, Jitter: math.NaN()}} {
		_, err := p.withDefaults()
		require.ErrorIs(t, err, errOption, "%+v", p)
	}
	p, err := RetryPolicy{Min: time.Second}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, RetryPolicy{Min: time.Second, Max: 1000 * time.Second, Factor: 2}, p)
	s := queuelayout.StoredRetry{Min: 100, Max: 5000, Factor: 3, Jitter: 0.5}
	for attempt, want := range []time.Duration{100, 100, 300, 900, 2700, 5000, 5000} {
		require.Equal(t, want*time.Millisecond, s.DelayAfter(attempt, 0))
	}
	require.Equal(t, 5*time.Second, s.DelayAfter(math.MaxInt32, 0))
	require.Equal(t, 75*time.Millisecond, s.DelayAfter(1, 0.5))
}

// TestRetryPolicyDelaysFailedAttempts: the one stored with the queue, also for those who were not
// told of it.
func TestRetryPolicyDelaysFailedAttempts(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		p := w.member("p", order, WithRetry(RetryPolicy{Min: 10 * time.Second, Max: 25 * time.Second}))
		p.put("x")
		a := w.member("a", order)
		d := a.take()
		failed := time.Now()
		waited := func(want time.Duration) {
			took := time.Since(failed)
			require.True(t, took >= want && took <= want+2*time.Second, "%v, want %v", took, want)
			failed = time.Now()
		}
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		d = a.take()
		waited(10 * time.Second)
		require.NoError(t, d.Nack(t.Context(), 5*time.Second, nil))
		d = a.take()
		waited(5 * time.Second)
		require.NoError(t, d.Nack(t.Context(), 0, nil))
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(_ context.Context, d *Delivery[string]) error {
			waited(25 * time.Second)
			if d.Attempt < 6 {
				return errors.New("again")
			}
			cancel()
			return nil
		})
		require.NoError(t, <-ended)
	})
}

// TestRetryPolicyIsStored: another one is refused, and a queue without one has none.
func TestRetryPolicyIsStored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		policy := WithRetry(RetryPolicy{Min: time.Second, Max: time.Minute, Jitter: 0.25})
		p := w.member("p", policy)
		p.put("x")
		same := w.member("same", policy)
		_, known := same.RetryPolicy()
		require.False(t, known)
		same.drain(1)
		stored, known := same.RetryPolicy()
		require.True(t, known)
		require.Equal(t, RetryPolicy{Min: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.25}, stored)
		err := w.member("other", WithRetry(RetryPolicy{Min: 2 * time.Second})).Put(t.Context(), "y")
		require.ErrorIs(t, err, errMismatch)
		require.ErrorContains(t, err,
			"the stored retry policy is 1s to 1m0s, factor 2, jitter 0.25, given is 2s to 33m20s, factor 2, jitter 0")
		require.ErrorContains(t, err, "SetRetry")
		_, err = queuelayout.DecodeRecord([]byte(
			`{"v":2,"recipe":"queue","order":"parallel","retry":{"min":5,"max":1,"factor":2}}`))
		require.ErrorIs(t, err, errNotQueue)
		r, err := queuelayout.DecodeRecord([]byte(`{"v":2,"recipe":"queue","order":"parallel"}`))
		require.NoError(t, err)
		require.Nil(t, r.Retry)
		require.ErrorIs(t, w.member("bad", WithRetry(RetryPolicy{})).Put(t.Context(), "y"), errOption)
	})
}

// TestSetRetryWhileQueueIsInUse: a consumer goes by the new policy, also one that was made with the
// former one, and one that is made later must agree. What a later release has stored stays.
func TestSetRetryWhileQueueIsInUse(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		former := WithRetry(RetryPolicy{Min: 10 * time.Second, Max: 10 * time.Second})
		a, operator := w.member("a", order, former), w.member("operator")
		a.put("x")
		record, _ := w.Node(testPath)
		later := strings.Replace(string(record.Data), `"retry":{`, `"retry":{"curve":"s",`, 1)
		_, err := operator.client.Set(t.Context(), testPath, []byte(later), record.Stat.Version)
		require.NoError(t, err)
		failsFor := func(want time.Duration) {
			t.Helper()
			failed := time.Now()
			require.NoError(t, a.take().Nack(t.Context(), 0, nil))
			d := a.take()
			took := time.Since(failed)
			require.True(t, took >= want && took <= want+2*time.Second, "%v, want %v", took, want)
			require.NoError(t, d.Return(t.Context()))
		}
		failsFor(10 * time.Second)
		minute := RetryPolicy{Min: time.Minute, Max: time.Minute}
		require.NoError(t, operator.SetRetry(t.Context(), minute))
		time.Sleep(time.Second) // a learns of it
		failsFor(time.Minute)
		require.Contains(t, string(w.only(testPath)), `"curve":"s"`)
		require.ErrorIs(t, w.member("b", former).Put(t.Context(), "y"), errMismatch)
		w.member("c", WithRetry(minute)).put("y")
		require.NoError(t, operator.SetRetry(t.Context(), RetryPolicy{}))
		time.Sleep(time.Second)
		failsFor(0)
		require.NotContains(t, string(w.only(testPath)), "retry")
		require.ErrorIs(t, operator.SetRetry(t.Context(), RetryPolicy{Max: time.Second}), errOption)
	})
}

// TestSetRetryIsAppliedAfterLostReply, and after the session has ended meanwhile.
func TestSetRetryIsAppliedAfterLostReply(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		a.put("x")
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: func(r zktest.Request) bool {
			return len(r.Parts) > 0 && r.Parts[0].Path == testPath
		}})
		require.NoError(t, a.SetRetry(t.Context(), RetryPolicy{Min: time.Second, Max: time.Minute}))
		require.Contains(t, string(w.only(testPath)), `"retry":{"min":1000,"max":60000,"factor":2}`)
		a.link.BlackHole(true, true)
		time.AfterFunc(time.Minute, func() { a.link.BlackHole(false, false) })
		require.NoError(t, a.SetRetry(within(t, time.Hour), RetryPolicy{Min: 2 * time.Second, Max: time.Minute}))
		require.Contains(t, string(w.only(testPath)), `"retry":{"min":2000,"max":60000,"factor":2}`)
	})
}
