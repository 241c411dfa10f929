package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestBalancersFollowTheWeights(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for i, weight := range []int{1, 1, 2} {
			g := w.register(m, fmt.Sprint(i))
			require.NoError(t, g.Update(t.Context(), func(one *registry.Instance) { one.Weight = weight }))
		}
		const n = 4000
		counts := pick(t, w.pool(m, registry.WithBalancer(registry.RoundRobin)), 300, nil)
		require.Equal(t, map[string]int{"0": 100, "1": 100, "2": 100}, counts)
		counts = pick(t, w.pool(m, registry.WithBalancer(registry.Weighted)), n, nil)
		require.InDelta(t, n/4, counts["0"], n/10)
		require.InDelta(t, n/2, counts["2"], n/10)

		sticky := w.pool(m, registry.WithBalancer(registry.Rendezvous))
		keys, chosen := map[string]int{}, map[int]string{}
		for i := range n {
			one, err := sticky.PickFor(t.Context(), fmt.Sprint("key", i))
			require.NoError(t, err)
			one.Done(nil)
			keys[one.Instance.ID]++
			chosen[i] = one.Instance.ID
		}
		require.InDelta(t, n/4, keys["0"], n/10)
		require.InDelta(t, n/2, keys["2"], n/10)
		require.NoError(t, registry.New(m.Client, base).Disable(t.Context(), billing, "1", ""))
		synctest.Wait()
		for i, before := range chosen {
			one, err := sticky.PickFor(t.Context(), fmt.Sprint("key", i))
			require.NoError(t, err)
			one.Done(nil)
			require.True(t, before == "1" || before == one.Instance.ID, "the keys of the others stay")
		}
	})
}

// TestTheShareOfAnEjectedInstanceIsDivided among the others by their weights, with every balancer.
// Its neighbour in the list gets no more than they do.
func TestTheShareOfAnEjectedInstanceIsDivided(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for id, weight := range map[string]int{"a": 900, "b": 30, "c": 30, "d": 60} {
			require.NoError(t, w.register(m, id).Update(t.Context(), func(i *registry.Instance) { i.Weight = weight }))
		}
		for _, balancer := range []registry.Balancer{registry.RoundRobin, registry.Weighted, registry.Rendezvous,
			registry.LeastLoaded} {
			p := w.pool(m, registry.WithBalancer(balancer), registry.WithEjection(1, time.Hour))
			pickFor := func(n int) (registry.Picked, error) { return p.PickFor(t.Context(), fmt.Sprint("key", n)) }
			for n, ejected := 0, false; !ejected; n++ {
				one, err := pickFor(n)
				require.NoError(t, err)
				if ejected = one.Instance.ID == "a"; ejected {
					one.Done(errors.New("down"))
				} else {
					one.Done(nil)
				}
			}
			const n = 6000
			counts := map[string]int{}
			for i := range n {
				one, err := pickFor(i)
				require.NoError(t, err)
				one.Done(nil)
				counts[one.Instance.ID]++
			}
			require.Zero(t, counts["a"])
			switch balancer {
			case registry.RoundRobin:
				require.InDelta(t, n/3, counts["b"], n/10)
				require.InDelta(t, n/3, counts["d"], n/10)
			case registry.Weighted, registry.Rendezvous:
				require.InDelta(t, n/4, counts["b"], n/10)
				require.InDelta(t, n/2, counts["d"], n/10)
			default: // all cost the same; those with a higher weight cost less
				require.InDelta(t, counts["b"], counts["c"], n/10)
			}
		}
	})
}

// TestTheSlowInstanceGetsFewerCalls: of two instances, LeastLoaded picks the one with the smaller
// load.
func TestTheSlowInstanceGetsFewerCalls(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for i := range 4 {
			w.register(m, fmt.Sprint(i))
		}
		p, counts := w.pool(m), map[string]int{}
		for range 400 {
			one, err := p.Pick(t.Context())
			require.NoError(t, err)
			counts[one.Instance.ID]++
			time.Sleep(time.Millisecond)
			if one.Instance.ID == "0" {
				time.Sleep(50 * time.Millisecond)
			}
			one.Done(nil)
		}
		require.Less(t, counts["0"], 10)
		busy, fresh := map[string]int{}, w.pool(m) // none of these calls ends
		for range 4000 {
			one, err := fresh.Pick(t.Context())
			require.NoError(t, err)
			busy[one.Instance.ID]++
		}
		for id, n := range busy {
			require.InDelta(t, 1000, n, 8, id)
		}
	})
}

// TestAnInstanceThatWasSlowGetsCallsAgain, and one that stays slow or hangs gets few. The calls of
// the instance beside it take a millisecond.
func TestAnInstanceThatWasSlowGetsCallsAgain(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		latency     func(call int) time.Duration // of each call
		giveUp      time.Duration                // when callers cancel a call that never ends; 0: they do not
		least, most int                          // calls in 10 minutes, of 60,000
	}{
		"its first call was slow": {func(call int) time.Duration {
			if call == 0 {
				return 2 * time.Second
			}
			return time.Millisecond
		}, 0, 10000, 30000},
		"it stays slow": {func(int) time.Duration { return 2 * time.Second }, 0, 3, 30},
		"it hangs after its first call": {func(call int) time.Duration {
			if call == 0 {
				return time.Millisecond
			}
			return never
		}, 0, 2, 10},
		"it hangs":                         {func(int) time.Duration { return never }, 0, 1, 10},
		"it hangs and its callers give up": {func(int) time.Duration { return never }, 100 * time.Millisecond, 3, 60},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a")
				w.register(m, "fast")
				w.register(m, "other")
				p, other := w.pool(m), 0
				for range 60000 {
					one, err := p.Pick(t.Context())
					require.NoError(t, err)
					took := time.Millisecond
					if one.Instance.ID == "other" {
						took = c.latency(other)
						other++
					}
					switch {
					case took != never:
						time.AfterFunc(took, func() { one.Done(nil) })
					case c.giveUp > 0:
						time.AfterFunc(c.giveUp, func() { one.Done(context.Canceled) })
					}
					time.Sleep(10 * time.Millisecond)
				}
				require.GreaterOrEqual(t, other, c.least)
				require.LessOrEqual(t, other, c.most)
				time.Sleep(2 * time.Second) // the last calls end
			})
		})
	}
}

// TestAFailingInstanceIsEjected for a while, unless too many instances fail.
func TestAFailingInstanceIsEjected(t *testing.T) {
	for _, b := range []registry.Balancer{registry.LeastLoaded, registry.RoundRobin, registry.Weighted,
		registry.Rendezvous} {
		in(t, func(t *testing.T, w *world) {
			m := w.member("a")
			for i := range 4 {
				w.register(m, fmt.Sprint(i))
			}
			p := w.pool(m, registry.WithBalancer(b), registry.WithEjection(3, 10*time.Second))
			calls := func(n int, errs map[string]error) map[string]int {
				counts := map[string]int{}
				for i := range n {
					one, err := p.PickFor(t.Context(), fmt.Sprint(i))
					require.NoError(t, err)
					counts[one.Instance.ID]++
					one.Done(errs[one.Instance.ID])
				}
				return counts
			}
			broken := map[string]error{"0": errors.New("refused")}
			require.Equal(t, 3, calls(400, broken)["0"], "b %v", b)
			time.Sleep(11 * time.Second)
			require.Equal(t, 1, calls(400, broken)["0"], "one more try")
			time.Sleep(11 * time.Second)
			require.Greater(t, calls(400, nil)["0"], 10, "it works again")
			all := map[string]error{"0": io.EOF, "1": io.EOF, "2": io.EOF}
			require.Len(t, calls(2000, all), 4)
			require.Len(t, calls(400, all), 4, "one of four is below the threshold")
		})
	}
}

func BenchmarkPick(b *testing.B) {
	zk, err := zktest.New()
	require.NoError(b, err)
	defer zk.Close()
	client, err := framework.Connect(b.Context(), framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("bench").DialContext))
	require.NoError(b, err)
	defer client.Close(context.Background())
	r := registry.New(client, base)
	for i := range 100 {
		g, err := r.Register(b.Context(), registry.Instance{Service: billing, Address: "10.0.0.7", Port: 1 + i})
		require.NoError(b, err)
		defer g.Close(context.Background())
	}
	b.Run("PlainRoundRobin", func(b *testing.B) { // what the others are compared with
		all, err := r.Instances(b.Context(), billing)
		require.NoError(b, err)
		var turn atomic.Uint64
		var total int
		for b.Loop() {
			total += all[turn.Add(1)%uint64(len(all))].Port
		}
		require.Positive(b, total)
	})
	for name, balancer := range map[string]registry.Balancer{"LeastLoaded": registry.LeastLoaded,
		"RoundRobin": registry.RoundRobin, "Weighted": registry.Weighted, "Rendezvous": registry.Rendezvous} {
		b.Run(name, func(b *testing.B) {
			p := registry.NewPool(client, base, billing, registry.WithBalancer(balancer))
			defer p.Close(context.Background())
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				one, err := p.Pick(ctx)
				if err != nil {
					b.Fatal(err)
				}
				one.Done(nil)
			}
		})
	}
}
