package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

// sent counts the requests that the server had, but for what every session sends to live.
func (w *world) sent() (n int64) {
	for op, count := range w.Requests() {
		if op != zktest.OpPing && op != zktest.OpSync {
			n += count
		}
	}
	return n
}

// putByMany has producers put so many items each at a round trip of 1 ms, and returns the requests
// and the time of a put.
func (w *world) putByMany(t *testing.T, producers, each int, opts ...Option) (requests float64, took time.Duration) {
	var members []*member
	for i := range producers {
		m := w.member(fmt.Sprint("m", i), opts...)
		m.put("first")
		m.link.Delay(time.Millisecond/2 + time.Duration(i)*10*time.Microsecond)
		members = append(members, m)
	}
	before, began := w.sent(), time.Now()
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			for i := range each {
				if err := m.Put(within(t, time.Hour), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	puts := float64(producers * each)
	return float64(w.sent()-before) / puts, time.Duration(float64(time.Since(began)) / puts)
}

// TestCapacityCostsFewRequests: requests and time of a put, beside a queue without a bound.
func TestCapacityCostsFewRequests(t *testing.T) {
	for _, producers := range []int{1, 4, 16} {
		var plain time.Duration
		in(t, func(t *testing.T, w *world) { _, plain = w.putByMany(t, producers, 200) })
		for _, capacity := range []int{100_000, 5000} {
			in(t, func(t *testing.T, w *world) {
				requests, took := w.putByMany(t, producers, 200, WithCapacity(capacity))
				t.Logf("%d producers, capacity %d: %.2f requests a put, %v a put, %v without a bound", producers,
					capacity, requests, took, plain)
				require.LessOrEqual(t, requests, 2.0)
				require.LessOrEqual(t, took, 3*plain)
			})
		}
	}
}

// TestWaitingProducerGetsItsTurn: it is slower than the one that puts whenever there is room.
func TestWaitingProducerGetsItsTurn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c, slow := w.member("a", WithCapacity(2)), w.member("c"), w.member("slow")
		a.put("1", "2")
		_, err := slow.Len(t.Context())
		require.NoError(t, err)
		slow.link.Delay(5 * time.Millisecond)
		done := make(chan error, 1)
		go func() { done <- slow.Put(within(t, 5*time.Minute), "mine") }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		busy.Go(func() {
			for a.Put(ctx, "other") == nil {
			}
		})
		for range 5 {
			c.drain(1)
			time.Sleep(100 * time.Millisecond)
		}
		require.Len(t, done, 1)
		require.NoError(t, <-done)
		cancel()
		busy.Wait()
	})
}

// TestPutsOfOneQueueWaitInOrder: also behind a batch that needs more room than there is.
func TestPutsOfOneQueueWaitInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, c := w.member("a", WithCapacity(4), WithMaxInFlight(1)), w.member("c")
		a.put(names(0, 4)...)
		var all sync.WaitGroup
		all.Go(func() { require.NoError(t, a.PutBatch(within(t, time.Hour), names(4, 7))) })
		time.Sleep(time.Second)
		for i := 7; i < 10; i++ {
			all.Go(func() { require.NoError(t, a.Put(within(t, time.Hour), fmt.Sprint("item ", i))) })
			time.Sleep(time.Second)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- a.Put(ctx, "given up") }()
		time.Sleep(time.Second)
		giveUp()
		require.ErrorIs(t, <-gone, context.Canceled)
		var got []string
		for range 10 {
			got = append(got, c.drain(1)...)
			time.Sleep(time.Second)
		}
		all.Wait()
		require.Equal(t, names(0, 10), got)
		require.NoError(t, a.Close(t.Context()))
		c.requireNone()
	})
}

// TestUnusedPlacesAreTakenBack: from live and from dead producers; the capacity stays the same.
func TestUnusedPlacesAreTakenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const capacity = 100
		full := []Option{WithCapacity(capacity), WithFailWhenFull()}
		a, dead, b := w.member("a", full...), w.member("dead", full...), w.member("b", full...)
		a.put("a")
		dead.put("dead")
		left, err := queuelayout.DecodePlaces(w.only(testPath + "/places/" + w.Children(testPath + "/places")[0]))
		require.NoError(t, err)
		require.NotZero(t, left, "it has places ahead")
		dead.kill()
		b.put(names(2, capacity)...)
		require.ErrorIs(t, b.Put(t.Context(), "x"), ErrFull)
		require.ErrorIs(t, a.Put(t.Context(), "x"), ErrFull, "its places were taken")
		n, err := b.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, capacity, n)
		b.drain(2)
		a.put("x")
		b.put("y")
		require.ErrorIs(t, b.Put(t.Context(), "z"), ErrFull)
	})
}

// TestPlacesOfDeadWritersAreRemoved: the next writer removes it, however much room there is.
func TestPlacesOfDeadWritersAreRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithCapacity(1000)), w.member("b")
		a.put("x")
		a.kill()
		time.Sleep(5 * time.Minute) // its marker is gone
		left := w.Children(testPath + "/places")
		require.Len(t, left, 1)
		b.put("y")
		require.NotContains(t, w.Children(testPath+"/places"), left[0])
	})
}

// TestReservedPlacesDoNotOvertakeWaitingBatch: of the same Queue.
func TestReservedPlacesDoNotOvertakeWaitingBatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithCapacity(40)), w.member("b")
		a.put("first")
		free := 40 - atoi(t, w.only(testPath+"/in"))
		require.Less(t, free, 39)
		require.NoError(t, b.PutBatch(t.Context(), names(0, free)))
		var all sync.WaitGroup
		all.Go(func() { require.NoError(t, a.PutBatch(within(t, time.Hour), names(100, 100+39-free+1))) })
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.ErrorIs(t, a.Put(ctx, "last"), context.DeadlineExceeded)
		cancel()
		b.drain(1)
		all.Wait()
	})
}

func atoi(t *testing.T, data []byte) int {
	n, err := strconv.Atoi(string(data))
	require.NoError(t, err)
	return n
}

// TestRequeueTakesAPlace: a dead letter has left the queue, and needs room to come back.
func TestRequeueTakesAPlace(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithCapacity(2), WithFailWhenFull(), WithMaxAttempts(1))
		a.put("dead", "1")
		require.NoError(t, a.take().Nack(t.Context(), 0, errors.New("bad")))
		a.put("2")
		n, err := a.Requeue(t.Context())
		require.ErrorIs(t, err, ErrFull)
		require.Zero(t, n)
		require.Len(t, a.dead(), 1)
		require.Equal(t, []string{"1"}, a.drain(1))
		n, err = a.Requeue(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 2, w.itemCount())
		require.ErrorIs(t, a.Put(t.Context(), "3"), ErrFull)
		require.Equal(t, []string{"2", "dead"}, a.drain(2))
	})
}

// TestCloseReturnsUnusedPlaces: no node of them is left.
func TestCloseReturnsUnusedPlaces(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithCapacity(1000))
		a.put(names(0, 3)...)
		require.NoError(t, a.Close(t.Context()))
		require.Empty(t, w.Children(testPath+"/places"))
		require.Equal(t, "3", string(w.only(testPath+"/in")))
	})
}

// only is the data of a node.
func (w *world) only(path string) []byte {
	n, there := w.Node(path)
	require.True(w.t, there, path)
	return n.Data
}

// TestEmptyCapacityLineDoesNotBlockPuts: the first in line has died.
func TestEmptyCapacityLineDoesNotBlockPuts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a", WithCapacity(2), WithFailWhenFull()), w.member("b")
		a.put("1", "2")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = b.Put(ctx, "x") }()
		time.Sleep(time.Second)
		require.Equal(t, "2 line", string(w.only(testPath+"/in")))
		b.kill()
		a.drain(1)
		require.ErrorIs(t, a.Put(t.Context(), "y"), ErrFull, "its place in line is there as long as its session")
		time.Sleep(time.Minute)
		a.put("y")
		require.Equal(t, "3", string(w.only(testPath+"/in")))
	})
}

// TestCapacityHoldsUnderFaults: producers that give up, lose replies and sessions, and die. There
// are at no time more items than the capacity, and in the end all room is free again.
func TestCapacityHoldsUnderFaults(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) { capacityFaultRun(t, w, seed, rand.New(rand.NewPCG(seed, 26))) })
		})
	}
}

func capacityFaultRun(t *testing.T, w *world, seed uint64, r *rand.Rand) {
	capacity := []int{7, 60}[seed]
	first := w.member("first", WithCapacity(capacity))
	first.put("x")
	over, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	var all sync.WaitGroup
	var members []*member
	for i := range 5 {
		m, seed := w.member(fmt.Sprint("p", i)), r.Uint64()
		members = append(members, m)
		for j := range 3 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(j)))
				for over.Err() == nil {
					ctx, cancel := context.WithTimeout(over, time.Duration(r.IntN(5000))*time.Millisecond)
					if r.IntN(4) == 0 {
						_ = m.PutBatch(ctx, names(0, 1+r.IntN(5)))
					} else {
						_ = m.Put(ctx, "x")
					}
					cancel()
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
				}
			})
		}
	}
	c := w.member("c")
	all.Go(func() {
		for d, err := range c.Deliveries(over) {
			if err != nil {
				t.Error(err)
				return
			}
			_ = d.Ack(t.Context())
		}
	})
	for over.Err() == nil {
		m := members[r.IntN(len(members))]
		switch r.IntN(8) {
		case 0:
			m.link.Cut()
			time.AfterFunc(time.Duration(r.IntN(20_000))*time.Millisecond, m.link.Heal)
		case 1:
			w.DropReply(1+r.IntN(3), zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		case 2:
			if s, err := m.client.Session(over); err == nil {
				w.Expire(s.ID())
			}
		case 3:
			m.link.Delay(time.Duration(r.IntN(200)) * time.Millisecond)
		}
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		require.LessOrEqual(t, w.itemCount(), capacity)
	}
	all.Wait()
	for _, m := range members {
		m.link.Heal()
		m.link.Delay(0)
	}
	time.Sleep(time.Minute)
	for _, m := range members[:2] {
		m.kill()
	}
	for n, err := c.Len(t.Context()); n > 0; n, err = c.Len(t.Context()) {
		require.NoError(t, err)
		c.drain(1)
	}
	require.NoError(t, first.PutBatch(within(t, time.Minute), names(0, capacity)))
	require.Equal(t, capacity, w.itemCount())
	refusing := w.member("refusing", WithFailWhenFull())
	require.ErrorIs(t, refusing.Put(t.Context(), "x"), ErrFull)
	c.drain(capacity)
}

// present counts all items but dead letters, at one moment.
func (w *world) itemCount() (n int) {
	for _, node := range w.Tree(testPath) {
		dir, name := znode.Split(node.Path)
		if strings.HasPrefix(name, "i-") && !strings.HasPrefix(dir, testPath+"/dead") {
			n++
		}
	}
	return n
}
