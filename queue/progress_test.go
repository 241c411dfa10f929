package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestStrictItemsClaimedBeforeCrashComeAgain: the first claim of an item of a strict queue leaves
// no trace at the item. Of five, three were claimed, one of them acknowledged.
func TestStrictItemsClaimedBeforeCrashComeAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithOrder(Strict), WithMaxInFlight(3), segmentSize(2)),
			w.member("b", WithOrder(Strict), segmentSize(2))
		a.put(names(0, 5)...)
		require.NoError(t, a.Put(t.Context(), "urgent", WithPriority(3)))
		for range 2 {
			d := a.take()
			require.Equal(t, 1, d.Attempt)
			a.ack(d)
		}
		require.Equal(t, "item 1", a.take().Value)
		require.Equal(t, "item 2", a.take().Value)
		a.kill()
		for i, want := range []int{2, 2, 1, 1} {
			d := b.take()
			require.Equal(t, names(1, 5)[i], d.Value)
			require.Equal(t, want, d.Attempt, d.Value)
			b.ack(d)
		}
		b.requireNone()
	})
}

// TestStrictPurgedItemIsNotDelivered: a strict queue's consumer reads ahead of its claims.
func TestStrictPurgedItemIsNotDelivered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithOrder(Strict)), w.member("b", WithOrder(Strict))
		a.put(names(0, 20)...)
		d := a.take()
		time.Sleep(time.Second) // it has read ahead
		n, err := b.Purge(t.Context())
		require.NoError(t, err)
		require.Equal(t, 20, n)
		require.ErrorIs(t, d.Ack(t.Context()), ErrLost)
		b.put("new")
		d = a.take()
		require.Equal(t, "new", d.Value)
		require.Equal(t, 1, d.Attempt)
		a.ack(d)
	})
}

func TestStrictProgressChangedByOthers(t *testing.T) {
	for name, c := range map[string]struct {
		touch func(ctx context.Context, s *framework.Session, node string) error
		want  error
	}{
		"deleted": {func(ctx context.Context, s *framework.Session, node string) error {
			return s.Delete(ctx, node, framework.AnyVersion)
		}, nil},
		"garbage": {func(ctx context.Context, s *framework.Session, node string) error {
			_, err := s.Set(ctx, node, []byte("garbage"), framework.AnyVersion)
			return err
		}, errNotQueue},
		"newer": {func(ctx context.Context, s *framework.Session, node string) error {
			_, err := s.Set(ctx, node, []byte(`{"v":2}`), framework.AnyVersion)
			return err
		}, framework.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a", WithOrder(Strict)), w.member("b", WithOrder(Strict))
				a.put("1", "2")
				require.Equal(t, "1", a.drain(1)[0])
				s, err := b.client.Session(t.Context())
				require.NoError(t, err)
				require.NoError(t, c.touch(t.Context(), s, testPath+"/claimed"))
				if c.want == nil {
					require.Equal(t, "2", a.drain(1)[0], "who has the lock goes on")
					a.put("3")
				}
				require.NoError(t, a.Close(t.Context()))
				d, err := b.Take(within(t, time.Minute))
				require.ErrorIs(t, err, c.want)
				if err == nil {
					b.ack(d)
				}
			})
		})
	}
}

// TestRecordsKeepFieldsOfNewerReleases: calls that write a record again keep what they do not know.
func TestRecordsKeepFieldsOfNewerReleases(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithOrder(Strict))
		a.put("x")
		record := `{"v":2,"recipe":"queue","order":"strict","dedup":1000,` +
			`"retry":{"min":1,"max":2,"factor":2,"shade":3},"colour":{"b":[1, 2]}}`
		_, err := a.client.Set(t.Context(), testPath, []byte(record), framework.AnyVersion)
		require.NoError(t, err)
		require.NoError(t, a.client.Create(t.Context(), testPath+"/claimed",
			[]byte(`{"v":1,"lines":{"9":[3,4]},"colour":"red"}`), framework.Persistent))
		require.NoError(t, a.SetDedup(t.Context(), time.Minute))
		n, _ := w.Node(testPath)
		require.Equal(t, strings.Replace(record, "1000", "60000", 1), string(n.Data))
		a.drain(1)
		n, _ = w.Node(testPath + "/claimed")
		require.Equal(t, `{"v":1,"lines":{"9":[3,4],"items":[0,0]},"colour":"red"}`, string(n.Data))
	})
}
