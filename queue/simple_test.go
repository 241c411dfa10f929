package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestCuratorQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := NewCuratorQueue(w.member("a").client, "/simple"), NewCuratorQueue(w.member("b").client, "/simple")
		_, err := a.Poll(t.Context())
		require.ErrorIs(t, err, ErrEmpty)
		got := make(chan string, 1)
		go func() {
			data, err := b.Take(context.Background())
			require.NoError(t, err)
			got <- string(data)
		}()
		time.Sleep(time.Minute)
		require.NoError(t, a.Put(t.Context(), []byte("one")))
		require.Equal(t, "one", <-got)
		for _, v := range []string{"two", "three"} {
			require.NoError(t, a.Put(t.Context(), []byte(v)))
		}
		data, err := b.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "two", string(data))
		for _, v := range []string{"two", "three"} {
			data, err := b.Poll(t.Context())
			require.NoError(t, err)
			require.Equal(t, v, string(data))
		}
		_, err = b.Take(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)

		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		require.ErrorIs(t, a.Put(t.Context(), []byte("x")), ErrUnknown)
		require.ErrorIs(t, NewCuratorQueue(nil, "/x").Put(t.Context(), nil), ErrOption)
		_, err = NewCuratorQueue(w.member("c").client, "x").Take(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalidPath)
	})
}

// TestCuratorQueueRepeatsFailedRead: the session was lost between the list and the item, and
// nothing was removed.
func TestCuratorQueueRepeatsFailedRead(t *testing.T) {
	for name, look := range map[string]func(*CuratorQueue, context.Context) ([]byte,
		error){"peek": (*CuratorQueue).Peek, "poll": (*CuratorQueue).Poll, "take": (*CuratorQueue).Take} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				require.NoError(t, NewCuratorQueue(b.client, "/simple").Put(t.Context(), []byte("x")))
				_, err := a.client.Session(t.Context())
				require.NoError(t, err)
				a.link.Delay(slow)
				w.beforeRequest(a, zktest.OpGetData, "/simple/qn-", func() {
					a.link.Cut()
					time.AfterFunc(time.Minute, a.link.Heal)
				})
				data, err := look(NewCuratorQueue(a.client, "/simple"), within(t, 5*time.Minute))
				require.NoError(t, err)
				require.Equal(t, "x", string(data))
			})
		})
	}
}

// TestCuratorQueueClosedClientLeavesOutcomeUnknown: a put or a take was on its way as the client
// was closed.
func TestCuratorQueueClosedClientLeavesOutcomeUnknown(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, q *CuratorQueue) error{
		"put":  func(ctx context.Context, q *CuratorQueue) error { return q.Put(ctx, []byte("y")) },
		"take": func(ctx context.Context, q *CuratorQueue) error { _, err := q.Take(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a := w.member("a")
				q := NewCuratorQueue(a.client, "/simple")
				require.NoError(t, q.Put(t.Context(), []byte("x")))
				a.link.Delay(slow)
				closed := make(chan struct{})
				w.beforeRequest(a, zktest.OpMulti, "", func() {
					go func() {
						defer close(closed)
						_ = a.client.Close(context.Background())
					}()
				})
				err := call(within(t, time.Minute), q)
				require.ErrorIs(t, err, framework.ErrClosed)
				require.ErrorIs(t, err, ErrUnknown)
				<-closed
			})
		})
	}
}
