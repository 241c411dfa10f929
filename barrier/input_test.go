package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestBadInput(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		double := func(c *framework.Client, path string, n int) error {
			_, err := barrier.NewDoubleBarrier(c, path, n).Enter(t.Context())
			return err
		}
		for says, err := range map[string]error{
			"enter /x: the client is nil":                               double(nil, "/x", 2),
			`enter x: invalid path "x"`:                                 double(c, "x", 2),
			"enter /: invalid path \"/\": the root cannot be a barrier": double(c, "/", 2),
			"enter /x: impossible number: 0, there must be 1 to 1000":   double(c, "/x", 0),
			"enter /x: impossible number: -3,":                          double(c, "/x", -3),
			"enter /x: impossible number: 1001,":                        double(c, "/x", 1001),
			"wait at /y: the client is nil":                             barrier.NewGate(nil, "/y").Wait(t.Context()),
			`raise y: invalid path "y"`:                                 barrier.NewGate(c, "y").Raise(t.Context()),
			`lower /y/: invalid path "/y/"`:                             barrier.NewGate(c, "/y/").Lower(t.Context()),
			"count down /z: the client is nil": barrier.NewLatch(nil, "/z",
				2).CountDown(t.Context(), "a"),
			"wait at /z: impossible number: 0,":       barrier.NewLatch(c, "/z", 0).Wait(t.Context()),
			`count down /z: impossible caller id: ""`: barrier.NewLatch(c, "/z", 2).CountDown(t.Context(), ""),
			`count down /z: impossible caller id: "a/b"`: barrier.NewLatch(c, "/z", 2).CountDown(t.Context(),
				"a/b"),
			`count down /z: impossible caller id: ".."`: barrier.NewLatch(c, "/z", 2).CountDown(t.Context(),
				".."),
			"count down /z: impossible caller id: \"a\\x00b\"": barrier.NewLatch(c, "/z", 2).CountDown(t.Context(),
				"a\x00b"),
		} {
			require.ErrorContains(t, err, says)
		}
		require.Empty(t, w.Children("/x"))
		require.ErrorIs(t, double(c, "/x", 0), framework.ErrInvalid)
		_, err := barrier.NewGate(nil, "/y").Hold(t.Context())
		require.Error(t, err)
	})
}

// TestAPathUsedByAnotherRecipe is refused, and left as it is.
func TestAPathUsedByAnotherRecipe(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		_, err := locks.NewMutex(m.Client, "/lock").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, barrier.NewGate(m.Client, "/gate").Raise(t.Context()))
		require.NoError(t, barrier.NewLatch(m.Client, "/latch", 2).CountDown(t.Context(), "x"))
		require.NoError(t, m.Create(t.Context(), "/config", []byte(`{"v":1,"kind":"other"}`), framework.Persistent))
		require.NoError(t, m.Create(t.Context(), "/newer", []byte(`{"v":2,"kind":"double barrier","size":2}`),
			framework.Persistent))
		require.NoError(t, m.Create(t.Context(), "/none", []byte(`{"v":1,"kind":"double barrier"}`),
			framework.Persistent))
		before := w.Tree("/")
		for _, path := range []string{"/lock", "/gate", "/latch", "/config", "/none"} {
			_, err := barrier.NewDoubleBarrier(m.Client, path, 2).Enter(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign, path)
			require.ErrorContains(t, err, path)
		}
		_, err = barrier.NewDoubleBarrier(m.Client, "/newer", 2).Enter(t.Context())
		require.ErrorIs(t, err, framework.ErrNewer)
		require.ErrorContains(t, err, "version 2")
		require.ErrorIs(t, barrier.NewLatch(m.Client, "/lock", 2).Wait(t.Context()), framework.ErrForeign)
		require.Equal(t, before, w.Tree("/"))
	})
}

// TestErrorNamesMissingPartOfDamagedBarrier names what is missing.
func TestErrorNamesMissingPartOfDamagedBarrier(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		b := barrier.NewDoubleBarrier(m.Client, path, 1)
		leaveAll(t, enterAll(t, b)...)
		in := w.in()
		require.NoError(t, m.Delete(t.Context(), in, framework.AnyVersion))
		for _, b := range []*barrier.DoubleBarrier{b, barrier.NewDoubleBarrier(m.Client, path, 1)} {
			_, err := b.Enter(t.Context())
			require.ErrorIs(t, err, framework.ErrForeign)
			require.ErrorContains(t, err, in+" is missing beside "+path)
		}
		require.NoError(t, m.Delete(t.Context(), path+"/round", framework.AnyVersion))
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		leaveAll(t, enterAll(t, b)...)
	})
}

// TestDeletedRoundRecordIsReported: an operator deletes the record of the round of a barrier whose
// state the members know.
func TestDeletedRoundRecordIsReported(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		bs := doubles(2, ms...)
		leaveAll(t, enterAll(t, bs...)...)
		require.NoError(t, ms[0].Delete(t.Context(), path+"/round", framework.AnyVersion))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		multis := 0
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMulti {
				if multis++; multis == 100 {
					cancel()
				}
			}
		})()
		first := enter(t, ctx, bs[0])
		refused := func() (changes int32) {
			err := enter(t, ctx, bs[1]).failed()
			require.ErrorIs(t, err, framework.ErrForeign)
			require.ErrorContains(t, err, path+"/round is missing")
			time.Sleep(time.Second)
			require.Len(t, w.Children(w.in()), 1)
			n, _ := w.Node(w.in())
			return n.Stat.Cversion
		}
		changes := refused()
		require.Equal(t, changes, refused(), "it reads the barrier before it creates a node")
		cancel()
		require.ErrorIs(t, first.failed(), context.Canceled)
		w.nobody()
	})
}
