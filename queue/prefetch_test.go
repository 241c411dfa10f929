package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireNextItem checks that what is put next comes to this member, which waits for it.
func (m *member) requireNextItem(p *member) {
	m.t.Helper()
	got := m.takeInBackground()
	time.Sleep(time.Second)
	p.put("next")
	time.Sleep(time.Minute)
	select {
	case d := <-got:
		m.ack(d)
	default:
		require.Fail(m.t, "somebody keeps it")
	}
}

// TestTicketForExpectedTakeIsGivenBack: the call of Take that was expected has not come, and
// another delivery is open for long.
func TestTicketForExpectedTakeIsGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a"), w.member("b"), w.member("p")
		p.put("x", "y")
		x, y := a.take(), a.take()
		a.ack(x) // one of a's two workers ends; the other one works on y for long
		time.Sleep(time.Minute)
		b.requireNextItem(p)
		a.ack(y)
	})
}

func TestTicketIsGivenBackAfterTakeEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, p := w.member("a"), w.member("b"), w.member("p")
		p.put("y")
		y := a.take()
		_, err := a.Take(within(t, time.Second))
		require.Error(t, err)
		time.Sleep(time.Minute)
		b.requireNextItem(p)
		a.ack(y)
	})
}

// TestTakeAtEndOfIdleTimeout gets no item of the ending consumer session.
func TestTakeAtEndOfIdleTimeout(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, p := w.member("a", WithPrefetch(2)), w.member("p")
		p.put(names(0, 3)...)
		a.drain(1)
		time.Sleep(4 * time.Second)
		a.link.Delay(slow)
		time.Sleep(time.Second + 100*time.Millisecond)
		d, err := a.Take(within(t, time.Minute))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, d.Context().Err(), "%v attempt %d: %v", d.Value, d.Attempt, context.Cause(d.Context()))
		require.NoError(t, d.Ack(t.Context()))
	})
}

// TestItemPutAsConsumerLeavesCountsNoAttempt: no caller got it, so it counts no attempt.
func TestItemPutAsConsumerLeavesCountsNoAttempt(t *testing.T) {
	for name, c := range map[string]time.Duration{"closes": 0, "lingers": 0} {
		_ = c
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b, p := w.member("a"), w.member("b", WithMaxAttempts(1)), w.member("p")
				p.put("zero")
				a.drain(1)
				_, err := a.Take(within(t, time.Second))
				require.Error(t, err)
				got := b.takeInBackground()
				time.Sleep(time.Second)
				a.link.Delay(slow)
				if name == "closes" {
					go func() { time.Sleep(100 * time.Millisecond); _ = a.Close(t.Context()) }()
				} else {
					time.Sleep(3*time.Second - 100*time.Millisecond)
				}
				p.put("one")
				time.Sleep(10 * time.Second)
				n, err := p.Counts(t.Context())
				require.NoError(t, err)
				require.Zero(t, n.Dead)
				if n.Items == 0 {
					p.put("x")
				}
				d := <-got
				require.Equal(t, 1, d.Attempt)
				require.Equal(t, "one", d.Value)
				b.ack(d)
			})
		})
	}
}

// TestManyClaimsAtOnce are more tickets than one transaction can create, each with the consumer's
// long identity.
func TestManyClaimsAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 5000
		a, p := w.member(strings.Repeat("a", maxOwner), WithMaxInFlight(n), WithPrefetch(n)), w.member("p")
		for first := 0; first < n; first += 1000 {
			require.NoError(t, p.PutBatch(t.Context(), names(first, first+1000)))
		}
		var ds []*Delivery[string]
		for len(ds) < n { // a batch has what the consumer has claimed so far
			more, err := a.TakeBatch(within(t, time.Minute), n-len(ds))
			require.NoError(t, err)
			ds = append(ds, more...)
		}
		for i, d := range ds {
			require.Equal(t, fmt.Sprint("item ", i), d.Value)
		}
		require.NoError(t, ds[0].Context().Err(), "the consumer session has not ended")
	})
}
