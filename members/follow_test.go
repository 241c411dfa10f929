package members_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestWatchersReceiveChanges(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, o := w.peer("a"), w.peer("b"), w.peer("o")
		m := a.join("a")
		b.join("b")
		seen := o.watch(t.Context())
		synctest.Wait()
		require.Equal(t, "a b: joined a, joined b", seen.last())
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 1 }))
		time.Sleep(time.Second)
		require.Equal(t, "a b: changed a", seen.last())
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 1 }))
		require.NoError(t, o.Cordon(t.Context(), "b"))
		time.Sleep(time.Second)
		require.Equal(t, "a b: changed b", seen.last())
		require.Equal(t, members.Cordoned, seen.view().Members[1].State)
		require.NoError(t, o.Uncordon(t.Context(), "b"))
		time.Sleep(time.Second)
		require.Equal(t, "a b: changed b", seen.last())
		require.Equal(t, members.Active, seen.view().Members[1].State)
		count := seen.count()
		require.NoError(t, o.Cordon(t.Context(), "c", members.WithAbsentMember()))
		time.Sleep(time.Second)
		require.Equal(t, count+1, seen.count(), "a cordon of an absent member makes a view")
	})
}

// TestASlowReaderGetsTheLatestStates: several changes of one member are one change.
func TestASlowReaderGetsTheLatestStates(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c, o := w.peer("a"), w.peer("b"), w.peer("c"), w.peer("o")
		first := a.join("a")
		back := b.join("b")
		read, turn := make(chan members.View), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(read)
			for view, err := range o.Follow(ctx) {
				if err == nil {
					read <- view
					<-turn
				}
			}
		}()
		<-read
		for n := range 5 {
			require.NoError(t, first.Update(t.Context(), func(i *members.Info) { i.Load = float64(n) }))
		}
		require.NoError(t, back.Leave(t.Context()))
		short := c.join("c")
		require.NoError(t, short.Leave(t.Context()))
		b.join("b")
		turn <- struct{}{}
		view := <-read
		require.Len(t, view.Changes, 2)
		require.Equal(t, members.Changed, view.Changes[0].Kind)
		require.Equal(t, 4.0, view.Changes[0].Member.Info.Load)
		require.Equal(t, members.Rejoined, view.Changes[1].Kind, "it has left and come back")
		require.Equal(t, "b", view.Changes[1].Member.ID)
		require.NotEqual(t, view.Changes[1].Before.Node, view.Changes[1].Member.Node)
		cancel()
		close(turn)
		<-read
	})
}

// TestTheNewestNodeOfAnIDCounts: of two nodes with one ID, a view shows the newer one's
// description.
func TestTheNewestNodeOfAnIDCounts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		former, next, o := w.peer("former"), w.peer("next"), w.peer("o")
		old := former.join("a")
		seen := o.watch(t.Context())
		synctest.Wait()
		m := next.join("a")
		require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load = 2 }))
		time.Sleep(time.Second)
		count := seen.count()
		require.NoError(t, old.Update(t.Context(), func(i *members.Info) { i.Load = 1 }))
		time.Sleep(time.Second)
		require.Equal(t, count, seen.count())
		last := seen.view().Members[0]
		require.Equal(t, 2.0, last.Info.Load)
		require.Equal(t, 1, last.Others)
		require.Equal(t, 2.0, o.member("a").Info.Load)
		require.NoError(t, old.Leave(t.Context()))
		time.Sleep(time.Second)
		require.Zero(t, seen.view().Members[0].Others)
		require.Equal(t, "a: changed a", seen.last())
		require.Zero(t, seen.view().Changes[0].Zxid, "no node shows which transaction removed the other one")
		newest := o.join("a")
		time.Sleep(time.Second)
		require.Equal(t, "a: rejoined a", seen.last())
		require.NoError(t, newest.Leave(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, "a: changed a", seen.last(), "an older node is shown")
		require.Equal(t, 2.0, seen.view().Members[0].Info.Load)
		require.Zero(t, seen.view().Changes[0].Zxid)
	})
}

// TestWatchesAreInOrder while members update their descriptions and lose their sessions, servers
// lag behind, replies are lost and connections are cut. watched.add checks the order.
func TestWatchesAreInOrder(t *testing.T) {
	for seed := range uint64(20) {
		in(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var peers []*peer
			var joined []*members.Membership
			var watches []*watched
			for i := range 4 {
				p := w.peer(fmt.Sprint(i))
				peers, joined, watches = append(peers, p), append(joined, p.join(fmt.Sprint(i))),
					append(watches, p.watch(t.Context()))
			}
			for range 60 {
				i := rng.IntN(len(peers))
				switch rng.IntN(6) {
				case 0:
					_ = w.Expire(peers[i].sessionID())
				case 1:
					lag := w.Lag
					if i == 0 { // its server is the leader
						lag = w.LagAsLeader
					}
					if catchUp, err := lag(peers[i].sessionID()); err == nil {
						time.AfterFunc(rand.N(3*time.Second), catchUp)
					}
				case 2:
					w.DropReply(rng.IntN(3)+1, zktest.Match{})
				case 3:
					peers[i].Link.Cut()
					time.AfterFunc(rand.N(2*timeout), peers[i].Link.Heal)
				default:
					go func() {
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						_ = joined[i].Update(ctx, func(i *members.Info) { i.Load++ })
					}()
				}
				time.Sleep(rand.N(time.Second))
			}
			time.Sleep(5 * timeout)
			view, err := peers[0].Inspect(t.Context())
			require.NoError(t, err)
			require.Len(t, view.Members, len(peers))
			for i, seen := range watches {
				require.NoError(t, seen.failed())
				require.Equal(t, view.Members, seen.view().Members, "watcher %d has the latest", i)
			}
		})
	}
}

// TestAWatcherCostsFewRequests: none when idle, a bounded number when all members update at once,
// and one small read when a member joins.
func TestAWatcherCostsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		var all []*members.Membership
		for i := range 100 {
			all = append(all, a.join(fmt.Sprint(i)))
		}
		seen := o.watch(t.Context())
		synctest.Wait()
		own := o.sessionID()
		var requests atomic.Int64
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op != zktest.OpPing {
				requests.Add(1)
			}
		})
		defer stop()
		time.Sleep(time.Hour)
		require.Zero(t, requests.Load())
		a.join("new")
		synctest.Wait()
		require.Equal(t, 101, len(seen.view().Members))
		require.LessOrEqual(t, requests.Load(), int64(3))
		requests.Store(0)
		for range 10 {
			for _, m := range all {
				require.NoError(t, m.Update(t.Context(), func(i *members.Info) { i.Load++ }))
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Equal(t, 10.0, seen.view().Members[0].Info.Load)
		require.LessOrEqual(t, requests.Load(), int64(4*8), "a thousand updates in half a second")
	})
}

// TestAfterARestoreAWatchKeepsItsView: the servers were restored from a backup, so their
// transactions begin again at a lower number. The log says so once. Another watch shows what the
// servers have.
func TestAfterARestoreAWatchKeepsItsView(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		restored := &world{zktest.Start(t), t}
		before, after := w.Link("o"), restored.Link("o")
		var isRestored atomic.Bool
		var log logtest.Buffer
		client := w.Member(t, "o", framework.Config{SessionTimeout: timeout},
			framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				if isRestored.Load() {
					return after.DialContext(ctx, network, address)
				}
				return before.DialContext(ctx, network, address)
			}))
		o := &peer{members.New(client.Client, path), client, t}
		a := w.peer("a").join("a")
		for i := range 100 {
			require.NoError(t, a.Update(t.Context(), func(info *members.Info) { info.Load = float64(i) }))
		}
		seen := o.watch(t.Context())
		synctest.Wait()
		require.Equal(t, "a: joined a", seen.last())
		b := restored.peer("b")
		b.join("b")
		isRestored.Store(true)
		before.Cut()
		time.Sleep(10 * time.Minute)
		require.Equal(t, "a: joined a", seen.last())
		require.Equal(t, 1, strings.Count(log.String(), "older state of a group"))
		again := o.watch(t.Context())
		time.Sleep(time.Second)
		require.Equal(t, "b: joined b", again.last())
	})
}

// TestAWatchBeginsWithASync, and so does a list: the server may lag behind.
func TestAWatchBeginsWithASync(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		_, err := w.LagAsLeader(o.sessionID())
		require.NoError(t, err)
		a.join("a")
		for view, err := range o.Follow(t.Context()) {
			require.NoError(t, err)
			require.Len(t, view.Members, 1)
			break
		}
		_, err = w.LagAsLeader(o.sessionID())
		require.NoError(t, err)
		a.join("b")
		view, err := o.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, view.Members, 2)
	})
}

func TestAWatchCanBeLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		for view, err := range a.Follow(t.Context()) {
			require.NoError(t, err)
			require.Empty(t, view.Members)
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		seen := a.watch(ctx)
		synctest.Wait()
		cancel()
		<-seen.done
		require.NoError(t, seen.err)
		seen = a.watch(t.Context())
		synctest.Wait()
		require.NoError(t, a.Client.Close(t.Context()))
		<-seen.done
		require.ErrorIs(t, seen.err, framework.ErrClosed)
	})
}

// TestChangesBetweenTwoReadsAreInOrder: 502 members take two requests, and the first and the last
// member change between them, when they are known to the watcher and when it begins. watched.add
// checks the order.
func TestChangesBetweenTwoReadsAreInOrder(t *testing.T) {
	for _, known := range []bool{true, false} {
		in(t, func(t *testing.T, w *world) {
			a, o := w.peer("a"), w.peer("o")
			a.createMany(t, 502)
			change := func(name string) {
				_, err := a.Client.Multi(context.Background(),
					framework.SetOp(path+"/"+name, []byte(`{"v":1,"id":"`+name+`","load":1}`), framework.AnyVersion),
					framework.SetOp(path, nil, framework.AnyVersion))
				if err != nil {
					t.Error(err)
				}
			}
			own := o.sessionID()
			var seen *watched
			if known {
				seen = o.watch(t.Context())
				synctest.Wait()
			}
			var once sync.Once
			stop := w.Observe(func(r zktest.Request) {
				if r.Session == own && r.Op == zktest.OpMultiRead {
					once.Do(func() {
						go func() { change("000"); change("501") }()
					})
				}
			})
			defer stop()
			w.DelayReplies(50*time.Millisecond, zktest.Match{Op: zktest.OpMultiRead})
			if !known {
				seen = o.watch(t.Context())
			}
			time.Sleep(time.Second)
			change("250")
			time.Sleep(5 * time.Second)
			if known {
				require.Equal(t, 3, seen.count(), "the changes of the first and the last member are in one view")
			}
			last := seen.view().Members
			require.Equal(t, 3.0, last[0].Info.Load+last[250].Info.Load+last[501].Info.Load)
		})
	}
}

// createMany creates the nodes of n members in one transaction.
func (p *peer) createMany(t *testing.T, n int) {
	t.Helper()
	require.NoError(t, p.Client.MakeDirs(t.Context(), path))
	var ops []framework.Op
	for i := range n {
		ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/%03d", path, i), nil, framework.Ephemeral))
	}
	_, err := p.Client.Multi(t.Context(), ops...)
	require.NoError(t, err)
}

// countingConn counts the bytes that it receives.
type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

// TestAWatcherReadsOnlyNewMembers: a read of all 502 members would take 40 kB, the list takes 4. Of
// a large group many joins share a list.
func TestAWatcherReadsOnlyNewMembers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var received, lists atomic.Int64
		a, link := w.peer("a"), w.Link("o")
		m := w.Member(t, "o", framework.Config{SessionTimeout: timeout},
			framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				nc, err := link.DialContext(ctx, network, address)
				return countingConn{nc, &received}, err
			}))
		o := &peer{members.New(m.Client, path), m, t}
		a.createMany(t, 502)
		seen, own := o.watch(t.Context()), o.sessionID()
		time.Sleep(time.Second)
		require.Greater(t, received.Load(), int64(40_000))
		received.Store(0)
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op == zktest.OpGetChildren2 {
				lists.Add(1)
			}
		})
		defer stop()
		require.NoError(t, a.Client.Create(t.Context(), path+"/new", nil, framework.Ephemeral))
		synctest.Wait()
		require.Len(t, seen.view().Members, 503)
		require.Less(t, received.Load(), int64(10_000))
		for i := range 50 {
			require.NoError(t, a.Client.Create(t.Context(), fmt.Sprint(path, "/more", i), nil, framework.Ephemeral))
			synctest.Wait()
		}
		time.Sleep(150 * time.Millisecond)
		require.Len(t, seen.view().Members, 553)
		require.LessOrEqual(t, lists.Load(), int64(3))
	})
}

// TestACordonIsCreatedAgainWhileItIsRead: no view shows the new cordon before an older change of
// another member. watched.add checks the order.
func TestACordonIsCreatedAgainWhileItIsRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		require.NoError(t, a.Client.MakeDirs(t.Context(), path))
		announce := framework.SetOp(path, nil, framework.AnyVersion)
		do := func(ops ...framework.Op) {
			if _, err := a.Client.Multi(context.Background(), append(ops, announce)...); err != nil {
				t.Error(err)
			}
		}
		do(framework.CreateOp(path+"/one", nil, framework.Ephemeral))
		do(framework.CreateOp(path+"/two", nil, framework.Ephemeral))
		seen, own := o.watch(t.Context()), o.sessionID()
		time.Sleep(time.Second)
		var once sync.Once
		stop := w.Observe(func(r zktest.Request) {
			if r.Session == own && r.Op == zktest.OpGetChildren2 {
				once.Do(func() {
					go func() {
						do(framework.SetOp(path+"/one", []byte(`{"v":1,"id":"one","load":1}`), framework.AnyVersion))
						do(framework.DeleteOp(path+"/_cordon_two", framework.AnyVersion))
						do(framework.CreateOp(path+"/_cordon_two", nil, framework.Persistent))
					}()
				})
			}
		})
		defer stop()
		w.DelayReplies(50*time.Millisecond, zktest.Match{Op: zktest.OpGetChildren2})
		do(framework.CreateOp(path+"/_cordon_two", nil, framework.Persistent))
		time.Sleep(5 * time.Second)
		last := seen.view().Members
		require.Equal(t, 1.0, last[0].Info.Load)
		require.Equal(t, members.Cordoning, last[1].State)
	})
}

// TestANodeChangesWhileItIsRead: a member that updates between the list and the read is in the
// view.
func TestANodeChangesWhileItIsRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, o := w.peer("a"), w.peer("o")
		m := a.join("a")
		own := o.sessionID()
		updated := make(chan error, 10)
		n := 0
		stop := w.Observe(func(r zktest.Request) { // the next read finds a change
			if r.Session == own && r.Op == zktest.OpGetChildren2 && n < 3 {
				n++
				go func() { updated <- m.Update(t.Context(), func(i *members.Info) { i.Load++ }) }()
			}
		})
		defer stop()
		w.DelayReplies(10*time.Millisecond, zktest.Match{Op: zktest.OpGetChildren2})
		for view, err := range o.Follow(t.Context()) {
			require.NoError(t, err)
			require.Len(t, view.Members, 1)
			break
		}
		require.NoError(t, <-updated)
	})
}
