package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/zktest"
)

type mailArgs struct{ To string }

var (
	mailKind  = NewKind("mail", codec.JSON[mailArgs]())
	countKind = NewKind("count", codec.JSON[int]())
)

// tasks is a member's queue of several kinds.
func (m *member) tasks(opts ...Option) *Queue[[]byte] {
	q := New(m.client, testPath, codec.Bytes(), opts...)
	m.t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func TestItemsOfSeveralKindsGoToTheirHandlers(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		q := w.member("a").tasks(order, WithMaxAttempts(3))
		require.NoError(t, mailKind.Put(t.Context(), q, mailArgs{"ann"}, WithHeaders(map[string]string{"for": "bob"})))
		require.NoError(t, countKind.Put(t.Context(), q, 7, WithKind("mail"))) // the kind's own name stands
		require.NoError(t, q.Put(t.Context(), []byte("?"), WithKind("count")))
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		handler, err := ByKind(
			mailKind.Handler(func(ctx context.Context, d *Delivery[mailArgs]) error {
				seen = append(seen, fmt.Sprintf("%s %s to %s #%d", d.Kind, d.Headers["for"], d.Value.To, d.Attempt))
				if d.Attempt == 1 {
					return RetryAfter(0, errors.New("busy"))
				}
				return d.Ack(ctx)
			}),
			countKind.Handler(func(_ context.Context, d *Delivery[int]) error {
				seen = append(seen, fmt.Sprint(d.Kind, " ", d.Value))
				cancel()
				return nil
			}))
		require.NoError(t, err)
		require.NoError(t, q.Work(ctx, 1, handler))
		require.ElementsMatch(t, []string{"mail bob to ann #1", "mail bob to ann #2", "count 7"}, seen)
		item, err := q.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "count", item.Kind)
		other := w.member("b").tasks()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.NoError(t, other.Work(ctx, 1, handler))
		for letter, err := range other.DeadLetters(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, "count", letter.Kind)
			require.Contains(t, letter.LastError, "codec: decode")
		}
		c, err := other.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{Dead: 1}, c)
	})
}

// TestItemOfAnUnknownKindIsNotLost: another release handles it, or it becomes a dead letter.
func TestItemOfAnUnknownKindIsNotLost(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		old := w.member("old").tasks(order, WithMaxAttempts(3))
		require.NoError(t, countKind.Put(t.Context(), old, 1))
		mails, err := ByKind(mailKind.Handler(func(context.Context, *Delivery[mailArgs]) error { return nil }))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- old.Work(ctx, 1, mails) }()
		time.Sleep(UnknownKindPause / 2)
		n, err := old.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, old.Close(t.Context()))

		both, err := ByKind(countKind.Handler(func(_ context.Context, d *Delivery[int]) error {
			require.Equal(t, []any{1, 2}, []any{d.Value, d.Attempt})
			cancel()
			return nil
		}))
		require.NoError(t, err)
		ctx, cancel = context.WithCancel(t.Context())
		released := w.member("new").tasks(WithMaxAttempts(3))
		require.NoError(t, released.Work(ctx, 1, both))

		require.NoError(t, countKind.Put(t.Context(), released, 2))
		require.NoError(t, released.Put(t.Context(), []byte("x")))
		began := time.Now()
		ctx, cancel = context.WithCancel(t.Context())
		go func() { ended <- released.Work(ctx, 2, mails) }()
		for letters := 0; letters < 2; time.Sleep(time.Second) {
			c, err := released.Counts(t.Context())
			require.NoError(t, err)
			letters = c.Dead
		}
		require.GreaterOrEqual(t, time.Since(began), 2*UnknownKindPause)
		cancel()
		require.NoError(t, <-ended)
		var reasons []string
		for letter, err := range released.DeadLetters(t.Context()) {
			require.NoError(t, err)
			reasons = append(reasons, letter.LastError)
		}
		require.ElementsMatch(t, []string{errUnknownKind.Error() + `: "count"`, errUnknownKind.Error() + `: ""`}, reasons)
	})
}

// TestKindIsStoredInTheHeader, and an item without one has the bytes that it had before there were
// kinds. A release without kinds keeps the field when it writes an item again, as this one does
// with fields that it does not know.
func TestKindIsStoredInTheHeader(t *testing.T) {
	e := queuelayout.Envelope{Header: queuelayout.Header{Kind: "mail"}, Payload: []byte("x")}
	data, err := e.EncodeNew()
	require.NoError(t, err)
	require.Equal(t, "\x01\x0f"+`{"kind":"mail"}x`, string(data))
	data, err = queuelayout.Envelope{Payload: []byte("x")}.EncodeNew()
	require.NoError(t, err)
	require.Equal(t, "\x01\x00x", string(data), "without a kind nothing is stored")
}

func TestKindsAreChecked(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		q := w.member("a").tasks()
		for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("k", maxKind+1)} {
			bad := NewKind(name, codec.JSON[int]())
			require.ErrorIs(t, bad.Put(t.Context(), q, 1), errOption)
			require.ErrorIs(t, q.Put(t.Context(), nil, WithKind(name)), errOption)
			_, err := ByKind(bad.Handler(func(context.Context, *Delivery[int]) error { return nil }))
			require.ErrorIs(t, err, errOption)
		}
		require.ErrorIs(t, Kind[int]{}.Put(t.Context(), q, 1), errOption)
		require.ErrorIs(t, NewKind[int]("n", nil).Put(t.Context(), q, 1), errOption)
		require.ErrorIs(t, NewKind("c", codec.JSON[chan int]()).Put(t.Context(), q, nil), errCodec)
		good := countKind.Handler(func(context.Context, *Delivery[int]) error { return nil })
		for want, handlers := range map[string][]KindHandler{
			"no handler": nil, "two handlers": {good, good}, "Kind.Handler": {{}}, "is nil": {countKind.Handler(nil)},
		} {
			_, err := ByKind(handlers...)
			require.ErrorIs(t, err, errOption)
			require.ErrorContains(t, err, want)
		}
		_, found := w.Node(testPath)
		require.False(t, found)
	})
}

// letters collects what WithOnDead was called with.
func letters() (Option, chan DeadLetter) {
	all := make(chan DeadLetter, 10)
	return WithOnDead(func(l DeadLetter) { all <- l }), all
}

func TestOnDeadIsToldEachReason(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		told, all := letters()
		a := w.member("a", order, told, WithMaxAttempts(1))
		require.NoError(t, a.Put(t.Context(), "failed", WithKind("k"), WithHeaders(map[string]string{"for": "ann"})))
		require.NoError(t, a.Put(t.Context(), "buried"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := a.working(ctx, 1, func(_ context.Context, d *Delivery[string]) error {
			if d.Value == "buried" {
				return Permanent(errors.New("no use"))
			}
			return errors.New("no luck")
		})
		l := <-all
		require.Equal(t, DeadLetter{Kind: "k", Attempts: 1, LastError: "no luck", Data: []byte("failed"),
			Headers: map[string]string{"for": "ann"}, Enqueued: l.Enqueued}, l)
		require.NotZero(t, l.Enqueued)
		require.Equal(t, "no use", (<-all).LastError)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, a.Put(t.Context(), "late", WithExpiry(time.Second)))
		time.Sleep(time.Minute)
		a.requireNone()
		require.Equal(t, "expired", (<-all).LastError)
		require.Len(t, a.dead(), 3)
		require.ErrorIs(t, w.member("bad", WithOnDead(nil)).Put(t.Context(), "x"), errOption)
	})
}

// TestOnDeadIsToldOnce after a lost reply, and not when the session was lost before the letter was
// made: then the next consumer makes it, and is told. A panic harms nobody, and Close waits for the
// call.
func TestOnDeadIsToldOnce(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		var calls atomic.Int32
		a := w.member("a", order, WithMaxAttempts(1), WithOnDead(func(DeadLetter) {
			time.Sleep(time.Second)
			calls.Add(1)
			panic("no pager")
		}))
		a.put("x", "y")
		d := a.take()
		w.DropReply(1, zktest.Match{Op: zktest.OpMulti})
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("lost reply")))
		d = a.take()
		a.link.BlackHole(true, true)
		time.Sleep(time.Minute)
		require.ErrorIs(t, d.Nack(t.Context(), 0, errors.New("lost session")), ErrLost)
		a.link.BlackHole(false, false)
		require.Len(t, a.dead(), 1)
		require.EqualValues(t, 1, calls.Load())
		a.requireNone() // its attempt is used up
		require.NoError(t, a.Close(t.Context()))
		require.EqualValues(t, 2, calls.Load())
	})
}
