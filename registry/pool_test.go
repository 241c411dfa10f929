package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

// pick picks n times, and ends each call with the error that its instance's id has in errs.
func pick(t *testing.T, p *registry.Pool, n int, errs map[string]error) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range n {
		one, err := p.Pick(t.Context())
		require.NoError(t, err)
		counts[one.Instance.ID]++
		one.Done(errs[one.Instance.ID])
	}
	return counts
}

// TestAPoolKeepsItsListWhileTheServersAreAway, however long, and on its next session.
func TestAPoolKeepsItsListWhileTheServersAreAway(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("c")
		p := w.pool(m)
		w.register(w.member("a"), "one")
		require.Equal(t, []string{"one"}, w.listed(p))
		m.Link.Cut()
		for range 100 {
			time.Sleep(time.Second)
			require.Len(t, pick(t, p, 1, nil), 1)
		}
		m.Link.Heal()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			require.Len(t, pick(t, p, 1, nil), 1)
		}
		require.NoError(t, w.Expire(w.session(m).ID()))
		w.Restart()
		require.Len(t, pick(t, p, 1, nil), 1)
	})
}

// TestAPoolIsEmptyAfterASyncedRead finds no instance, and notices at once when instances come or
// go.
func TestAPoolIsEmptyAfterASyncedRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.pool(w.member("c"))
		_, err := p.Pick(t.Context())
		require.ErrorIs(t, err, registry.ErrNoInstance, "there is no directory")
		one := w.register(w.member("a"), "one")
		two := w.register(w.member("b"), "two")
		synctest.Wait()
		require.Equal(t, []string{"one", "two"}, w.listed(p))
		require.NoError(t, one.Disable(t.Context(), "x"))
		synctest.Wait()
		require.Equal(t, []string{"two"}, w.listed(p))
		require.NoError(t, two.Close(t.Context()))
		synctest.Wait()
		_, err = p.Pick(t.Context())
		require.ErrorIs(t, err, registry.ErrNoInstance)
		require.NoError(t, one.Enable(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"one"}, w.listed(p))
		require.NoError(t, one.Close(t.Context()))
		time.Sleep(5 * time.Minute)
		w.Reap()
		_ = w.register(w.member("d"), "three")
		synctest.Wait()
		require.Equal(t, []string{"three"}, w.listed(p))
	})
}

// TestAPoolIgnoresAnEmptyListOfALaggingServer: the pool's client is on a server that does not know
// the instances yet.
func TestAPoolIgnoresAnEmptyListOfALaggingServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("c")
		s := w.session(m)
		_, err := w.LagAsLeader(s.ID())
		require.NoError(t, err)
		w.register(w.member("a"), "one")
		p := w.pool(m)
		require.Equal(t, []string{"one"}, w.listed(p))
	})
}

// TestAPoolIgnoresAnEmptyListOfALaggingLeader: during an outage of the pool's client the only
// instance leaves and another comes. The client's next server, the leader, knows the first of that.
func TestAPoolIgnoresAnEmptyListOfALaggingLeader(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("c")
		p := w.pool(m)
		first := w.register(w.member("a"), "one")
		b := w.member("b")
		synctest.Wait()
		require.Equal(t, []string{"one"}, w.listed(p))
		m.Link.Delay(10 * time.Millisecond)
		m.Link.Cut()
		require.NoError(t, first.Close(t.Context()))
		m.Link.Heal()
		m.Link.Delay(10 * time.Millisecond)
		for {
			time.Sleep(time.Millisecond)
			if _, err := w.LagAsLeader(w.session(m).ID()); err == nil {
				break
			}
		}
		w.register(b, "two")
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			require.NotEmpty(t, w.listed(p))
		}
		require.Equal(t, []string{"two"}, w.listed(p))
	})
}

// TestAPoolLeavesNoWatch on the directory of a service that was deleted while the pool's client was
// away.
func TestAPoolLeavesNoWatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, operator := w.member("c"), w.member("operator")
		p, only := w.pool(m), w.register(w.member("a"), "one")
		require.Equal(t, []string{"one"}, w.listed(p))
		m.Link.Cut()
		require.NoError(t, only.Close(t.Context()))
		require.NoError(t, operator.Delete(t.Context(), base+"/"+billing, framework.AnyVersion))
		m.Link.Heal()
		time.Sleep(timeout)
		require.Empty(t, w.listed(p))
		require.NotEmpty(t, w.Watches())
		require.NoError(t, p.Close(t.Context()))
		time.Sleep(timeout)
		require.Empty(t, w.Watches())
	})
}

func TestAPoolReadsChangesOfOtherProgramsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		w.register(m, "one")
		p := w.pool(w.member("c"), registry.WithRefresh(20*time.Second))
		require.Equal(t, []string{"one"}, w.listed(p))
		_, err := m.Set(t.Context(), base+"/billing/one",
			[]byte(strings.Replace(w.data("one"), `"enabled":true`, `"enabled":false`, 1)), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		require.Empty(t, w.listed(p))
	})
}

func TestAPoolThatIsClosed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		w.register(m, "one")
		p := w.pool(m)
		pick(t, p, 1, nil)
		require.NoError(t, p.Close(t.Context()))
		_, err := p.Pick(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		p = w.pool(m)
		require.NoError(t, p.Close(t.Context()))
		_, err = p.Pick(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		m.Link.Cut()
		waits := w.pool(m)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = waits.Pick(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		m.Link.Heal()
		pick(t, waits, 1, nil)
		require.NoError(t, m.Close(t.Context()))
		synctest.Wait() // the pool learns of it in the background
		_, _, err = waits.Instances(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		for _, o := range []registry.PoolOption{registry.WithBalancer(9), registry.WithEjection(0, 1),
			registry.WithPanicThreshold(2), registry.WithRefresh(0)} {
			_, err := w.pool(m, nil, o).Pick(t.Context())
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
		_, err = registry.NewPool(m.Client, base, "a/b").Pick(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}

// TestAPoolCostsFewRequests: without changes a pool reads only at each refresh, and each change
// costs one read of the instances.
func TestAPoolCostsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for i := range 200 {
			w.register(m, fmt.Sprint(i))
		}
		c := w.member("c")
		p, own := w.pool(c), w.session(c).ID()
		require.Len(t, w.listed(p), 200)
		var reads atomic.Int64
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op == zktest.OpMultiRead {
				reads.Add(1)
			}
		})
		defer stop()
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, reads.Load(), int64(41))
		reads.Store(0)
		g := w.register(m, "new")
		synctest.Wait()
		require.NoError(t, g.Disable(t.Context(), ""))
		synctest.Wait()
		require.LessOrEqual(t, reads.Load(), int64(4))
		require.Len(t, w.listed(p), 200)
	})
}

// TestAThousandInstancesAndAHundredPools counts and bounds their requests. A pool begins with a
// sync, two watches, and reads of 4, 256, 240 and 500 instances. A change costs the watches and a
// read for each 500 instances. If there are many changes, a pool reads ten lists at once, and then
// ten a second.
func TestAThousandInstancesAndAHundredPools(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const instances, reads = 1000, 4
		pools := 100
		if testing.Short() {
			pools = 30
		}
		var all []*registry.Registration
		for i := range instances / 100 {
			m := w.member(fmt.Sprint("i", i))
			for j := range 100 {
				all = append(all, w.register(m, fmt.Sprint(i, "-", j)))
			}
		}
		var started []*registry.Pool
		own := map[framework.SessionID]bool{}
		for i := range pools {
			m := w.member(fmt.Sprint("p", i))
			own[w.session(m).ID()] = true
			started = append(started, w.pool(m, registry.WithRefresh(time.Hour)))
		}
		var count atomic.Int64
		defer w.Observe(func(r zktest.Request) {
			if own[r.Session] && r.Op != zktest.OpPing {
				count.Add(1)
			}
		})()
		for _, p := range started {
			require.Len(t, w.listed(p), instances)
		}
		require.LessOrEqual(t, count.Swap(0), int64(pools*(reads+3)))

		require.NoError(t, all[7].Disable(t.Context(), "x"))
		synctest.Wait()
		for _, p := range started {
			require.Len(t, w.listed(p), instances-1)
		}
		require.LessOrEqual(t, count.Swap(0), int64(pools*reads))
		time.Sleep(10 * time.Minute)
		require.Zero(t, count.Swap(0), "nothing has changed")

		for _, p := range started[1:] {
			require.NoError(t, p.Close(t.Context()))
		}
		synctest.Wait()
		count.Store(0)
		for i := range 400 { // in two seconds
			require.NoError(t, all[i].Disable(t.Context(), "x"))
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Len(t, w.listed(started[0]), instances-400)
		require.LessOrEqual(t, count.Load(), int64(reads*(10+20+2)))
	})
}

// TestAPoolStartsFromItsFile while the servers cannot be reached, and follows the service when they
// can be reached.
func TestAPoolStartsFromItsFile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, name := w.member("a"), filepath.Join(t.TempDir(), "billing")
		g := w.register(m, "one")
		require.NoError(t, g.Update(t.Context(), func(i *registry.Instance) {
			i.Weight, i.Metadata, i.URISpec = 3, map[string]string{"zone": "a"}, "{scheme}://x"
		}))
		p := w.pool(m, registry.WithFile(name))
		want, _, err := p.Instances(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		good, err := os.ReadFile(name)
		require.NoError(t, err)

		far := w.member("far")
		far.Link.Cut()
		picks := w.pool(far, registry.WithFile(name), registry.WithBalancer(registry.RoundRobin))
		require.Len(t, pick(t, picks, 100, nil), 1)
		p = w.pool(far, registry.WithFile(name))
		pick(t, p, 1, nil)
		all, at, err := p.Instances(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, all)
		require.WithinDuration(t, time.Now(), at, time.Second)
		two := w.register(m, "two")
		far.Link.Heal()
		time.Sleep(timeout)
		require.Equal(t, []string{"one", "two"}, w.listed(p))
		require.Len(t, pick(t, picks, 100, nil), 2, "Pick alone follows the servers, too")
		again, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotEqual(t, good, again, "kept up to date")
		require.NoError(t, g.Close(t.Context()))
		require.NoError(t, two.Close(t.Context()))
		synctest.Wait()
		far.Link.Cut()
		empty := w.pool(far, registry.WithFile(name))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = empty.Pick(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "it waits for the servers")
	})
}

// TestAFileForEachService: pools of two services get the same option, as those of registrygrpc do.
func TestAFileForEachService(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		file := registry.WithFile(filepath.Join(t.TempDir(), "{service}.list"))
		services, r := []string{billing, "mail"}, registry.New(m.Client, base)
		for _, service := range services {
			g, err := r.Register(t.Context(), registry.Instance{Service: service, ID: service, Address: "a", Port: 1})
			require.NoError(t, err)
			defer g.Close(context.Background())
		}
		for range 2 { // the second time from the files
			for _, service := range services {
				p := registry.NewPool(m.Client, base, service, file)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				one, err := p.Pick(ctx)
				cancel()
				require.NoError(t, err)
				require.Equal(t, service, one.Instance.ID)
				one.Done(nil)
				synctest.Wait()
				require.NoError(t, p.Close(t.Context()))
			}
			m.Link.Cut()
		}
	})
}

func TestABadFileOfAPoolIsIgnored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, name := w.member("a"), filepath.Join(t.TempDir(), "billing")
		w.register(m, "one")
		pick(t, w.pool(m, registry.WithFile(name)), 1, nil)
		synctest.Wait()
		good, err := os.ReadFile(name)
		require.NoError(t, err)
		far := w.member("far")
		far.Link.Cut()
		starts := func(p *registry.Pool) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := p.Pick(ctx)
			return err == nil
		}
		require.True(t, starts(w.pool(far, registry.WithFile(name))))
		other := registry.NewPool(far.Client, base, "other", registry.WithFile(name))
		require.False(t, starts(other), "it is of another service")
		require.NoError(t, other.Close(t.Context()))
		for n := 0; n < len(good); n += 7 {
			require.NoError(t, os.WriteFile(name, good[:n], 0o600))
			require.False(t, starts(w.pool(far, registry.WithFile(name))), "half written: %d bytes", n)
			damaged := bytes.Clone(good)
			damaged[n] ^= 1
			require.NoError(t, os.WriteFile(name, damaged, 0o600))
			require.False(t, starts(w.pool(far, registry.WithFile(name))), "byte %d", n)
		}
		pick(t, w.pool(m, registry.WithFile(filepath.Join(t.TempDir(), "missing", "x"))), 1, nil)
		_, err = w.pool(m, registry.WithFile("")).Pick(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalid)
	})
}

// TestChangesAreYieldedOnce, and the last list stays while the servers are away.
func TestChangesAreYieldedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("c")
		p := w.pool(c, registry.WithRefresh(time.Second))
		var mu sync.Mutex
		var shown []string
		done := make(chan error, 1)
		go func() {
			for all, err := range p.Follow(t.Context()) {
				if err != nil {
					done <- err
					continue
				}
				line := ""
				for _, i := range all {
					line += i.ID + i.Disabled + " "
				}
				mu.Lock()
				shown = append(shown, line)
				mu.Unlock()
			}
			close(done)
		}()
		step := func() {
			synctest.Wait()
			time.Sleep(10 * time.Second)
		}
		step()
		g := w.register(w.member("a"), "one")
		step()
		require.NoError(t, g.Disable(t.Context(), "!"))
		step()
		c.Link.Cut()
		time.Sleep(3 * timeout)
		c.Link.Heal()
		step()
		require.NoError(t, p.Close(t.Context()))
		require.ErrorIs(t, <-done, framework.ErrClosed)
		_, goesOn := <-done
		require.False(t, goesOn)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"", "one ", "one! "}, shown)
		for _, err := range w.pool(c, nil, registry.WithRefresh(0)).Follow(t.Context()) {
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
	})
}

// TestChangesYieldsAnErrorOnce although each read returns it again.
func TestChangesYieldsAnErrorOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("c")
		owner := w.Member(t, "owner",
			framework.Config{SessionTimeout: timeout,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		require.NoError(t, owner.MakeDirs(t.Context(), base+"/"+billing))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var errs []error
		for _, err := range w.pool(c).Follow(ctx) {
			errs = append(errs, err)
		}
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], framework.ErrNoAuth)
	})
}
