package ids_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/zktest"
)

// sequence returns a sequence that is closed at the end of the test.
func sequence(t *testing.T, m *zktest.Member, opts ...ids.SequenceOption) *ids.Sequence {
	s := ids.NewSequence(m.Client, path, opts...)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// given records numbers, and fails the test at a number that was given before.
type given struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[int64]bool
}

func newGiven(t *testing.T) *given { return &given{t: t, seen: map[int64]bool{}} }

func (g *given) note(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	require.False(g.t, g.seen[n], "%d was given twice", n)
	g.seen[n] = true
}

// source gives ids.
type source interface {
	Next(ctx context.Context) (int64, error)
}

// take takes n numbers, which must rise.
func (g *given) take(s source, n int) {
	last := int64(-1)
	for range n {
		id, err := s.Next(g.t.Context())
		require.NoError(g.t, err)
		require.Greater(g.t, id, last)
		last = id
		g.note(id)
	}
}

func TestNumbersAreUniqueAndRise(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := newGiven(t)
		var all sync.WaitGroup
		for i := range 3 {
			s := sequence(t, w.member(fmt.Sprint(i)), ids.WithBlocks(2, 64))
			for range 3 {
				all.Go(func() { g.take(s, 500) })
			}
		}
		all.Wait()
		require.True(t, g.seen[1], "it begins at 1")
		require.False(t, g.seen[0])
	})
}

// TestALostReplyLosesABlock: no number is given twice.
func TestALostReplyLosesABlock(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpSetData, zktest.OpGetData} {
		for nth := 1; nth <= 3; nth++ {
			in(t, func(t *testing.T, w *world) {
				a, b := sequence(t, w.member("a"), ids.WithBlocks(4, 4)),
					sequence(t, w.member("b"), ids.WithBlocks(4, 4))
				g := newGiven(t)
				f := w.DropReply(nth, zktest.Match{Op: op, Path: path})
				defer f.Cancel()
				for range 20 {
					g.take(a, 3)
					g.take(b, 3)
				}
			})
		}
	}
}

// TestAReservationWithoutAnAnswerIsNotUsed: another process reserves the same block at the same
// version, so that the node does not show whose block it is.
func TestAReservationWithoutAnAnswerIsNotUsed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := sequence(t, m, ids.WithBlocks(4, 4)), sequence(t, w.member("b"), ids.WithBlocks(4, 4))
		g := newGiven(t)
		g.take(b, 1)
		read, own := make(chan struct{}), w.session(m).ID()
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op == zktest.OpGetData {
				close(read)
			}
		})
		m.Link.Delay(50 * time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.take(a, 9)
		}()
		<-read
		stop()
		m.Link.BlackHole(true, false) // the write will be sent, and will not arrive
		time.Sleep(time.Second)
		g.take(b, 4)
		m.Link.Cut()
		m.Link.Heal()
		<-done
		g.take(b, 9)
	})
}

func TestNumbersOutliveSessionsAndServers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s := sequence(t, m, ids.WithBlocks(10, 10))
		g := newGiven(t)
		g.take(s, 9) // the block after it is reserved at the eighth
		synctest.Wait()
		m.Link.Cut()
		g.take(s, 11)
		time.Sleep(3 * timeout) // the session is lost
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, path)
		m.Link.Heal()
		g.take(s, 50)
		require.NoError(t, w.Expire(w.session(m).ID()))
		g.take(s, 50)
		w.Restart()
		g.take(s, 50)
	})
}

func TestNoNumberAfterClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s, g := sequence(t, m), newGiven(t)
		g.take(s, 10)
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, s.Close(t.Context()))
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		g.take(sequence(t, m), 300)

		waits := sequence(t, m)
		m.Link.Cut()
		failed := make(chan error, 1)
		go func() {
			_, err := waits.Next(context.Background())
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, waits.Close(t.Context()))
		require.ErrorIs(t, <-failed, framework.ErrClosed)

		other := sequence(t, m)
		require.ErrorIs(t, m.Close(t.Context()), framework.ErrUnconfirmed, "there is no connection")
		_, err = other.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

func TestASequenceThatWasSetBackIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s, g := sequence(t, m, ids.WithBlocks(5, 5)), newGiven(t)
		g.take(s, 5)
		synctest.Wait()
		require.Equal(t, `{"v":1,"kind":"sequence","next":11}`, w.data(path))
		w.put(m, path, `{"v":1,"kind":"sequence","next":3}`)
		g.take(s, 5)
		for range 2 {
			_, err := s.Next(t.Context())
			require.ErrorIs(t, err, ids.ErrSetBack)
		}
		require.NoError(t, m.Delete(t.Context(), path, framework.AnyVersion))
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrSetBack)
		_, exists := w.Node(path)
		require.False(t, exists)
		w.put(m, path, `{"v":1,"kind":"sequence","next":100,"colour":"red"}`)
		n, err := s.Next(t.Context())
		require.NoError(t, err, "a person has written a higher number")
		require.EqualValues(t, 100, n)
		require.Equal(t, `{"v":1,"kind":"sequence","next":105,"colour":"red"}`, w.data(path),
			"fields of later releases stay")
	})
}

// TestASequenceBehindALaggingServer: reads show an older number, which is not taken for a sequence
// that was set back.
func TestASequenceBehindALaggingServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		a, b := sequence(t, m, ids.WithBlocks(4, 4)), sequence(t, w.member("b"), ids.WithBlocks(4, 4))
		g := newGiven(t)
		g.take(a, 1)
		for range 10 {
			_, err := w.LagAsLeader(w.session(m).ID())
			require.NoError(t, err)
			g.take(b, 8)
			g.take(a, 8)
		}
	})
}

func TestForeignNodesStayAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		err  error
	}{
		"text":       {"hello", framework.ErrForeign},
		"empty":      {"", framework.ErrForeign},
		"a counter":  {"\x00\x00\x00\x00\x00\x00\x00\x07", framework.ErrForeign},
		"other kind": {`{"v":1,"kind":"latch","size":3}`, framework.ErrForeign},
		"negative":   {`{"v":1,"kind":"sequence","next":-3}`, framework.ErrForeign},
		"too large":  {`{"v":1,"kind":"sequence","next":9223372036854775808}`, framework.ErrForeign},
		"newer":      {`{"v":2,"kind":"sequence","next":3}`, framework.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a")
				w.put(m, path, c.data)
				_, err := sequence(t, m).Next(t.Context())
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.data, w.data(path))
			})
		})
	}
}

func TestASequenceEndsAtItsLastNumber(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s := sequence(t, m, ids.WithFirst(100), ids.WithLast(109), ids.WithBlocks(4, 4))
		g := newGiven(t)
		g.take(s, 10)
		require.True(t, g.seen[100] && g.seen[109])
		_, err := s.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrExhausted)
		w.put(m, path, `{"v":1,"kind":"sequence","next":9223372036854775806}`)
		last := sequence(t, m)
		n, err := last.Next(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, int64(1<<63-2), n)
		_, err = last.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrExhausted)
	})
}

func TestBadArgumentsOfASequence(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for _, o := range []ids.SequenceOption{ids.WithFirst(-1), ids.WithLast(0), ids.WithBlocks(0, 1),
			ids.WithBlocks(2, 1), ids.WithBlocks(1, 1<<41)} {
			_, err := sequence(t, m, nil, o).Next(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		for _, p := range []string{"", "/", "a", "/a/"} {
			_, err := ids.NewSequence(m.Client, p).Next(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid, p)
		}
		_, err := ids.NewSequence(nil, path).Next(t.Context())
		require.ErrorContains(t, err, "client is nil")
	})
}

// writes counts the writes of nodes' data while f runs.
func (w *world) writes(f func()) (n int) {
	stop := w.Observe(func(r zktest.Request) {
		if r.Op == zktest.OpSetData {
			n++
		}
	})
	f()
	stop()
	return n
}

// TestBlocksFollowTheRate: at a steady rate there is less than a write a second, and a slow process
// reserves little.
func TestBlocksFollowTheRate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s, g := sequence(t, w.member("a")), newGiven(t)
		run := func(seconds, rate int) {
			for range seconds * 10 {
				g.take(s, rate/10)
				time.Sleep(100 * time.Millisecond)
			}
		}
		run(10, 20_000)
		require.LessOrEqual(t, w.writes(func() { run(10, 20_000) }), 10)
		run(2000, 100)
		writes := w.writes(func() { run(400, 100) })
		require.GreaterOrEqual(t, writes, 15, "blocks have become small again")
		require.LessOrEqual(t, writes, 400)
	})
}

// TestNextDoesNotWaitForTheNextBlock: it is reserved before the present one is used up.
func TestNextDoesNotWaitForTheNextBlock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s := sequence(t, m, ids.WithBlocks(100, 100))
		_, err := s.Next(t.Context())
		require.NoError(t, err)
		m.Link.Delay(20 * time.Millisecond) // a reservation takes 80 ms, a fifth of a block 200 ms
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			_, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
		}
	})
}

func BenchmarkSequence(b *testing.B) {
	zk, err := zktest.New()
	require.NoError(b, err)
	defer zk.Close()
	client, err := framework.Connect(b.Context(), framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("bench").DialContext))
	require.NoError(b, err)
	defer client.Close(context.Background())
	s := ids.NewSequence(client, path)
	ctx := context.Background()
	defer s.Close(ctx)
	take := func(d time.Duration) (taken int) {
		for end := time.Now().Add(d); time.Now().Before(end); taken += 10_000 {
			for range 10_000 {
				if _, err := s.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
		return taken
	}
	take(2 * time.Second) // until blocks have grown
	before := zk.Requests()[zktest.OpSetData]
	b.ResetTimer()
	for range b.N {
		if _, err := s.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/seconds, "ids/s")
	b.ReportMetric(float64(zk.Requests()[zktest.OpSetData]-before)/seconds, "writes/s")
}
