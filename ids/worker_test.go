package ids_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/zktest"
)

// epoch is the time at which a synctest bubble begins.
var epoch = ids.WithEpoch(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))

// worker returns a worker that is closed at the end of the test.
func worker(t *testing.T, m *zktest.Member, slots int, opts ...ids.WorkerOption) *ids.Worker {
	w := ids.NewWorker(m.Client, path, slots, append([]ids.WorkerOption{epoch}, opts...)...)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func TestWorkersIDsAreUniqueAndRise(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := newGiven(t)
		var all sync.WaitGroup
		slots := map[int]bool{}
		for i := range 3 {
			m := w.member(fmt.Sprint(i))
			for range 2 { // two of one client, too
				one := worker(t, m, 6)
				for range 3 {
					all.Go(func() { g.take(one, 500) })
				}
				all.Go(func() {
					many := make([]int64, 300)
					require.NoError(t, one.Fill(t.Context(), many))
					for i, id := range many {
						require.True(t, i == 0 || id > many[i-1])
						g.note(id)
					}
				})
			}
		}
		all.Wait()
		for id := range g.seen {
			slots[worker(t, w.member("x"), 6).Parse(id).Slot] = true
			if len(slots) == 6 {
				break
			}
		}
		require.Len(t, slots, 6, "each worker has a slot of its own")
	})
}

// TestAnIDHasTheEnsemblesTime: the time is exact while a millisecond has room for the ids, and
// later for the ids beyond that.
func TestAnIDHasTheEnsemblesTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.Skew(5 * time.Hour)
		one, g := worker(t, w.member("a"), 4), newGiven(t)
		for range 300 {
			g.take(one, 10)
			id, err := one.Next(t.Context())
			require.NoError(t, err)
			at := one.Parse(id)
			require.Equal(t, time.Now().Add(5*time.Hour).Truncate(time.Millisecond).UTC(), at.Time)
			require.Less(t, at.Slot, 4)
			require.GreaterOrEqual(t, at.Count, 10)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Hour) // nothing is sent, and the window is long past
		id, err := one.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Now().Add(5*time.Hour).Truncate(time.Millisecond).UTC(), one.Parse(id).Time)
		many := make([]int64, 1<<20+1)
		require.NoError(t, one.Fill(t.Context(), many))
		require.EqualValues(t, 1, one.Parse(many[1<<20]).Time.Sub(one.Parse(many[0]).Time)/time.Millisecond)
	})
}

func TestAClockThatIsSetBackRepeatsNoID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := newGiven(t)
		for i := range 5 {
			one := worker(t, w.member(fmt.Sprint(i)), 1)
			g.take(one, 5)
			first, err := one.Next(t.Context())
			require.NoError(t, err)
			w.Skew(-time.Duration(i+1) * 5 * time.Hour) // of the ensemble's leader
			g.take(one, 3000)
			time.Sleep(10 * time.Second)
			g.take(one, 3000)
			later, err := one.Next(t.Context())
			require.NoError(t, err)
			require.Greater(t, later, first)
			require.NoError(t, one.Close(t.Context()))
			time.Sleep(time.Second)
		}
	})
}

// TestAFrozenWorkerRepeatsNoID: the next user of its slot uses later times than the frozen worker
// has reserved.
func TestAFrozenWorkerRepeatsNoID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, g := w.member("a"), newGiven(t)
		a, b := worker(t, m, 1), worker(t, w.member("b"), 1)
		g.take(a, 1)
		m.Link.BlackHole(true, true)
		require.NoError(t, w.Expire(w.session(m).ID()))
		synctest.Wait()
		for range 20 { // both go on, in the same milliseconds
			g.take(a, 50)
			g.take(b, 50)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the window is used up")
		m.Link.Heal()
		_, err = a.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrNoSlot)
		g.take(b, 50)
		require.NoError(t, b.Close(t.Context()))
		g.take(a, 50)
	})
}

// TestALostReplyRepeatsNoID: the reply to a claim of a slot or to a reservation may be lost.
func TestALostReplyRepeatsNoID(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreate, zktest.OpGetData} {
		for nth := 1; nth <= 6; nth++ {
			in(t, func(t *testing.T, w *world) {
				a, b, g := worker(t, w.member("a"), 2), worker(t, w.member("b"), 2), newGiven(t)
				f := w.DropReply(nth, zktest.Match{Op: op})
				defer f.Cancel()
				for range 20 {
					g.take(a, 30)
					g.take(b, 30)
					time.Sleep(time.Second)
				}
				require.Len(t, w.Children(path+"/0"), 1, "no owner is left over")
				require.Len(t, w.Children(path+"/1"), 1)
			})
		}
	}
}

// TestAWindowWithoutAnAnswerIsNotUsed: the write does not arrive, and another worker reserves the
// same times.
func TestAWindowWithoutAnAnswerIsNotUsed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, g := w.member("a"), newGiven(t)
		a, b := worker(t, m, 1), worker(t, w.member("b"), 1)
		g.take(a, 1)
		time.Sleep(time.Minute)
		m.Link.BlackHole(true, false)
		got := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		go func() {
			id, err := a.Next(ctx)
			if err == nil {
				g.note(id)
			}
			got <- err
		}()
		synctest.Wait()
		require.NoError(t, w.Expire(w.session(m).ID()))
		g.take(b, 2000)
		require.Error(t, <-got)
	})
}

func TestAllSlotsTaken(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := newGiven(t)
		m := w.member("a")
		a, b := worker(t, m, 2), worker(t, w.member("b"), 2)
		g.take(a, 10)
		g.take(b, 10)
		c := worker(t, w.member("c"), 2)
		for range 2 {
			_, err := c.Next(t.Context())
			require.ErrorIs(t, err, ids.ErrNoSlot)
			require.ErrorContains(t, err, path+" has 2")
		}
		require.NoError(t, a.Close(t.Context()))
		g.take(c, 10)
		d := worker(t, m, 2)
		_, err := d.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrNoSlot)
		m.Link.Cut() // c's process goes on
		require.NoError(t, c.Close(t.Context()))
		m.Link.Heal()
		g.take(d, 10)
		require.Equal(t, []string{"0", "1"}, w.Children(path))
	})
}

// TestManySlots: a worker reads the nodes of tens of thousands of slots, which do not fit into one
// request, up to the first free ones.
func TestManySlots(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const slots, taken = 1 << 16, 15_000
		m := w.member("a")
		g := newGiven(t)
		a := worker(t, m, slots)
		g.take(a, 1)
		require.NoError(t, a.Close(t.Context()))
		owned, err := strconv.Atoi(w.Children(path)[0])
		require.NoError(t, err)
		for n := 0; n < taken; n += 250 {
			var ops []framework.Op
			for i := n; i < n+250; i++ {
				node := path + "/" + strconv.Itoa(i)
				if i != owned {
					ops = append(ops, framework.CreateOp(node, []byte(`{"v":1,"kind":"slot","until":0}`),
						framework.Persistent))
				}
				if i < taken-1 {
					ops = append(ops, framework.CreateOp(node+"/owner", nil, framework.Persistent))
				}
			}
			_, err := m.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		before := w.Requests()[zktest.OpMultiRead]
		b := worker(t, m, slots)
		g.take(b, 10)
		require.Less(t, w.Requests()[zktest.OpMultiRead]-before, int64(25))
		id, err := b.Next(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, b.Parse(id).Slot, taken-1, "the lower ones have an owner")
		require.Less(t, b.Parse(id).Slot, taken+16)
	})
}

// TestAFailedReservationDoesNotLengthenTheNextOne: a worker that calls Next again and again gets a
// short window when a slot is free.
func TestAFailedReservationDoesNotLengthenTheNextOne(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := worker(t, w.member("a"), 1), worker(t, w.member("b"), 1)
		_, err := a.Next(t.Context())
		require.NoError(t, err)
		for range 20 {
			_, err := b.Next(t.Context())
			require.ErrorIs(t, err, ids.ErrNoSlot)
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, a.Close(t.Context()))
		_, err = b.Next(t.Context())
		require.NoError(t, err)
		var slot struct{ Until int64 }
		require.NoError(t, json.Unmarshal([]byte(w.data(path+"/0")), &slot))
		require.WithinDuration(t, time.Now(), time.UnixMilli(slot.Until), 10*time.Second)
	})
}

// TestOneOfTwoClaimantsGetsASlot: both have read the slot as free.
func TestOneOfTwoClaimantsGetsASlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		first := w.member("first")
		newGiven(t).take(worker(t, first, 1), 1)
		require.NoError(t, first.Close(t.Context()))
		a, b := w.member("a"), w.member("b")
		got := make(chan error, 2)
		for _, m := range []*zktest.Member{a, b} {
			one := worker(t, m, 1)
			m.Link.Delay(50 * time.Millisecond) // each request of both arrives at the same time
			go func() {
				_, err := one.Next(t.Context())
				got <- err
			}()
		}
		errs := []error{<-got, <-got}
		if errs[0] == nil {
			slices.Reverse(errs)
		}
		require.ErrorIs(t, errs[0], ids.ErrNoSlot)
		require.NoError(t, errs[1])
	})
}

// TestAWorkerWithADeletedOwnerNodeClaimsAnotherSlot: two workers do not share a slot.
func TestAWorkerWithADeletedOwnerNodeClaimsAnotherSlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, g := w.member("a"), newGiven(t)
		a, b := worker(t, m, 2), worker(t, w.member("b"), 2)
		slotOf := func(one *ids.Worker) int {
			id, err := one.Next(t.Context())
			require.NoError(t, err)
			g.note(id)
			return one.Parse(id).Slot
		}
		dir := fmt.Sprintf("%s/%d", path, slotOf(a))
		for _, owner := range w.Children(dir) {
			require.NoError(t, m.Delete(t.Context(), dir+"/"+owner, framework.AnyVersion))
		}
		slotOf(b)
		c := worker(t, w.member("c"), 2)
		slotOf(c)
		require.NotEqual(t, slotOf(b), slotOf(c))
		time.Sleep(time.Minute)
		require.NotEqual(t, slotOf(b), slotOf(c))
		_, err := a.Next(t.Context())
		require.ErrorIs(t, err, ids.ErrNoSlot)
	})
}

func TestAWorkerOutlivesSessionsAndServers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, g := w.member("a"), newGiven(t)
		one := worker(t, m, 8)
		g.take(one, 10)
		m.Link.Cut()
		g.take(one, 10)
		time.Sleep(3 * timeout) // the session is lost
		m.Link.Heal()
		g.take(one, 10)
		for range 3 {
			require.NoError(t, w.Expire(w.session(m).ID()))
			time.Sleep(5 * time.Second)
			g.take(one, 10)
		}
		w.Restart()
		time.Sleep(5 * time.Second)
		g.take(one, 10)
		owners := 0
		for _, slot := range w.Children(path) {
			owners += len(w.Children(path + "/" + slot))
		}
		require.Equal(t, 1, owners)
	})
}

// TestCloseFreesTheSlotThoughItsContextHasEnded, and waits for the answer.
func TestCloseFreesTheSlotThoughItsContextHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		m.Link.Delay(10 * time.Millisecond)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			one := worker(t, m, 1)
			_, err := one.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, one.Close(ended))
			require.Empty(t, w.Children(path+"/0"))
		}
	})
}

func TestNoIDAfterClose(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, g := w.member("a"), newGiven(t)
		one := worker(t, m, 1)
		g.take(one, 10)
		require.NoError(t, one.Close(t.Context()))
		require.NoError(t, one.Close(t.Context()))
		_, err := one.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		require.ErrorIs(t, one.Fill(t.Context(), make([]int64, 2)), framework.ErrClosed)
		require.Empty(t, w.Children(path+"/0"))
		g.take(worker(t, w.member("b"), 1), 5000)

		waits := worker(t, m, 1)
		m.Link.Cut()
		failed := make(chan error, 1)
		go func() {
			_, err := waits.Next(context.Background())
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, waits.Close(t.Context()))
		require.ErrorIs(t, <-failed, framework.ErrClosed)
		other := worker(t, m, 1)
		require.ErrorIs(t, m.Close(t.Context()), framework.ErrUnconfirmed, "there is no connection")
		_, err = other.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

// TestWorkersOfOnePathAgree on slots and epoch, and leave a node of another kind as it is.
func TestWorkersOfOnePathAgree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		newGiven(t).take(worker(t, m, 2), 1)
		require.Equal(t, `{"v":1,"kind":"workers","slots":2,"epoch":946684800000}`, w.data(path))
		_, err := worker(t, m, 4).Next(t.Context())
		require.ErrorIs(t, err, framework.ErrMismatch)
		require.ErrorContains(t, err, "has 2 slots")
		_, err = ids.NewWorker(m.Client, path, 2).Next(t.Context())
		require.ErrorIs(t, err, framework.ErrMismatch)
		_, err = sequence(t, m).Next(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		for data, want := range map[string]error{
			"": framework.ErrForeign, "hello": framework.ErrForeign, `{"v":1,"kind":"sequence","next":3}`: framework.ErrForeign,
			`{"v":2,"kind":"workers","slots":2}`: framework.ErrNewer,
		} {
			w.put(m, path+"x", data)
			_, err := ids.NewWorker(m.Client, path+"x", 2).Next(t.Context())
			require.ErrorIs(t, err, want, data)
			require.Equal(t, data, w.data(path+"x"))
		}
	})
}

func TestForeignSlotsStayAsTheyAre(t *testing.T) {
	for data, want := range map[string]error{
		"": framework.ErrForeign, "hello": framework.ErrForeign, `{"v":1,"kind":"slot","until":-1}`: framework.ErrForeign,
		`{"v":2,"kind":"slot","until":3}`:             framework.ErrNewer,
		`{"v":1,"kind":"slot","until":3145708055552}`: ids.ErrExhausted,
	} {
		in(t, func(t *testing.T, w *world) {
			m := w.member("a")
			newGiven(t).take(worker(t, m, 1), 1)
			require.NoError(t, m.Close(t.Context()))
			b := w.member("b")
			for _, name := range []string{"x", "1", "00"} { // nodes that are not slots are ignored
				w.put(b, path+"/"+name, "hello")
			}
			w.put(b, path+"/0", data)
			refused := worker(t, b, 1)
			_, err := refused.Next(t.Context())
			require.ErrorIs(t, err, want, data)
			require.NoError(t, refused.Close(t.Context()))
			require.True(t, errors.Is(want, ids.ErrExhausted) || w.data(path+"/0") == data)
			w.put(b, path+"/0", `{"v":1,"kind":"slot","until":946684800000,"colour":"red"}`)
			newGiven(t).take(worker(t, b, 1), 1)
			require.Contains(t, w.data(path+"/0"), `"colour":"red"`)
		})
	}
}

func TestBadArgumentsOfAWorker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for _, slots := range []int{-1, 0, 65537, 1<<22 + 1, math.MaxInt} {
			refused := worker(t, m, slots)
			_, err := refused.Next(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid)
			require.Zero(t, refused.Parse(math.MaxInt64).Slot, "Parse has no error to return")
		}
		_, err := worker(t, m, 5, nil, ids.WithEpoch(time.Time{})).Next(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
		for _, p := range []string{"", "/", "a", "/a/"} {
			_, err := ids.NewWorker(m.Client, p, 5).Next(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid, p)
		}
		_, err = ids.NewWorker(nil, path, 5).Next(t.Context())
		require.ErrorContains(t, err, "client is nil")
	})
}

// windowWrites counts the transactions that write slots while f runs.
func (w *world) windowWrites(f func()) (n int) {
	stop := w.Observe(func(r zktest.Request) {
		if r.Op == zktest.OpMulti &&
			slices.ContainsFunc(r.Parts, func(part zktest.Request) bool { return part.Op == zktest.OpSetData }) {
			n++
		}
	})
	f()
	stop()
	return n
}

// TestAWorkerWritesLittle: less than two writes a second, however many ids it gives in a
// millisecond, and none when it is idle.
func TestAWorkerWritesLittle(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		one, many := worker(t, w.member("a"), 1<<16), make([]int64, 2000)
		run := func(d, pause time.Duration, n int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
				require.NoError(t, one.Fill(t.Context(), many[:n]))
			}
		}
		run(time.Second, 100*time.Millisecond, 1)
		require.LessOrEqual(t, w.windowWrites(func() { run(time.Minute, 100*time.Millisecond, 1) }), 21)
		run(5*time.Second, time.Millisecond, len(many)) // 31 times as many as a millisecond has room for
		require.LessOrEqual(t, w.windowWrites(func() { run(5*time.Second, time.Millisecond, len(many)) }), 10)
		require.Zero(t, w.windowWrites(func() { time.Sleep(time.Hour) }))
		run(time.Minute, 100*time.Millisecond, 1)
		require.LessOrEqual(t, w.windowWrites(func() { run(time.Minute, 100*time.Millisecond, 1) }), 21)
		id, err := one.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Now().Truncate(time.Millisecond).UTC(), one.Parse(id).Time, "the present time again")
	})
}

// TestNextDoesNotWaitForTheNextWindow: it is reserved before the present one is used up.
func TestNextDoesNotWaitForTheNextWindow(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		one := worker(t, m, 2)
		_, err := one.Next(t.Context())
		require.NoError(t, err)
		m.Link.Delay(200 * time.Millisecond)
		for range 1000 {
			time.Sleep(20 * time.Millisecond)
			began := time.Now()
			_, err := one.Next(t.Context())
			require.NoError(t, err)
			require.Zero(t, time.Since(began))
		}
	})
}

func TestNamesAreUnique(t *testing.T) {
	for nth := range 4 {
		in(t, func(t *testing.T, w *world) {
			names := map[string]bool{}
			f := w.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
			defer f.Cancel()
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range 3 {
				m := w.member(fmt.Sprint(i))
				all.Go(func() {
					for range 5 {
						n, err := ids.MakeName(t.Context(), m.Client, "/names/machines", "host-", []byte("x"))
						require.NoError(t, err)
						require.Regexp(t, `^host-\d{10}$`, n.Name)
						require.Equal(t, "x", w.data(n.Path))
						require.True(t, strings.HasSuffix(n.Path, n.Name))
						mu.Lock()
						require.False(t, names[n.Name])
						names[n.Name] = true
						mu.Unlock()
					}
				})
			}
			all.Wait()
			require.Len(t, w.Children("/names/machines"), 15, "one node for each name")
			w.Reap()
			for _, name := range w.Children("/names/machines") {
				require.NoError(t, w.member("x"+name[:8]).Delete(t.Context(), "/names/machines/"+name,
					framework.AnyVersion))
			}
			w.Reap()
			n, err := ids.MakeName(t.Context(), w.member("y").Client, "/names/machines", "host-", nil)
			require.NoError(t, err)
			require.False(t, names[n.Name], "an empty directory stays")
		})
	}
}

func TestNamesEndAfter2To31(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		_, err := ids.MakeName(t.Context(), m.Client, "/names", "", nil)
		require.NoError(t, err)
		require.NoError(t, w.Number("/names", -2147483648))
		_, err = ids.MakeName(t.Context(), m.Client, "/names", "n", nil)
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.Len(t, w.Children("/names"), 1, "the node without a user is deleted")
		f := w.DropReply(1, zktest.Match{Op: zktest.OpDelete})
		_, err = ids.MakeName(t.Context(), m.Client, "/names", "n", nil)
		f.Cancel()
		require.ErrorIs(t, err, ids.ErrExhausted)
		require.Len(t, w.Children("/names"), 1, "also when the reply to the delete is lost")
		for _, dir := range []string{"", "/", "a"} {
			_, err = ids.MakeName(t.Context(), m.Client, dir, "n", nil)
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		_, err = ids.MakeName(t.Context(), m.Client, "/names", "a/b", nil)
		require.ErrorIs(t, err, framework.ErrInvalid)
		f = w.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		defer f.Cancel()
		ctx, cancel := context.WithCancel(t.Context())
		w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMulti {
				cancel()
			}
		})
		require.NoError(t, w.Number("/names", 5))
		_, err = ids.MakeName(ctx, m.Client, "/names", "n", nil)
		require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
	})
}

func BenchmarkWorker(b *testing.B) {
	zk, err := zktest.New()
	require.NoError(b, err)
	defer zk.Close()
	client, err := framework.Connect(b.Context(), framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("bench").DialContext))
	require.NoError(b, err)
	defer client.Close(context.Background())
	ctx := context.Background()
	report := func(b *testing.B, w *ids.Worker, run func(n int)) {
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); { // until windows have grown
			run(100_000)
		}
		before := zk.Requests()[zktest.OpMulti]
		b.ResetTimer()
		run(b.N)
		b.StopTimer()
		seconds := b.Elapsed().Seconds()
		b.ReportMetric(float64(b.N)/seconds, "ids/s")
		b.ReportMetric(float64(zk.Requests()[zktest.OpMulti]-before)/seconds, "writes/s")
		require.NoError(b, w.Close(ctx))
	}
	for _, slots := range []int{1024, 32} {
		b.Run(fmt.Sprintf("Next/%d", slots), func(b *testing.B) {
			w := ids.NewWorker(client, fmt.Sprint(path, slots), slots)
			report(b, w, func(n int) {
				for range n {
					if _, err := w.Next(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
		b.Run(fmt.Sprintf("Fill/%d", slots), func(b *testing.B) {
			w, many := ids.NewWorker(client, fmt.Sprint(path, slots), slots), make([]int64, 100)
			report(b, w, func(n int) {
				for ; n > 0; n -= len(many) {
					if err := w.Fill(ctx, many); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
