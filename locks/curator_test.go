package locks_test

import (
	"context"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// These are counterparts of tests that Apache Curator has of its locks; docs/curator.md names them.

// TestBothFinishAcrossARestart: a holder and a waiter of one client, while the server is down and
// comes back.
func TestBothFinishAcrossARestart(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		m := w.member("m")
		l := kind.make(m.Client)
		first := held(t, t.Context(), l)
		waiter := newAsker(t)
		waiter.ask("second", l.Lock)
		m.Link.Cut()
		time.Sleep(timeout / 4)
		w.zk.Restart()
		m.Link.Heal()
		time.Sleep(timeout)
		require.NoError(t, first.Err(), "the session lives on")
		require.Empty(t, waiter.now())
		released(t, first)
		require.Equal(t, []string{"second"}, waiter.now())
		waiter.release("second")
		w.nothingLeft(t)
	})
}

// TestAKilledSessionLetsTheNextIn, also when both are of one client: the waiter queues again. The
// holder's node is gone, and its lease says why it ended.
func TestAKilledSessionLetsTheNextIn(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a, b := w.member("a"), w.member("b")
		for _, next := range []*framework.Client{a.Client, b.Client} {
			first := held(t, t.Context(), kind.make(a.Client))
			waiter := newAsker(t)
			waiter.ask("next", kind.make(next).Lock)
			require.Empty(t, waiter.now())
			require.NoError(t, w.zk.Expire(first.Session()))
			<-first.Context().Done()
			require.ErrorIs(t, first.Err(), framework.ErrSessionLost)
			time.Sleep(timeout)
			require.Equal(t, []string{"next"}, waiter.now())
			require.NotEqual(t, first.Session(), waiter.lease("next").Session())
			if n, exists := w.zk.Node(first.Node()); exists { // a claim's name is not unique
				require.Equal(t, waiter.lease("next").Session(), n.Stat.EphemeralOwner)
			}
			released(t, waiter.lease("next"))
		}
		w.nothingLeft(t)
	})
}

// TestDirectoryIsDeletedWithLastContender: directories are containers, but for the semaphore's
// record nothing stays.
func TestDirectoryIsDeletedWithLastContender(t *testing.T) {
	for _, kind := range exclusives {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t, zktest.Start(t, zktest.WithContainerInterval(10*time.Millisecond))}
				l := kind.make(w.member("m").Client)
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						lease := held(t, t.Context(), l)
						time.Sleep(10 * time.Millisecond)
						released(t, lease)
					})
				}
				all.Wait()
				time.Sleep(time.Second)
				var left []string
				for _, n := range w.zk.Tree("/locks") {
					left = append(left, n.Path)
				}
				if kind.name == "semaphore of one" {
					require.Equal(t, []string{"/locks", path, path + "/permits"}, left)
					return
				}
				require.Empty(t, left)
			})
		})
	}
}

// TestDeletedDirectoriesAreCreatedAgain: the server removes empty ones as fast as it can, between
// any two requests.
func TestDeletedDirectoriesAreCreatedAgain(t *testing.T) {
	for _, kind := range exclusives {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t, zktest.Start(t, zktest.WithContainerInterval(time.Millisecond))}
				m := w.member("m")
				l := kind.make(m.Client)
				for i := range 50 {
					m.Link.Delay(time.Duration(i%3) * 500 * time.Microsecond)
					released(t, held(t, t.Context(), l))
					time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				}
				require.Empty(t, w.ephemerals())
			})
		})
	}
}

// TestLocksBelowARoot: two namespaces of one server do not meet, and paths are told without them.
func TestLocksBelowARoot(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		one, two := config, config
		one.Root, two.Root = "/one", "/two"
		a, b := w.zk.Member(t, "a", one), w.zk.Member(t, "b", two)
		la, lb := held(t, t.Context(), kind.make(a.Client)), held(t, t.Context(), kind.make(b.Client))
		for _, l := range []*locks.Lease{la, lb} {
			require.Regexp(t, "^/locks/", l.Node())
		}
		for _, node := range w.ephemerals() {
			require.Regexp(t, "^/(one|two)/locks/", node)
		}
		_, err := a.Multi(t.Context(),
			append(la.Guards(), framework.CreateOp("/guarded", nil, framework.Persistent))...)
		require.NoError(t, err)
		refusedSoon(t, kind.make(w.zk.Member(t, "c", one).Client))
		released(t, la, lb)
		w.nothingLeft(t)
	})
}

// TestLockCreatesDocumentedLayout and nothing else; see docs/layouts.md.
func TestLockCreatesDocumentedLayout(t *testing.T) {
	const uuid = `_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`
	for _, c := range []struct {
		make  func(c *framework.Client) locks.Locker
		nodes map[string]zktest.Mode
	}{
		{func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
			map[string]zktest.Mode{path: zktest.Container, path + "/" + uuid + `lock-\d{10}`: zktest.Ephemeral}},
		{func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path) },
			map[string]zktest.Mode{path: zktest.Container, path + "/" + uuid + `__WRIT__\d{10}`: zktest.Ephemeral}},
		{func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path).RLocker() },
			map[string]zktest.Mode{path: zktest.Container, path + "/" + uuid + `__READ__\d{10}`: zktest.Ephemeral}},
		{func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, path, 1) },
			map[string]zktest.Mode{path: zktest.Container, path + "/locks": zktest.Container,
				path + "/leases":  zktest.Container,
				path + "/permits": zktest.Persistent, path + "/leases/" + uuid + `lease-\d{10}`: zktest.Ephemeral}},
		{func(c *framework.Client) locks.Locker { return locks.NewClaim(c, path) },
			map[string]zktest.Mode{path: zktest.Ephemeral}},
	} {
		in(t, func(t *testing.T, w *world) {
			held(t, t.Context(), c.make(w.member("m").Client))
			found := w.zk.Tree(path)
			require.Len(t, found, len(c.nodes))
			for _, n := range found {
				known := false
				for pattern, kind := range c.nodes {
					if regexp.MustCompile("^" + pattern + "$").MatchString(n.Path) {
						known = true
						require.Equal(t, kind, n.Mode, n.Path)
						require.Equal(t, kind == zktest.Container, len(n.Data) == 0, n.Path)
					}
				}
				require.True(t, known, n.Path)
			}
		})
	}
}

// TestNodesGetTheConfiguredACLs: directories the one, contenders the other.
func TestNodesGetTheConfiguredACLs(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		cfg := config
		cfg.ACL = []framework.ACL{{Perms: framework.PermAll, Scheme: "ip", ID: "127.0.0.1"}}
		cfg.ParentACL = append(framework.OpenACL(), cfg.ACL...)
		l := held(t, t.Context(), kind.make(w.zk.Member(t, "m", cfg).Client))
		seen := map[zktest.Mode]bool{}
		for _, n := range w.zk.Tree("/locks") {
			seen[n.Mode] = true
			want := cfg.ACL
			if n.Mode == zktest.Container {
				want = cfg.ParentACL
			}
			require.Len(t, n.ACL, len(want), n.Path)
			require.Equal(t, want[len(want)-1].ID, n.ACL[len(want)-1].ID, n.Path)
		}
		require.True(t, seen[zktest.Container] && seen[zktest.Ephemeral])
		released(t, l)
	})
}

// TestTheDataIsACopy: what the caller does with its bytes afterwards changes nothing.
func TestTheDataIsACopy(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		data := []byte{1, 2, 3, 4}
		l := kind.make(w.member("m").Client, locks.WithData(data))
		data[0] = 5
		lease := held(t, t.Context(), l)
		n, _ := w.zk.Node(lease.Node())
		require.Equal(t, []byte{1, 2, 3, 4}, n.Data)
		released(t, lease)
	})
}

// TestAPersistentContenderIsWaitedFor: a library's contender whose node outlives its session holds
// until somebody deletes it. Ours are ephemeral without exception.
func TestAPersistentContenderIsWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("m").Client
		node := path + "/_c_6ee7a6a5-8f0b-4f0e-8ba8-4c52d7a6a3c9-lock-0000000000"
		first := held(t, t.Context(), locks.NewMutex(c, path)) // number 0 is taken
		require.NoError(t, c.Create(t.Context(), node, nil, framework.Persistent))
		released(t, first)
		a := newAsker(t)
		a.ask("a", locks.NewMutex(c, path).Lock)
		time.Sleep(2 * timeout)
		require.Empty(t, a.now())
		require.Equal(t, node, inspect(t, c, path).Holders[0].Node)
		require.NoError(t, c.Delete(t.Context(), node, framework.AnyVersion))
		require.Equal(t, []string{"a"}, a.now())
		a.release("a")
	})
}

// TestDowngradeNeedsWritersContext: another goroutine that asks to read waits, though it uses the
// same lock.
func TestDowngradeNeedsWritersContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rw := locks.NewRWLock(w.member("m").Client, path)
		write := held(t, t.Context(), rw)
		refusedSoon(t, rw.RLocker())
		read := held(t, write.Context(), rw.RLocker())
		refusedSoon(t, rw)
		released(t, write)
		refusedSoon(t, rw)
		released(t, held(t, t.Context(), rw.RLocker()))
		released(t, read)
		released(t, held(t, t.Context(), rw))
		w.nothingLeft(t)
	})
}

// TestEightClientsReadAndWrite a hundred rounds each, a tenth of them writing.
func TestEightClientsReadAndWrite(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const clients, rounds = 8, 100
		var all sync.WaitGroup
		var mu sync.Mutex
		readers, writers, most := 0, 0, 0
		enter := func(read, write int) {
			mu.Lock()
			defer mu.Unlock()
			readers, writers = readers+read, writers+write
			most = max(most, readers)
			if writers > 1 || writers == 1 && readers > 0 {
				t.Errorf("%d writers beside %d readers", writers, readers)
			}
		}
		for i := range clients {
			rw, r := locks.NewRWLock(w.member("m").Client, path), rand.New(rand.NewPCG(uint64(i), 5))
			all.Go(func() {
				for range rounds {
					l, read, write := locks.Locker(rw), 0, 1
					if r.IntN(10) > 0 {
						l, read, write = rw.RLocker(), 1, 0
					}
					lease := held(t, t.Context(), l)
					enter(read, write)
					time.Sleep(time.Duration(1+r.IntN(9)) * time.Millisecond)
					enter(-read, -write)
					released(t, lease)
				}
			})
		}
		all.Wait()
		require.Greater(t, most, 1)
		w.nothingLeft(t)
	})
}

// TestRefusedListLeavesNoNode: the directory may be written to but not read.
func TestRefusedListLeavesNoNode(t *testing.T) {
	for name, perms := range map[string]framework.Perms{"not read": framework.PermCreate | framework.PermDelete,
		"nor deleted from": framework.PermCreate} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				owner := config
				owner.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("o:p")}}
				owner.ParentACL = append(framework.CreatorOnlyACL(),
					framework.ACL{Perms: perms, Scheme: "world", ID: "anyone"})
				o := w.zk.Member(t, "owner", owner)
				require.NoError(t, o.MakeDirs(t.Context(), path))
				m := w.member("m")
				_, err := locks.NewMutex(m.Client, path).Lock(t.Context())
				require.ErrorIs(t, err, framework.ErrNoAuth, "the cause, whatever becomes of the node")
				require.ErrorContains(t, err, "acquire "+path)
				time.Sleep(time.Second)
				if perms&framework.PermDelete == 0 { // it goes with the session at the latest
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_ = m.Close(ctx)
				}
				require.Empty(t, w.zk.Children(path))
			})
		})
	}
}

// TestALostSessionsNodeIsNoGrant: while the servers still have the node of a session that this
// client has given up, its next session's ask waits for it as for anybody's.
func TestALostSessionsNodeIsNoGrant(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		a := w.member("a")
		l := kind.make(a.Client)
		first := held(t, t.Context(), l)
		a.Link.BlackHole(true, true)
		<-first.Context().Done()
		require.ErrorIs(t, first.Err(), framework.ErrSessionLost)
		require.NotEmpty(t, w.ephemerals(), "the servers do not know yet")
		a.Link.BlackHole(false, false)
		second := held(t, t.Context(), l)
		require.NotEqual(t, first.Session(), second.Session())
		for _, node := range w.ephemerals() {
			n, _ := w.zk.Node(node)
			require.Equal(t, second.Session(), n.Stat.EphemeralOwner)
		}
		released(t, second)
		require.ErrorIs(t, first.Release(t.Context()), framework.ErrSessionLost)
		w.nothingLeft(t)
	})
}

// TestReadersAreNotWokenInVain: each looks at most at the last two writers before it, and lists
// once when one of these goes, not at each writer's end. Those of one session list together.
func TestReadersAreNotWokenInVain(t *testing.T) {
	const readers = 20
	rwMembers(t, func(t *testing.T, w *world, lock func() *locks.RWLock) {
		a := newAsker(t)
		for _, name := range []string{"w1", "w2", "w3", "w4"} {
			a.ask(name, lock().Lock)
		}
		for range readers {
			a.ask("r", lock().RLock)
		}
		require.Equal(t, []string{"w1"}, a.now())
		asked := w.requests()
		a.release("w1")
		a.release(a.now()...)
		require.Equal(t, []string{"w3"}, a.now())
		require.LessOrEqual(t, w.requests()-asked, int64(12+readers), "two writers' ends")
		asked = w.requests()
		a.release("w3")
		a.release(a.now()...)
		require.Len(t, a.now(), readers)
		require.LessOrEqual(t, w.requests()-asked, int64(12+2*readers), "two more")
		if len(w.zk.Sessions()) == 1 {
			require.LessOrEqual(t, w.requests()-asked, int64(4), "the deletions, and at most a list for all")
		}
	})
}
