package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// firstThen dials over one link first, and over another one from then on.
func firstThen(first, then *zktest.Link) framework.Option {
	var dials atomic.Int32
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return first.DialContext(ctx, network, address)
		}
		return then.DialContext(ctx, network, address)
	})
}

// TestLargeWriteDoesNotBlockOthers asks for a large write, and for something else, on a connection
// that takes no more bytes.
func TestLargeWriteDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/n", nil, framework.Persistent))
		m.Link.BlackHole(true, true)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = s.Set(ctx, "/n", make([]byte, 900<<10), framework.AnyVersion) })
		calls.Go(func() {
			synctest.Wait()
			_, _, err := s.Get(ctx, "/n")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		calls.Wait()
		require.Equal(t, 50*time.Millisecond, time.Since(began))
		m.Link.Heal()
	})
}

// TestAnOverdueProofTriesAnotherServer silences the first connection at each phase of a heartbeat,
// with nothing, a small or a large write under way. About T/4 of the lease must remain for another
// server, which is there.
func TestAnOverdueProofTriesAnotherServer(t *testing.T) {
	for _, size := range []int{0, 100, 900 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			for phase := range 25 {
				synctest.Test(t, func(t *testing.T) {
					zk := zktest.Start(t)
					bad, good := zk.Link("bad"), zk.Link("good")
					m := zk.Member(t, "a", config, firstThen(bad, good))
					s := session(t, m)
					require.NoError(t, s.Create(t.Context(), "/n", nil, framework.Persistent))
					time.Sleep(3*timeout + time.Duration(phase)*timeout/100)
					bad.BlackHole(true, true)
					ctx, cancel := context.WithTimeout(t.Context(), timeout/100)
					defer cancel()
					if size > 0 {
						_, _ = s.Set(ctx, "/n", make([]byte, size), framework.AnyVersion)
					}
					for c := range m.FollowState(t.Context()) {
						require.Equal(t, framework.Suspended, c.State)
						break
					}
					require.GreaterOrEqual(t, s.LeaseRemaining(), timeout/4-2*(50*time.Millisecond+timeout/50),
						"phase %d", phase)
					time.Sleep(2 * timeout)
					require.NoError(t, s.Err(), "phase %d", phase)
				})
			}
		})
	}
}

// slow is a connection of little bandwidth.
type slow struct {
	net.Conn
	bytesPerSecond int
}

func (c slow) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(c.bytesPerSecond))
	return c.Conn.Write(b)
}

// TestHeartbeatOvertakesQueuedRequests writes for a minute's worth of bandwidth at once, more than
// may be queued.
func TestHeartbeatOvertakesQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		link := zk.Link("a")
		m := zk.Member(t, "a", config, framework.WithDialer(func(ctx context.Context, n, a string) (net.Conn, error) {
			c, err := link.DialContext(ctx, n, a)
			return slow{c, 300 << 10}, err
		}))
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/n", nil, framework.Persistent))
		changes := m.FollowState(t.Context())
		began := time.Now()
		var writes sync.WaitGroup
		for range 60 {
			writes.Go(func() {
				_, err := s.Set(t.Context(), "/n", make([]byte, 300<<10), framework.AnyVersion)
				require.NoError(t, err)
			})
		}
		writes.Wait()
		require.Greater(t, time.Since(began), 50*time.Second)
		require.NoError(t, m.Close(t.Context()))
		for c := range changes {
			require.Equal(t, framework.Lost, c.State, "the connection was never given up")
		}
	})
}

// TestSendQueueIsBounded has a hundred large writes on a connection that takes nothing. Those that
// were not even queued are known not to have happened.
func TestSendQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/n", nil, framework.Persistent))
		m.Link.BlackHole(true, true)
		ctx, cancel := context.WithTimeout(t.Context(), timeout/100)
		defer cancel()
		var queued atomic.Int32
		var writes sync.WaitGroup
		for range 100 {
			writes.Go(func() {
				_, err := s.Set(ctx, "/n", make([]byte, 1000<<10), framework.AnyVersion)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if errors.Is(err, framework.ErrOutcomeUnknown) {
					queued.Add(1)
				}
			})
		}
		writes.Wait()
		require.LessOrEqual(t, queued.Load(), int32(10))
		m.Link.Heal()
		require.NoError(t, s.Delete(t.Context(), "/n", framework.AnyVersion))
	})
}

// TestAQueuedDeletionComesFirst loses the connection at each moment of a deletion, of each kind.
// What the session asks for afterwards reaches the servers after it.
func TestAQueuedDeletionComesFirst(t *testing.T) {
	kinds := map[string]func(s *framework.Session, node primitives.Created, queued func()) []primitives.Discarded{
		"one by one": func(s *framework.Session, node primitives.Created, queued func()) []primitives.Discarded {
			return []primitives.Discarded{primitives.Of(s).Discard(queued, node.Path),
				primitives.Of(s).Discard(queued, "/two"), primitives.Of(s).Discard(queued, "/three")}
		},
		"several together": func(s *framework.Session, node primitives.Created, queued func()) []primitives.Discarded {
			return []primitives.Discarded{primitives.Of(s).Discard(queued, node.Path, "/two", "/three")}
		},
		"an own node": func(s *framework.Session, node primitives.Created, queued func()) []primitives.Discarded {
			return []primitives.Discarded{primitives.Of(s).Discard(queued, "/two"),
				primitives.Of(s).DiscardOwn(queued, node), primitives.Of(s).Discard(queued, "/three")}
		},
		"an own node and companions": func(s *framework.Session, node primitives.Created,
			queued func()) []primitives.Discarded {
			return []primitives.Discarded{primitives.Of(s).DiscardOwn(queued, node, "/two", "/three")}
		},
	}
	for kind, discard := range kinds {
		for name, lose := range map[string]func(l *zktest.Link){
			"before it arrives": func(l *zktest.Link) { l.Reset() },
			"with the answer": func(l *zktest.Link) {
				l.BlackHole(false, true)
				synctest.Wait()
				l.Reset()
				l.Heal()
			},
			"while there is none":           func(l *zktest.Link) { l.Cut(); time.Sleep(timeout / 8); l.Heal() },
			"with the first answer":         func(l *zktest.Link) { time.Sleep(1500 * time.Microsecond); l.Reset() },
			"before the second one arrives": func(l *zktest.Link) { time.Sleep(2500 * time.Microsecond); l.Reset() },
			"with the answer of the second": func(l *zktest.Link) { time.Sleep(3500 * time.Microsecond); l.Reset() },
			"again, as it is asked once more": func(l *zktest.Link) {
				l.Reset()
				time.Sleep(4 * time.Millisecond)
				l.Reset()
			},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					zk := zktest.Start(t)
					m := zk.Member(t, "a", config)
					s := session(t, m)
					node, err := createTogether(t.Context(), s,
						primitives.ProtectedCreate{Dir: "/", Name: "one", Plain: true, Unnumbered: true})
					require.NoError(t, err)
					for _, path := range []string{"/two", "/three"} {
						require.NoError(t, s.Create(t.Context(), path, nil, framework.Ephemeral))
					}
					var order []string
					zk.Observe(func(r zktest.Request) {
						all := append(r.Parts, r)
						if slices.ContainsFunc(all, func(part zktest.Request) bool { return part.Err != 0 }) {
							return // nothing of it has happened
						}
						for _, part := range all {
							if part.Op == zktest.OpDelete || part.Op == zktest.OpCreate {
								order = append(order, part.Path)
							}
						}
					})
					m.Link.Delay(time.Millisecond)
					var queued atomic.Int64
					gone := discard(s, node[0], func() { queued.Add(1) })
					lose(m.Link)
					require.NoError(t, s.CreateIfMissing(t.Context(), "/later", nil, framework.Persistent))
					for _, d := range gone {
						<-d.Done()
					}
					require.NoError(t, s.Err())
					require.Equal(t, int64(len(gone)), queued.Load())
					require.ElementsMatch(t, []string{"/one", "/two", "/three", "/later"}, order)
					require.Equal(t, "/later", order[3])
				})
			})
		}
	}
}

// TestARefusedDeletionKeepsNoOthers has one of three nodes that the servers refuse to delete, since
// it has a child.
func TestARefusedDeletionKeepsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		require.NoError(t, s.MakeDirs(t.Context(), "/parent/child"))
		require.NoError(t, s.MakeDirs(t.Context(), "/other/child"))
		for _, path := range []string{"/one", "/two"} {
			require.NoError(t, s.Create(t.Context(), path, nil, framework.Ephemeral))
		}
		gone := primitives.Of(s).Discard(nil, "/one", "/parent", "/missing", "/other", "/two")
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"parent", "other", "zookeeper"}, zk.Children("/"))
		select {
		case <-gone.Done():
			require.Fail(t, "two nodes are left")
		default:
		}
		require.NoError(t, s.Delete(t.Context(), "/parent/child", framework.AnyVersion))
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"other", "zookeeper"}, zk.Children("/"))
		require.NoError(t, s.Delete(t.Context(), "/other/child", framework.AnyVersion))
		<-gone.Done()
		require.ElementsMatch(t, []string{"zookeeper"}, zk.Children("/"))
	})
}

// TestDiscardKeepsNodeCreatedByAnotherSession deletes an own node while the answer is lost. Another
// session makes the node anew before the next connection.
func TestDiscardKeepsNodeCreatedByAnotherSession(t *testing.T) {
	for name, throttled := range map[string]zktest.Op{"": zktest.OpPing, "a look is throttled": zktest.OpExists,
		"its sync is throttled": zktest.OpSync} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", config)
				s, other := session(t, m), session(t, zk.Member(t, "b", config))
				node, err := createTogether(t.Context(), s,
					primitives.ProtectedCreate{Dir: "/", Name: "one", Plain: true, Unnumbered: true})
				require.NoError(t, err)
				m.Link.Delay(time.Millisecond)
				gone := primitives.Of(s).DiscardOwn(nil, node[0])
				time.Sleep(3500 * time.Microsecond) // the node is deleted, and the answer is on its way
				m.Link.Cut()
				require.NoError(t, other.Create(t.Context(), "/one", nil, framework.Ephemeral))
				zk.Throttle(1, zktest.Match{Op: throttled, Session: s.ID()})
				m.Link.Heal()
				<-gone.Done()
				time.Sleep(timeout)
				require.NoError(t, s.Err())
				_, there := zk.Node("/one")
				require.True(t, there)
				require.Equal(t, "a#2", zk.Sessions()[0].Remote, "the second connection is kept")
			})
		})
	}
}

// TestARefusedCompanionIsStillToBeDeleted loses the answer to the deletion of an own node, whose
// companion the servers have refused to delete before.
func TestARefusedCompanionIsStillToBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.MakeDirs(t.Context(), "/companion/child"))
		node, err := createTogether(t.Context(), s,
			primitives.ProtectedCreate{Dir: "/", Name: "own", Plain: true, Unnumbered: true})
		require.NoError(t, err)
		lost := zk.DropReply(1, zktest.Match{Op: zktest.OpDelete, Session: s.ID()})
		gone := primitives.Of(s).DiscardOwn(nil, node[0], "/companion")
		<-lost.Hit()
		require.ElementsMatch(t, []string{"companion", "zookeeper"}, zk.Children("/"))
		time.Sleep(time.Minute)
		require.NoError(t, s.Err())
		select {
		case <-gone.Done():
			require.Fail(t, "the companion is left")
		default:
		}
		require.ErrorIs(t, gone.Err(), framework.ErrNotEmpty)
		require.NoError(t, s.Delete(t.Context(), "/companion/child", framework.AnyVersion))
		<-gone.Done()
		require.NoError(t, gone.Err())
		require.Equal(t, []string{"zookeeper"}, zk.Children("/"))
	})
}

// TestADeletionEndsWithItsSession has a deletion whose answer never comes.
func TestADeletionEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(t.Context(), "/n", nil, framework.Ephemeral))
		m.Link.Cut()
		gone := primitives.Of(s).Discard(nil, "/n")
		<-s.Done()
		<-gone.Done()
		require.Zero(t, gone.Zxid())
		select {
		case <-primitives.Of(s).Discard(nil, "/n").Done():
		default:
			require.Fail(t, "the session has ended, and the node with it")
		}
		m.Link.Heal()
	})
}

// TestADeletionEndsWithItsClient closes a client while the answer to a deletion is on its way:
// Close does not wait for it.
func TestADeletionEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		require.NoError(t, s.Create(ctx, "/n", nil, framework.Ephemeral))
		zk.DelayReplies(time.Hour, zktest.Match{Op: zktest.OpDelete})
		gone := primitives.Of(s).Discard(nil, "/n")
		require.ErrorIs(t, m.Close(ctx), framework.ErrUnconfirmed)
		<-gone.Done()
		require.Zero(t, gone.Zxid())
	})
}
