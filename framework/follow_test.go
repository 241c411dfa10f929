package framework_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// follower is a loop over a node's values in the background.
type follower struct {
	got    []framework.NodeValue
	err    error
	ended  bool
	cancel context.CancelFunc
}

// follow begins to follow a node. Read the fields after synctest.Wait.
func follow(t *testing.T, c *framework.Client, path string) *follower {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	f := &follower{cancel: cancel}
	go func() {
		for v, err := range c.Follow(ctx, path) {
			if f.err = err; err == nil {
				f.got = append(f.got, v)
			}
		}
		f.ended = true
	}()
	return f
}

// texts are the values so far, "-" for a missing node.
func (f *follower) texts() (texts []string) {
	synctest.Wait()
	for _, v := range f.got {
		if v.Exists {
			texts = append(texts, string(v.Data))
		} else {
			texts = append(texts, "-")
		}
	}
	return texts
}

func (f *follower) last() string {
	texts := f.texts()
	return texts[len(texts)-1]
}

func TestFollowYieldsEachValueOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		f := follow(t, a.Client, "/n")
		synctest.Wait()
		for _, step := range []func() error{
			func() error { return b.Create(ctx, "/n", []byte("1"), framework.Persistent) },
			func() error { _, err := b.Set(ctx, "/n", []byte("2"), 0); return err },
			func() error { return b.Create(ctx, "/n/child", nil, framework.Persistent) },
			func() error { return b.Delete(ctx, "/n/child", 0) },
			func() error { return b.Delete(ctx, "/n", 1) },
			func() error { return b.Create(ctx, "/n", []byte("3"), framework.Persistent) },
			func() error { _, err := b.Set(ctx, "/n", []byte("3"), 0); return err },
		} {
			require.NoError(t, step())
			synctest.Wait()
		}
		require.Equal(t, []string{"-", "1", "2", "-", "3", "3"}, f.texts())
		for i, v := range f.got {
			if v.Exists {
				require.Equal(t, v.Stat.Mzxid, v.Zxid)
			}
			require.True(t, i == 0 || v.Zxid > f.got[i-1].Zxid)
		}
	})
}

// TestSyncBringsTheServerUpToDate, also the leader, which answers ZooKeeper's own sync from its own
// state.
func TestSyncBringsTheServerUpToDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		for _, lag := range []func(framework.SessionID) (func(), error){zk.Lag, zk.LagAsLeader} {
			for _, path := range []string{"/", "/n", "/missing", "/missing/too"} {
				catchUp, err := lag(session(t, a).ID())
				require.NoError(t, err)
				require.NoError(t, b.CreateIfMissing(t.Context(), "/n", nil, framework.Persistent))
				_, err = b.Set(t.Context(), "/n", []byte(path), framework.AnyVersion)
				require.NoError(t, err)
				require.NoError(t, session(t, a).Sync(t.Context(), path))
				read, _, err := a.Get(t.Context(), "/n")
				require.NoError(t, err)
				require.Equal(t, path, string(read))
				catchUp()
			}
		}
	})
}

func TestFollowStartsAfterSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		require.NoError(t, b.Create(ctx, "/n", []byte("old"), framework.Persistent))
		_, err := zk.LagAsLeader(session(t, a).ID())
		require.NoError(t, err)
		_, err = b.Set(ctx, "/n", []byte("new"), 0)
		require.NoError(t, err)
		read, _, err := a.Get(ctx, "/n")
		require.NoError(t, err)
		require.Equal(t, "old", string(read), "the server lags behind")
		first := follow(t, a.Client, "/n")
		synctest.Wait()
		require.Equal(t, []string{"new"}, first.texts())

		_, err = b.Set(ctx, "/n", []byte("newer"), 1)
		require.NoError(t, err)
		joined := follow(t, a.Client, "/n")
		synctest.Wait()
		require.Equal(t, []string{"newer"}, joined.texts(), "it shares the loop that lags behind")
	})
}

func TestFollowersShareOneWatchAndItsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		require.NoError(t, b.Create(ctx, "/n", []byte("1"), framework.Persistent))
		a.Link.Delay(time.Millisecond)
		var followers []*follower
		for range 1000 {
			followers = append(followers, follow(t, a.Client, "/n"))
		}
		time.Sleep(time.Second)
		require.Len(t, zk.Watches(), 1)
		require.LessOrEqual(t, zk.Requests()[zktest.OpGetData], int64(2),
			"all ask for the second one, while the first one is under way")
		before := zk.Requests()[zktest.OpGetData]
		_, err := b.Set(ctx, "/n", []byte("2"), 0)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, before+1, zk.Requests()[zktest.OpGetData])
		for _, f := range followers {
			require.Equal(t, []string{"1", "2"}, f.texts())
			f.cancel()
		}
		time.Sleep(time.Second)
		require.Empty(t, zk.Watches())
		require.Zero(t, framework.WatchEntries(session(t, a)))
	})
}

func TestASlowFollowerSkipsToTheLatestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		require.NoError(t, m.Create(ctx, "/n", []byte("0"), framework.Persistent))
		next, stop := iter.Pull2(m.Follow(ctx, "/n"))
		defer stop()
		v, err, _ := next()
		require.NoError(t, err)
		require.Equal(t, "0", string(v.Data))
		for i := range int32(10) {
			_, err := m.Set(ctx, "/n", fmt.Appendf(nil, "%d", i+1), i)
			require.NoError(t, err)
			synctest.Wait()
		}
		v, err, _ = next()
		require.NoError(t, err)
		require.Equal(t, "10", string(v.Data))
	})
}

func TestFollowSurvivesOutages(t *testing.T) {
	recreate := func(ctx context.Context, b *zktest.Member) error {
		if err := b.Delete(ctx, "/n", 0); err != nil {
			return err
		}
		return b.Create(ctx, "/n", []byte("2"), framework.Persistent) // with the same version
	}
	for name, outage := range map[string]func(t *testing.T, zk *zktest.Server, a *zktest.Member, change func()){
		"cut": func(_ *testing.T, _ *zktest.Server, a *zktest.Member, change func()) {
			a.Link.Cut()
			change()
			a.Link.Heal()
		},
		"expiry": func(t *testing.T, zk *zktest.Server, a *zktest.Member, change func()) {
			s := session(t, a)
			a.Link.Cut()
			require.NoError(t, zk.Expire(s.ID()))
			change()
			a.Link.Heal()
		},
		"restart": func(_ *testing.T, zk *zktest.Server, _ *zktest.Member, change func()) {
			zk.Restart()
			change()
		},
		"lost reply of the read": func(_ *testing.T, zk *zktest.Server, _ *zktest.Member, change func()) {
			zk.DropReply(1, zktest.Match{Op: zktest.OpGetData, Path: "/n"})
			change()
		},
		"black hole": func(_ *testing.T, _ *zktest.Server, a *zktest.Member, change func()) {
			a.Link.BlackHole(true, true)
			change()
			time.Sleep(3 * timeout)
			a.Link.Heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				zk := zktest.Start(t)
				a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
				require.NoError(t, b.Create(ctx, "/n", []byte("1"), framework.Persistent))
				f := follow(t, a.Client, "/n")
				synctest.Wait()
				outage(t, zk, a, func() { require.NoError(t, recreate(ctx, b)) })
				time.Sleep(2 * timeout)
				synctest.Wait()
				require.Equal(t, "2", f.last())
				_, err := b.Set(ctx, "/n", []byte("3"), 0)
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, "3", f.last(), "it watches again")
				require.NoError(t, f.err)
				f.cancel()
				synctest.Wait()
				require.Empty(t, zk.Watches())
			})
		})
	}
}

// TestFollowUnderRandomFaults changes, deletes and creates a node while its followers lose
// connections, replies and sessions, and while their servers lag behind. With -short it has fewer
// seeds.
func TestFollowUnderRandomFaults(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			r := rand.New(rand.NewPCG(seed, 1))
			zk := zktest.Start(t)
			writer := zk.Member(t, "writer", config)
			var members []*zktest.Member
			var followers []*follower
			for i := range 3 {
				members = append(members, zk.Member(t, fmt.Sprint(i), config))
				followers = append(followers, follow(t, members[i].Client, "/n"))
			}
			for i := range 60 {
				m := members[r.IntN(len(members))]
				switch s, _ := m.Session(ctx); r.IntN(7) {
				case 0:
					m.Link.Reset()
				case 1:
					_ = zk.Expire(s.ID()) // perhaps it has no connection
				case 2:
					_, _ = zk.Lag(s.ID())
				case 3:
					zk.DropReply(1+r.IntN(2),
						zktest.Match{Session: s.ID(),
							Func: func(q zktest.Request) bool { return q.Path == "/n" }})
				case 4:
					require.NoError(t, writer.DeleteIfPresent(ctx, "/n"))
				default:
					require.NoError(t, writer.CreateIfMissing(ctx, "/n", nil, framework.Persistent))
					_, err := writer.Set(ctx, "/n", fmt.Appendf(nil, "%d", i), framework.AnyVersion)
					require.NoError(t, err)
				}
				time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			}
			require.NoError(t, writer.CreateIfMissing(ctx, "/n", nil, framework.Persistent))
			_, err := writer.Set(ctx, "/n", []byte("last"), framework.AnyVersion)
			require.NoError(t, err)
			time.Sleep(5 * timeout)
			for _, f := range followers {
				require.Equal(t, "last", f.last(), "seed %d", seed)
				for i, v := range f.got {
					require.True(t, i == 0 || v.Zxid > f.got[i-1].Zxid, "seed %d", seed)
				}
				f.cancel()
			}
			synctest.Wait()
			require.Empty(t, zk.Watches())
		})
	}
}

// TestReadsOfFollowersAreSpreadAfterAReconnect has 10,000 subscribers: 100 programs that follow 100
// nodes each; with -short 20 nodes. After a restart of the server each reads once, and they share
// the second evenly: twice the usual number in one tenth of it is 14 standard deviations away or
// more.
func TestReadsOfFollowersAreSpreadAfterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			spread          = time.Second
			clients         = 100
			betweenAttempts = 200 * time.Millisecond // of a client to reconnect, and the time to answer
		)
		nodes := 100
		if testing.Short() {
			nodes = 20
		}
		zk := zktest.Start(t)
		var mu sync.Mutex
		reads := map[framework.SessionID]map[string]int{} // of a session, by path
		var first, last time.Time
		var tenths [spread/100_000_000 + 1]int
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range clients {
			m := zk.Member(t, fmt.Sprint(i),
				framework.Config{SessionTimeout: timeout, FollowSpread: spread, RetryBase: time.Millisecond})
			for n := range nodes {
				go func() {
					for range m.Client.Follow(ctx, fmt.Sprint("/n", n)) {
					}
				}()
			}
		}
		synctest.Wait()
		zk.Observe(func(q zktest.Request) {
			if q.Op != zktest.OpGetData || !strings.HasPrefix(q.Path, "/n") {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() {
				first = time.Now()
			}
			if reads[q.Session] == nil {
				reads[q.Session] = map[string]int{}
			}
			reads[q.Session][q.Path]++
			last = time.Now()
			tenths[min(int(last.Sub(first)/(spread/10)), len(tenths)-1)]++
		})
		zk.Restart()
		time.Sleep(timeout)
		synctest.Wait()
		require.Len(t, reads, clients)
		for session, of := range reads {
			require.Len(t, of, nodes, "session %x", session)
			for path, n := range of {
				require.Equal(t, 1, n, "session %x reads %s", session, path)
			}
		}
		require.LessOrEqual(t, last.Sub(first), spread+betweenAttempts)
		for i, n := range tenths {
			require.LessOrEqual(t, n, 2*clients*nodes/10, "tenth %d of %v", i, tenths)
		}
		t.Logf("reads in each tenth of %v: %v", spread, tenths)
	})
}

func TestFollowEndsWithItsContextAndItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		first, second, third := follow(t, a.Client, "/n"), follow(t, a.Client, "/n"), follow(t, b.Client, "/n")
		synctest.Wait()
		first.cancel()
		synctest.Wait()
		require.True(t, first.ended)
		require.NoError(t, first.err, "silently")
		require.Len(t, zk.Watches(), 2, "another follower is there")
		a.Link.Cut()
		joined := follow(t, a.Client, "/n")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, joined.got, "what is known may be old")
		joined.cancel()
		synctest.Wait()
		require.True(t, joined.ended, "without a connection")
		require.ErrorIs(t, a.Close(t.Context()), framework.ErrUnconfirmed, "it has no connection")
		synctest.Wait()
		require.ErrorIs(t, second.err, framework.ErrClosed)
		require.True(t, second.ended)
		for _, err := range a.Follow(t.Context(), "/n") {
			require.ErrorIs(t, err, framework.ErrClosed)
		}
		for v, err := range b.Follow(t.Context(), "/n") {
			require.NoError(t, err)
			require.False(t, v.Exists)
			break
		}
		synctest.Wait()
		require.False(t, third.ended)
	})
}

func TestFollowRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		zk := zktest.Start(t)
		owner := zk.Member(t, "owner",
			framework.Config{SessionTimeout: timeout,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		require.NoError(t, owner.Create(ctx, "/n", nil, framework.Persistent))
		m := zk.Member(t, "a", config)
		for path, want := range map[string]error{"n": framework.ErrInvalid, "/n": framework.ErrNoAuth} {
			f := follow(t, m.Client, path)
			synctest.Wait()
			require.ErrorIs(t, f.err, want)
			require.True(t, f.ended)
			require.Empty(t, f.got)
		}
		require.Empty(t, zk.Watches())
	})
}
