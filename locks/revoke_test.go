package locks_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// asked reports whether the lease's holder was asked to release.
func asked(l *locks.Lease) bool {
	revoked := l.Revoked()
	synctest.Wait()
	select {
	case <-revoked:
		return true
	default:
		return false
	}
}

// eachRevocable runs a test with all kinds of line nodes.
func eachRevocable(t *testing.T, test func(t *testing.T, w *world, a, b *zktest.Member, l *locks.Lease)) {
	for _, kind := range inheriting {
		t.Run(kind.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a"), w.member("b")
				test(t, w, a, b, held(t, t.Context(), kind.make(a.Client)))
			})
		})
	}
}

func TestAHolderIsAskedToRelease(t *testing.T) {
	eachRevocable(t, func(t *testing.T, w *world, _, b *zktest.Member, l *locks.Lease) {
		revoked := l.Revoked()
		require.False(t, asked(l))
		before, _ := w.zk.Node(l.Node())
		require.NoError(t, locks.Revoke(t.Context(), b.Client, l.Node()))
		<-revoked
		require.NoError(t, l.Err(), "it is a request, nothing more")
		require.NoError(t, l.Context().Err())
		n, _ := w.zk.Node(l.Node())
		require.Equal(t, strings.TrimSuffix(string(before.Data), "}")+`,"revoked":true}`, string(n.Data),
			"the owner's record stays")
		require.True(t, asked(l))
		require.NoError(t, locks.Revoke(t.Context(), b.Client, l.Node()), "asking twice is harmless")
		released(t, l)
		w.nothingLeft(t)
	})
}

// TestRevocationBeforeLookIsSeen looks only after it was asked.
func TestRevocationBeforeLookIsSeen(t *testing.T) {
	eachRevocable(t, func(t *testing.T, w *world, _, b *zktest.Member, l *locks.Lease) {
		require.NoError(t, locks.Revoke(t.Context(), b.Client, l.Node()))
		<-l.Revoked()
		released(t, l)
		require.True(t, asked(l), "it stays asked")
		w.nothingLeft(t)
	})
}

// everyRevocable are locks of all kinds, by their paths.
func everyRevocable(c *framework.Client) map[string]locks.Locker {
	return map[string]locks.Locker{
		"/m": locks.NewMutex(c, "/m"), "/r": locks.NewRWLock(c, "/r").RLocker(), "/w": locks.NewRWLock(c, "/w"),
		"/s": locks.NewSemaphore(c, "/s", 1), "/c": locks.NewClaim(c, "/c"),
		"/h": locks.NewMutex(c, "/h", locks.WithLocalHandoff(time.Minute)),
	}
}

// TestARevokedHolderIsStillKnown: a report shows who holds, and that another client has asked for
// the lock.
func TestARevokedHolderIsStillKnown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := w.member("b").Client
		for at, l := range everyRevocable(w.member("a").Client) {
			lease := held(t, t.Context(), l)
			want := inspect(t, b, at).Holders
			require.Len(t, want, 1)
			require.Equal(t, "a", want[0].Owner)
			require.False(t, want[0].Revoked)
			want[0].Revoked, want[0].RevokedAt = true, time.Now().UTC()
			require.NoError(t, locks.Revoke(t.Context(), b, want[0].Node))
			require.Equal(t, want, inspect(t, b, at).Holders)
			require.NoError(t, locks.Revoke(t.Context(), b, want[0].Node))
			require.Equal(t, want, inspect(t, b, at).Holders)
			require.True(t, asked(lease))
			released(t, lease)
		}
	})
}

// TestAnOverwrittenOwnerIsWrittenBack: Curator's Revoker overwrites the record of a holder that
// listens. Connections and answers are lost meanwhile.
func TestAnOverwrittenOwnerIsWrittenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b").Client
		for at, l := range everyRevocable(a.Client) {
			lease := held(t, t.Context(), l)
			want := inspect(t, b, at).Holders
			want[0].Revoked = true
			if at != "/c" { // a claim watches its node anyway
				require.False(t, asked(lease))
			}
			synctest.Wait()
			for range 3 {
				fault := w.zk.DropReply(1,
					zktest.Match{Op: zktest.OpSetData, Path: want[0].Node, Session: lease.Session()})
				_, err := b.Set(t.Context(), want[0].Node, []byte("__REVOKE__"), framework.AnyVersion)
				require.NoError(t, err)
				time.Sleep(timeout / 4)
				select {
				case <-fault.Hit():
				default:
					t.Fatal("nothing was written", at)
				}
				got := inspect(t, b, at).Holders
				require.WithinDuration(t, time.Now(), got[0].RevokedAt, timeout)
				want[0].RevokedAt = got[0].RevokedAt
				require.Equal(t, want, got)
				require.True(t, asked(lease))
			}
			require.NoError(t, lease.Err())
			released(t, lease)
		}
	})
}

// TestNoRecordIsWrittenIntoAnothersNode: another client has the name of a claim that an operator
// has deleted, and was asked to release it.
func TestNoRecordIsWrittenIntoAnothersNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b").Client
		lease := held(t, t.Context(), locks.NewClaim(a.Client, "/c"))
		_ = lease.Revoked()
		synctest.Wait()
		a.Link.Cut()
		require.NoError(t, b.Delete(t.Context(), "/c", framework.AnyVersion))
		put(t, b, "/c", "__REVOKE__", framework.Ephemeral)
		a.Link.Heal()
		time.Sleep(timeout)
		require.ErrorIs(t, lease.Err(), framework.ErrNodeGone)
		require.Equal(t, []string{"__REVOKE__"}, data(inspect(t, b, "/c").Holders))
	})
}

// TestOtherLibrariesGetCuratorsMark, and so do holders with data of their own: only their programs
// know what they have written.
func TestOtherLibrariesGetCuratorsMark(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		lease := held(t, t.Context(), locks.NewMutex(a, path, locks.WithData([]byte("mine"))))
		put(t, a, path+"/_c_00000000-0000-0000-0000-000000000001-lock-0000000007", "10.0.0.1", framework.Ephemeral)
		require.False(t, asked(lease))
		r := inspect(t, b, path)
		for _, e := range slices.Concat(r.Holders, r.Waiters) {
			require.NoError(t, locks.Revoke(t.Context(), b, e.Node))
		}
		require.True(t, asked(lease))
		r = inspect(t, b, path)
		require.Equal(t, []string{"__REVOKE__", "__REVOKE__"}, data(slices.Concat(r.Holders, r.Waiters)))
		for _, e := range slices.Concat(r.Holders, r.Waiters) {
			require.True(t, e.Revoked)
			require.True(t, e.Foreign)
		}
	})
}

// TestOtherWritesAreNoRevocation writes other data first.
func TestOtherWritesAreNoRevocation(t *testing.T) {
	eachRevocable(t, func(t *testing.T, _ *world, _, b *zktest.Member, l *locks.Lease) {
		for _, data := range []string{"", "192.0.2.1", "__REVOKE__ ", `{"v":1}`} {
			_, err := b.Set(t.Context(), l.Node(), []byte(data), framework.AnyVersion)
			require.NoError(t, err)
			require.False(t, asked(l), data)
		}
		require.NoError(t, locks.Revoke(t.Context(), b.Client, l.Node()))
		require.True(t, asked(l))
	})
}

// TestRevokeHolderFoundByInspect finds the node as an operator does.
func TestRevokeHolderFoundByInspect(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		first := lock(t, a.Client)
		next := newAsker(t)
		mb := locks.NewMutex(b.Client, path)
		next.ask("b", mb.Lock)
		done := make(chan error, 1)
		go func() {
			<-first.Revoked()
			done <- first.Release(t.Context())
		}()
		r := inspect(t, b.Client, path)
		require.Len(t, r.Holders, 1)
		require.Len(t, r.Waiters, 1)
		require.NoError(t, locks.Revoke(t.Context(), b.Client, r.Holders[0].Node))
		require.Equal(t, []string{"b"}, next.now())
		require.NoError(t, <-done)
		require.False(t, asked(next.lease("b")), "the next holder was not asked")
		next.release("b")
	})
}

// TestAWaiterMayBeAskedAlready: it learns so when it is granted.
func TestAWaiterMayBeAskedAlready(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		first := lock(t, a.Client)
		next := newAsker(t)
		mb := locks.NewMutex(b.Client, path)
		next.ask("b", mb.Lock)
		require.NoError(t, locks.Revoke(t.Context(), a.Client, inspect(t, a.Client, path).Waiters[0].Node))
		synctest.Wait()
		require.Empty(t, next.now(), "a change of the waiter's data grants nothing")
		released(t, first)
		require.Equal(t, []string{"b"}, next.now())
		require.True(t, asked(next.lease("b")))
	})
}

// TestRevokeDoesNotGrantBeforeRelease: waiters watch the holder's node, whose data changes.
func TestRevokeDoesNotGrantBeforeRelease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		first := lock(t, a.Client)
		next := newAsker(t)
		next.ask("b", locks.NewMutex(b.Client, path).Lock)
		for range 3 {
			require.NoError(t, locks.Revoke(t.Context(), b.Client, first.Node()))
			synctest.Wait()
			require.Empty(t, next.now())
		}
		released(t, first)
		require.Equal(t, []string{"b"}, next.now())
	})
}

// TestARevocationIsHeardThroughReconnects loses the connection, and the server its watches, before,
// while and after it is written.
func TestARevocationIsHeardThroughReconnects(t *testing.T) {
	for name, lose := range map[string]func(w *world, a *zktest.Member){
		"reset":   func(_ *world, a *zktest.Member) { a.Link.Reset() },
		"restart": func(w *world, _ *zktest.Member) { w.zk.Restart() },
		"cut": func(_ *world, a *zktest.Member) {
			a.Link.Cut()
			time.AfterFunc(timeout/8, a.Link.Heal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachRevocable(t, func(t *testing.T, w *world, a, b *zktest.Member, l *locks.Lease) {
				_ = l.Revoked()
				for range 3 {
					lose(w, a)
					time.Sleep(timeout / 2)
					require.False(t, asked(l))
				}
				lose(w, a)
				require.NoError(t, locks.Revoke(t.Context(), b.Client, l.Node()))
				select {
				case <-l.Revoked():
				case <-time.After(timeout / 2):
				}
				require.True(t, asked(l))
				require.NoError(t, l.Err())
				released(t, l)
				w.nothingLeft(t)
			})
		})
	}
}

func TestRevokeOfGoneHolderFails(t *testing.T) {
	eachRevocable(t, func(t *testing.T, _ *world, _, b *zktest.Member, l *locks.Lease) {
		revoked := l.Revoked()
		released(t, l)
		err := locks.Revoke(t.Context(), b.Client, l.Node())
		require.ErrorIs(t, err, framework.ErrNotFound)
		require.ErrorContains(t, err, l.Node())
		require.False(t, failure.IsTransient(err))
		synctest.Wait()
		require.NotNil(t, revoked)
		require.False(t, asked(l), "an end is no revocation")
	})
}

func TestRevokeRefusesOtherNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		require.NoError(t, c.MakeDirs(t.Context(), "/data"))
		for node, want := range map[string]string{
			"": "invalid path", "x": "invalid path", "/a/": "invalid path", "/": "the node belongs to no session",
			"/data": "the node belongs to no session", "/locks/none": "the holder is gone",
			"/e/_c_00000000-0000-0000-0000-000000000001-latch-0000000001": "a candidate of an election",
		} {
			err := locks.Revoke(t.Context(), c, node)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "revoke "+node)
			require.False(t, failure.IsTransient(err))
		}
		require.ErrorContains(t, locks.Revoke(t.Context(), nil, path), "the client is nil")
		n, _ := w.zk.Node("/data")
		require.Empty(t, n.Data, "nothing was overwritten")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := lock(t, c)
		require.ErrorIs(t, locks.Revoke(ctx, c, l.Node()), context.Canceled)
	})
}

// TestANestedHolderIsAskedToo, and so is every turn of a slice.
func TestANestedHolderIsAskedToo(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		c := w.member("a").Client
		outer := held(t, t.Context(), kind.make(c, locks.WithReentry()))
		nested := held(t, outer.Context(), kind.make(c, locks.WithReentry()))
		other := held(t, outer.Context(), kind.make(c, locks.WithReentry()))
		_, _ = nested.Revoked(), other.Revoked()
		require.NoError(t, locks.Revoke(t.Context(), c, outer.Node()))
		require.True(t, asked(nested))
		require.True(t, asked(other))
		require.True(t, asked(outer))
		released(t, nested, other, outer)
		w.nothingLeft(t)
	})
}

// TestEachNodeOfALeaseIsListenedTo asks by each of several.
func TestEachNodeOfALeaseIsListenedTo(t *testing.T) {
	for name, ask := range map[string]func(c *framework.Client) locks.Locker{
		"mixture":   func(c *framework.Client) locks.Locker { return mixture(c) },
		"semaphore": func(c *framework.Client) locks.Locker { return locks.NewSemaphore(c, pool, 5).Permits(3) },
		"claim":     func(c *framework.Client) locks.Locker { return locks.NewClaim(c, "/c") },
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; ; i++ {
				more := false
				in(t, func(t *testing.T, w *world) {
					l := held(t, t.Context(), ask(w.member("a").Client))
					nodes := slices.DeleteFunc(w.ephemerals(),
						func(node string) bool { return strings.HasSuffix(node, "-hold") })
					more = i+1 < len(nodes)
					require.False(t, asked(l))
					require.NoError(t, locks.Revoke(t.Context(), w.member("b").Client, nodes[i]))
					require.True(t, asked(l), nodes[i])
					require.NoError(t, l.Err())
					released(t, l)
					w.nothingLeft(t)
				})
				if !more {
					break
				}
			}
		})
	}
}

// TestHoldersOfPermitsAreFoundByInspect: a semaphore of one tells whom to ask as a mutex does
// (CURATOR-650).
func TestHoldersOfPermitsAreFoundByInspect(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		l := held(t, t.Context(), locks.NewSemaphore(a.Client, pool, 1))
		next := newAsker(t)
		next.ask("b", locks.NewSemaphore(b.Client, pool, 1).Lock)
		report, err := locks.Inspect(t.Context(), b.Client, pool)
		require.NoError(t, err)
		require.Len(t, report.Holders, 1)
		require.NoError(t, locks.Revoke(t.Context(), b.Client, report.Holders[0].Node))
		<-l.Revoked()
		released(t, l)
		require.Equal(t, []string{"b"}, next.now())
		next.release("b")
	})
}

// TestListeningHolderNoticesDeletedNodeAtOnce: it watches the node that somebody deletes.
func TestListeningHolderNoticesDeletedNodeAtOnce(t *testing.T) {
	eachInheriting(t, func(t *testing.T, w *world, kind inherits) {
		b := w.member("b")
		l := kind.make(w.member("a").Client, locks.WithReentry())
		outer := held(t, t.Context(), l)
		nested := held(t, outer.Context(), l)
		_ = nested.Revoked()
		synctest.Wait()
		require.NoError(t, b.Delete(t.Context(), outer.Node(), framework.AnyVersion))
		synctest.Wait()
		require.ErrorIs(t, nested.Err(), framework.ErrNodeGone)
		require.ErrorIs(t, outer.Err(), framework.ErrNodeGone)
		released := held(t, t.Context(), l)
		require.NoError(t, released.Err())
	})
}
