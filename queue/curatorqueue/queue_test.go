package curatorqueue

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var config = framework.Config{SessionTimeout: 10 * time.Second}

// slow is the delay of a link in each direction.
const slow = 300 * time.Millisecond

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// before calls f when the member sends the first request of a kind.
func before(t *testing.T, w *zktest.Server, m *zktest.Member, op zktest.Op, f func()) {
	t.Helper()
	s, err := m.Client.Session(t.Context())
	require.NoError(t, err)
	sent := make(chan struct{}, 1)
	t.Cleanup(w.Observe(func(r zktest.Request) {
		if r.Session == s.ID() && r.Op == op && (op != zktest.OpMulti || r.Writes()) {
			select {
			case sent <- struct{}{}:
			default:
			}
		}
	}))
	called := make(chan struct{})
	go func() {
		defer close(called)
		select {
		case <-sent:
			f()
		case <-time.After(time.Hour):
			t.Errorf("no request %v was sent", op)
		}
	}()
	t.Cleanup(func() { <-called })
}

func TestCuratorQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := zktest.Start(t)
		a, b := New(w.Member(t, "a", config).Client, "/simple"), New(w.Member(t, "b", config).Client, "/simple")
		_, err := a.TryTake(t.Context())
		require.ErrorIs(t, err, queue.ErrEmpty)
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
			data, err := b.TryTake(t.Context())
			require.NoError(t, err)
			require.Equal(t, v, string(data))
		}
		_, err = b.Take(within(t, time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)

		w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		require.ErrorIs(t, a.Put(t.Context(), []byte("x")), framework.ErrOutcomeUnknown)
		require.NoError(t, a.Validate())
		require.Equal(t, "/simple", a.Path())
		require.ErrorIs(t, New(nil, "/x").Validate(), framework.ErrInvalid)
		require.ErrorIs(t, New(nil, "/x").Put(t.Context(), nil), framework.ErrInvalid)
		_, err = New(w.Member(t, "c", config).Client, "x").Take(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}

// TestCuratorQueueRepeatsFailedRead: the session was lost between the list and the item, and
// nothing was removed.
func TestCuratorQueueRepeatsFailedRead(t *testing.T) {
	for name, look := range map[string]func(*Queue, context.Context) ([]byte,
		error){"peek": (*Queue).Peek, "try to take": (*Queue).TryTake, "take": (*Queue).Take} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := zktest.Start(t)
				a, b := w.Member(t, "a", config), w.Member(t, "b", config)
				require.NoError(t, New(b.Client, "/simple").Put(t.Context(), []byte("x")))
				_, err := a.Client.Session(t.Context())
				require.NoError(t, err)
				a.Link.Delay(slow)
				before(t, w, a, zktest.OpGetData, func() {
					a.Link.Cut()
					time.AfterFunc(time.Minute, a.Link.Heal)
				})
				data, err := look(New(a.Client, "/simple"), within(t, 5*time.Minute))
				require.NoError(t, err)
				require.Equal(t, "x", string(data))
			})
		})
	}
}

// TestCuratorQueueClosedClientLeavesOutcomeUnknown: a put or a take was on its way as the client
// was closed.
func TestCuratorQueueClosedClientLeavesOutcomeUnknown(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, q *Queue) error{
		"put":  func(ctx context.Context, q *Queue) error { return q.Put(ctx, []byte("y")) },
		"take": func(ctx context.Context, q *Queue) error { _, err := q.Take(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := zktest.Start(t)
				a := w.Member(t, "a", config)
				q := New(a.Client, "/simple")
				require.NoError(t, q.Put(t.Context(), []byte("x")))
				a.Link.Delay(slow)
				closed := make(chan struct{})
				before(t, w, a, zktest.OpMulti, func() {
					go func() {
						defer close(closed)
						_ = a.Client.Close(context.Background())
					}()
				})
				err := call(within(t, time.Minute), q)
				require.ErrorIs(t, err, framework.ErrClosed)
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				<-closed
			})
		})
	}
}

// TestCuratorQueueRecreatesItsContainer: the servers remove the empty queue under a consumer that
// waits (CURATOR-308).
func TestCuratorQueueRecreatesItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := zktest.Start(t)
		a, p := w.Member(t, "a", config), w.Member(t, "p", config)
		q, other := New(a.Client, "/simple"), New(p.Client, "/simple")
		for i := range 3 {
			require.NoError(t, other.Put(t.Context(), []byte("x")))
			_, err := q.Take(t.Context())
			require.NoError(t, err)
			got := make(chan string, 1)
			go func() {
				data, err := q.Take(within(t, time.Hour))
				if err != nil {
					t.Error(err)
				}
				got <- string(data)
			}()
			if i == 2 { // by hand, at an instant
				synctest.Wait()
				require.NoError(t, p.Client.Delete(t.Context(), "/simple", framework.AnyVersion))
			} else {
				time.Sleep(5 * time.Minute)
			}
			v := fmt.Sprint("y", i)
			require.NoError(t, other.Put(context.WithoutCancel(t.Context()), []byte(v)))
			require.Equal(t, v, <-got)
		}
	})
}
