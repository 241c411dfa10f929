package queue

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// countOps counts the operations that the servers get in transactions.
func (w *world) countOps() (operations *atomic.Int64) {
	operations = new(atomic.Int64)
	w.t.Cleanup(w.Observe(func(q zktest.Request) {
		if q.Op == zktest.OpMulti {
			operations.Add(int64(len(q.Parts)))
		}
	}))
	return operations
}

// TestRefusedPutsAreFoundTogether: otherwise each of them would cost a round trip, with all others
// of the batch, while puts and acknowledgements wait.
func TestRefusedPutsAreFoundTogether(t *testing.T) {
	const n, roundTrip = 300, 2 * time.Millisecond
	for name, put := range map[string]struct {
		how  PutOption
		want error
	}{
		"operations": {WithOps(framework.CheckOp("/missing", framework.AnyVersion)), errRefused},
		"ids":        {nil, ErrDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a", WithDedup(time.Hour))
				ids := func(i int) PutOption { return WithID(fmt.Sprint(i)) }
				for i := range n {
					require.NoError(t, m.Put(t.Context(), "before", ids(i)))
				}
				d := m.take()
				m.link.Delay(roundTrip / 2)
				operations := w.countOps()
				began := time.Now()
				refused := make([]*Pending, n)
				for i := range refused {
					how := put.how
					if how == nil {
						how = ids(i)
					}
					refused[i] = m.PutAsync(t.Context(), "refused", how)
				}
				other := m.PutAsync(t.Context(), "other")
				require.NoError(t, d.Ack(t.Context()))
				require.NoError(t, other.Wait(t.Context()))
				require.LessOrEqual(t, time.Since(began), 10*roundTrip, "another put, and an acknowledgement")
				for _, p := range refused {
					require.ErrorIs(t, p.Wait(t.Context()), put.want)
				}
				require.Less(t, operations.Load(), int64(15*n))
			})
		})
	}
}

// TestPutThatNeedsAnEarlierOneIsNotRefused: the puts of a batch happen in their order, also if the
// servers have refused others.
func TestPutThatNeedsAnEarlierOneIsNotRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		m.put("first")
		m.link.Delay(time.Millisecond)
		refuse := WithOps(framework.CheckOp("/missing", framework.AnyVersion))
		makes := func(node string) PutOption { return WithOps(framework.CreateOp(node, nil, framework.Persistent)) }
		var refused, done []*Pending
		batch := []*Pending{m.PutAsync(t.Context(), "goes alone")}
		for range 2 * maxRefusals {
			refused = append(refused, m.PutAsync(t.Context(), "refused", refuse))
		}
		for _, how := range []PutOption{makes("/node"), makes("/node/child"), WithOps(framework.CheckOp("/node", 0)),
			WithOps(framework.DeleteOp("/node/child", framework.AnyVersion)),
			WithOps(framework.DeleteOp("/node", framework.AnyVersion)), makes("/node")} {
			done = append(done, m.PutAsync(t.Context(), fmt.Sprint("item ", len(done)), how))
		}
		for _, p := range append(batch, done...) {
			require.NoError(t, p.Wait(t.Context()))
		}
		for _, p := range refused {
			require.ErrorIs(t, p.Wait(t.Context()), errRefused)
		}
		require.Equal(t, append([]string{"first", "goes alone"}, names(0, len(done))...), m.drain(2+len(done)))
		node, there := w.Node("/node")
		require.True(t, there)
		require.Zero(t, node.Stat.Version)
		require.Empty(t, w.Children("/node"))
	})
}

// TestPutsThatRefuseEachOther: each second put has the id of the one before.
func TestPutsThatRefuseEachOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 100
		m := w.member("a", WithDedup(time.Hour))
		require.NoError(t, m.Put(t.Context(), "first", WithID("first")))
		m.link.Delay(time.Millisecond)
		operations := w.countOps()
		var all []*Pending
		for i := range n {
			all = append(all, m.PutAsync(t.Context(), fmt.Sprint("item ", i), WithID(fmt.Sprint(i))),
				m.PutAsync(t.Context(), "again", WithID(fmt.Sprint(i))))
		}
		for i, p := range all {
			if err := p.Wait(t.Context()); i%2 == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrDuplicate)
			}
		}
		require.Less(t, operations.Load(), int64(100*n))
		require.Equal(t, append([]string{"first"}, names(0, n)...), m.drain(n+1))
	})
}
