package unused

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

const (
	someUUID = "_c_3d6dc0ac-6d8b-4f3b-8b9e-0c6c2f0d8a11-"
	owner    = `{"v":1,"owner":"web-1","host":"h","pid":7,"since":"2026-01-01T00:00:00Z"}`
)

// TestLeftoversOfEachKind finds and deletes leftovers of several kinds.
func TestLeftoversOfEachKind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		require.NoError(t, w.admin.MakeDirs(ctx, "/lockstep/locks/team/deploy"))
		require.NoError(t, w.admin.MakeDirs(ctx, "/lockstep/elections/billing"))
		w.put("/app/leader~term", `{"v":1,"number":3,"token":4}`)
		require.NoError(t, w.admin.MakeDirs(ctx, "/app/leader"))
		require.NoError(t, w.admin.MakeDirs(ctx, "/app/a~waits"))
		w.put("/app/gpu/permits", `{"v":1,"declared":4,"permits":4}`)
		require.NoError(t, w.admin.MakeDirs(ctx, "/app/gpu/leases"))
		w.put("/app/line/"+someUUID+"lock-0000000003", owner)
		require.Equal(t, map[string]Kind{
			"/lockstep/locks/team/deploy": EmptyDirectory, "/lockstep/locks/team": EmptyDirectory,
			"/lockstep/elections/billing": EmptyDirectory, "/app/leader": EmptyDirectory,
			"/app/a~waits": EmptyDirectory, "/app/gpu": Semaphore, "/app/line/" + someUUID + "lock-0000000003": Orphan,
		}, w.find("/").kinds())

		for _, l := range w.find("/").Leftovers {
			if l.Path != "/lockstep/locks/team" { // comes before the one below it
				require.NoError(t, w.delete(l), "%v", l)
			}
		}
		require.NoError(t, w.delete(w.one("/", EmptyDirectory)))
		require.Equal(t, []string{"/app/leader~term", "/app/line", "/lockstep/elections", "/lockstep/locks"},
			w.leaves())
	})
}

// leaves are the nodes without children but the servers' own.
func (w *world) leaves() (all []string) {
	for _, n := range w.zk.Tree("/") {
		if len(w.zk.Children(n.Path)) == 0 && !strings.HasPrefix(n.Path, "/zookeeper") {
			all = append(all, n.Path)
		}
	}
	return all
}

// TestOthersAreNeverTouched: Find finds no nodes that count or remember something, that an operator
// has set, or that other programs have written.
func TestOthersAreNeverTouched(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for path, data := range map[string]string{
			"/other/flag":                              "",
			"/lockstep/config/empty":                   "",
			"/lockstep/locks/not-ours":                 "data",
			"/lockstep/locks/d/x":                      "data",
			"/lockstep/gates/maintenance":              `{"v":1,"kind":"gate"}`,
			"/resized/permits":                         `{"v":1,"declared":4,"permits":2}`,
			"/newer/permits":                           `{"v":2,"declared":4,"permits":4}`,
			"/extended/permits":                        `{"v":1,"declared":4,"permits":4,"queue":"fair"}`,
			"/foreign/permits":                         "4",
			"/group/_cordon_a":                         "{}",
			"/kazoo/" + "0123__lock__0000000001":       "host",
			"/line/" + someUUID + "lock-0000000003":    "10.0.0.7",
			"/line/" + someUUID + "latch-0000000003":   "web-1",
			"/names/" + someUUID + "worker-0000000003": owner,
			"/lockstep/ids/n~writers/x":                "not a number",
		} {
			w.put(path, data)
		}
		name, err := ids.MakeName(ctx, w.admin.Client, "/lockstep/ids/names", "n-", nil)
		require.NoError(t, err)
		require.NoError(t, w.admin.Delete(ctx, name.Path, framework.AnyVersion))
		c := ids.NewCounter(w.admin.Client, "/lockstep/ids/c")
		_, err = c.Add(ctx, 3)
		require.NoError(t, err)
		require.NoError(t, c.Close(ctx))
		s := ids.NewSequence(w.admin.Client, "/lockstep/ids/s")
		_, err = s.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Close(ctx))
		q := queue.New(w.admin.Client, "/lockstep/queues/q", codec.Text(), queue.WithCapacity(5),
			queue.WithDedup(time.Hour))
		require.NoError(t, q.Put(ctx, "x", queue.WithID("1")))
		d, err := q.Take(ctx)
		require.NoError(t, err)
		require.NoError(t, d.Ack(ctx))
		require.NoError(t, q.Close(ctx))
		b := barrier.NewDoubleBarrier(w.admin.Client, "/lockstep/barriers/b", 1)
		r, err := b.Enter(ctx)
		require.NoError(t, err)
		require.NoError(t, r.Leave(ctx))
		require.NoError(t, barrier.NewLatch(w.admin.Client, "/lockstep/latches/l", 1).CountDown(ctx, "a"))
		v := config.New(w.admin.Client, "/lockstep/config/v", codec.Text())
		require.NoError(t, v.Set(ctx, "1"))
		time.Sleep(48 * time.Hour)
		before := w.paths("/")
		found := w.find("/")
		require.Equal(t, map[string]Kind{}, found.kinds())
		require.Equal(t, before, w.paths("/"), "nothing is written")
	})
}

// TestUsersStay: Find finds no lock that a client holds or waits for.
func TestUsersStay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		held, err := locks.NewSemaphore(a.Client, "/app/gpu", 1).Lock(t.Context())
		require.NoError(t, err)
		waiting := make(chan error, 1)
		go func() {
			l, err := locks.NewSemaphore(b.Client, "/app/gpu", 1).Lock(t.Context())
			if err == nil {
				err = l.Release(t.Context())
			}
			waiting <- err
		}()
		m, err := locks.NewMutex(a.Client, "/lockstep/locks/m").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Empty(t, w.find("/").Leftovers)
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, <-waiting)
		require.NoError(t, m.Release(t.Context()))
		synctest.Wait()
		require.Equal(t, map[string]Kind{"/app/gpu": Semaphore, "/lockstep/locks/m": EmptyDirectory},
			w.find("/").kinds())
	})
}

// TestUseBetweenLookAndDeletion: a leftover that is used after Find stays, and its user keeps the
// lock.
func TestUseBetweenLookAndDeletion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		user := w.member("user")
		for name, path := range map[string]string{"semaphore": "/app/gpu", "lock": "/lockstep/locks/m"} {
			var l locks.Locker = locks.NewSemaphore(user.Client, path, 2)
			if name == "lock" {
				l = locks.NewMutex(user.Client, path)
			}
			lease, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
			synctest.Wait()
			found := w.find(path).Leftovers
			require.Len(t, found, 1)

			lease, err = l.Lock(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, w.delete(found[0]), ErrChanged, name)
			require.NoError(t, lease.Err())
			require.NoError(t, lease.Release(t.Context()))
			synctest.Wait()
			require.ErrorIs(t, w.delete(found[0]), ErrChanged, "%s: it was used and is empty again", name)

			again := w.find(path).Leftovers[0]
			require.NoError(t, w.delete(again))
			require.ErrorIs(t, w.delete(again), ErrGone)
		}
	})
}

// TestDirectoryThatComesBackIsSeen: a directory that Find has not found exists again at the
// deletion.
func TestDirectoryThatComesBackIsSeen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("/app/gpu/permits", `{"v":1,"declared":2,"permits":2}`)
		l := w.one("/app", Semaphore)
		require.Len(t, l.absent, 2)
		require.NoError(t, w.admin.MakeDirs(t.Context(), "/app/gpu/leases"))
		delete(l.seen, "/app/gpu")
		l.Nodes = []string{"/app/gpu/permits"} // as if the directory were not compared
		require.ErrorIs(t, w.delete(l), ErrChanged)
		_, there := w.zk.Node("/app/gpu/permits")
		require.True(t, there)
	})
}

// TestServersDeleteAContainerMeanwhile: between the comparison and the deletion the servers delete
// the directory by themselves. It is gone then, and does not stay.
func TestServersDeleteAContainerMeanwhile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lease, err := locks.NewMutex(w.admin.Client, "/lockstep/locks/m").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()
		l := w.one("/lockstep/locks/m", EmptyDirectory)
		compared := make(chan struct{}, 10)
		stop := w.zk.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMultiRead || r.Op == zktest.OpGetData {
				compared <- struct{}{}
			}
		})
		defer stop()
		slow := w.zk.DelayReplies(time.Second, zktest.Match{Session: w.admin.Status().SessionID})
		defer slow.Cancel()
		deleted := make(chan error, 1)
		go func() { deleted <- w.delete(l) }()
		<-compared
		synctest.Wait()
		w.zk.Reap()
		_, there := w.zk.Node(l.Path)
		require.False(t, there)
		require.ErrorIs(t, <-deleted, ErrGone)
	})
}

// TestASemaphoreIsFoundWhileAContainerGoes: after any of the reads the servers delete an empty
// directory of the semaphore by themselves.
func TestASemaphoreIsFoundWhileAContainerGoes(t *testing.T) {
	gone := true
	for after := 1; gone; after++ {
		in(t, func(t *testing.T, w *world) {
			w.put("/gpu/permits", `{"v":1,"declared":4,"permits":4}`)
			require.NoError(t, w.admin.MakeDirs(t.Context(), "/gpu/leases"))
			own, other := w.admin.Status().SessionID, w.member("other")
			_, err := other.Session(t.Context())
			require.NoError(t, err)
			w.admin.Link.Delay(100 * time.Millisecond)
			reads, found, ended := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
			defer w.zk.Observe(func(r zktest.Request) {
				if r.Session == own && r.Op == zktest.OpMultiRead {
					reads <- struct{}{}
				}
			})()
			go func() {
				defer close(ended)
				for range after {
					select {
					case <-reads:
					case <-found:
						return
					}
				}
				if err := other.Delete(t.Context(), "/gpu/leases", framework.AnyVersion); err != nil {
					t.Error(err)
				}
			}()
			l := w.one("/", Semaphore)
			close(found)
			<-ended
			_, there := w.zk.Node("/gpu/leases")
			gone = !there
			if err := w.delete(l); err != nil {
				require.ErrorIs(t, err, ErrChanged)
				require.NoError(t, w.delete(w.one("/", Semaphore)))
			}
		})
		require.True(t, gone || after > 2, "Find reads nodes after it has listed them")
	}
}

// TestNodeCreatedAnewStays: a node that was created again stays, although it has the version of the
// former one.
func TestNodeCreatedAnewStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		orphan := "/app/line/" + someUUID + "lock-0000000003"
		w.put(orphan, owner)
		l := w.one("/app", Orphan)
		require.NoError(t, w.admin.Delete(t.Context(), orphan, 0))
		w.put(orphan, owner)
		require.ErrorIs(t, w.delete(l), ErrChanged)
		require.NoError(t, w.delete(w.one("/app", Orphan)))
	})
}

// TestCleaningBesideUsers finds and deletes leftovers again and again while others use the locks:
// no limit is exceeded, no user fails, and tokens rise.
func TestCleaningBesideUsers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const permits, users, rounds = 2, 5, 40
		var inside, most, deleted atomic.Int64
		var mu sync.Mutex
		var last int64
		var all sync.WaitGroup
		for i := range users {
			m := w.member(fmt.Sprint("user", i))
			all.Go(func() {
				for range rounds {
					l, err := locks.NewSemaphore(m.Client, "/app/gpu", permits).Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					most.Store(max(most.Load(), inside.Add(1)))
					time.Sleep(3 * time.Millisecond)
					inside.Add(-1)
					_ = l.Release(t.Context())
					err = locks.Do(t.Context(), locks.NewMutex(m.Client, "/lockstep/locks/m"),
						func(ctx context.Context, l *locks.Lease) error {
							mu.Lock()
							defer mu.Unlock()
							if l.Token() <= last {
								t.Errorf("token %d after %d", l.Token(), last)
							}
							last = l.Token()
							return nil
						})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Duration(10+i) * time.Millisecond)
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		for {
			for _, l := range w.find("/").Leftovers {
				if err := w.delete(l); err == nil {
					deleted.Add(1)
				} else if !errors.Is(err, ErrChanged) && !errors.Is(err, ErrGone) {
					t.Error(err)
				}
			}
			select {
			case <-done:
				require.LessOrEqual(t, most.Load(), int64(permits))
				require.Positive(t, deleted.Load())
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// TestTermsGoOn: terms and tokens still rise after an election's directory was deleted.
func TestTermsGoOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		lead := func(name string) *election.Term {
			e := election.New(w.member(name).Client, "/app/leader")
			term, err := e.Campaign(t.Context())
			require.NoError(t, err)
			require.NoError(t, term.Resign(t.Context()))
			synctest.Wait()
			return term
		}
		first := lead("a")
		for _, l := range w.find("/app").Leftovers {
			require.NoError(t, w.delete(l))
		}
		_, there := w.zk.Node("/app/leader")
		require.False(t, there)
		second := lead("b")
		require.Equal(t, first.Number()+1, second.Number())
		require.Greater(t, second.Token(), first.Token())
	})
}

// TestRemovedJobs: a job is a leftover a day after its removal, and not before. It stays if it was
// registered again.
func TestRemovedJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		user := w.member("user")
		job := scheduler.Job{Name: "report", Spec: "* * * * *",
			Run: func(context.Context, scheduler.Run) error { return nil }}
		s := scheduler.New(user.Client, "/lockstep/jobs/s")
		require.NoError(t, s.Add(job))
		stop := runs(t, s)
		time.Sleep(150 * time.Second)
		require.NoError(t, s.Remove(t.Context(), "report"))
		stop()
		require.Empty(t, w.find("/").Leftovers)
		time.Sleep(25 * time.Hour)
		found := w.find("/", func(o *Options) { o.NoClock = true })
		require.Empty(t, found.Leftovers)
		require.Equal(t, 1, found.Recent)
		l := w.one("/", RemovedJob)

		again := scheduler.New(user.Client, "/lockstep/jobs/s") // deletes the tombstone, and creates the job again
		require.NoError(t, again.Add(job))
		stop = runs(t, again)
		time.Sleep(time.Second)
		require.ErrorIs(t, w.delete(l), ErrChanged)
		require.NoError(t, again.Remove(t.Context(), "report"))
		stop()
		time.Sleep(25 * time.Hour)
		require.NoError(t, w.delete(w.one("/", RemovedJob)))
		require.NotContains(t, w.paths("/"), "/lockstep/jobs/s/jobs/report")
	})
}

// TestRegisteredJobsStay: registered jobs stay when their members are gone, paused jobs too.
func TestRegisteredJobsStay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s := scheduler.New(w.member("user").Client, "/lockstep/jobs/s")
		for _, name := range []string{"runs", "paused"} {
			require.NoError(t, s.Add(scheduler.Job{Name: name, Spec: "* * * * *",
				Run: func(context.Context, scheduler.Run) error { return nil }}))
		}
		stop := runs(t, s)
		time.Sleep(150 * time.Second)
		require.NoError(t, s.Pause(t.Context(), "paused"))
		stop()
		time.Sleep(48 * time.Hour)
		require.Empty(t, w.find("/").Leftovers)
	})
}

// runs runs a scheduler until stop is called.
func runs(t *testing.T, s *scheduler.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	time.Sleep(time.Second)
	return func() { cancel(); <-ended }
}

// TestWriteMarkersOfCounters: one is a leftover a day after its last write.
func TestWriteMarkersOfCounters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := ids.NewCounter(w.member("dead").Client, "/lockstep/ids/c")
		_, err := c.Add(t.Context(), 1)
		require.NoError(t, err)
		time.Sleep(23 * time.Hour)
		require.Empty(t, w.find("/").Leftovers)
		time.Sleep(2 * time.Hour)
		l := w.one("/", WriteMarker)
		_, err = c.Add(t.Context(), 1)
		require.NoError(t, err)
		require.ErrorIs(t, w.delete(l), ErrChanged, "its writer has written it again")
		time.Sleep(25 * time.Hour)
		require.NoError(t, w.delete(w.one("/", WriteMarker)))
		_, err = c.Add(t.Context(), 1)
		require.NoError(t, err)
		n, err := c.Get(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	})
}

// TestDroppedQueue: a client has died while it removed a queue.
func TestDroppedQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, kept := range []string{"/queues/kept", "/queues/dropped"} {
			q := queue.New(w.admin.Client, kept, codec.Text())
			require.NoError(t, q.Put(t.Context(), "x"))
			require.NoError(t, q.Close(t.Context()))
		}
		_, err := w.admin.Set(t.Context(), "/queues/dropped",
			[]byte(`{"v":2,"recipe":"queue","order":"parallel","dropped":true}`), framework.AnyVersion)
		require.NoError(t, err)
		require.Empty(t, w.find("/").Leftovers, "without the mark")
		w.put("/queues/dropped/dropped", "")
		w.put("/queues/kept/dropped", "") // by another program: the queue's record does not say that it was dropped
		l := w.one("/", DroppedQueue)
		require.NoError(t, w.admin.Delete(t.Context(), "/queues/dropped/dropped", 0))
		require.ErrorIs(t, w.delete(l), ErrChanged, "another client has deleted the mark")
		require.Contains(t, w.paths("/queues/dropped"), "/queues/dropped/items")
		w.put("/queues/dropped/dropped", "")
		require.NoError(t, w.delete(w.one("/", DroppedQueue)))
		require.Empty(t, w.paths("/queues/dropped"))
		n, err := queue.New(w.admin.Client, "/queues/kept", codec.Text()).Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// TestAge: the last use of a directory is known only if something was written later.
func TestAge(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.MakeDirs(t.Context(), "/lockstep/locks/m"))
		require.NoError(t, locks.Do(t.Context(), locks.NewMutex(w.admin.Client, "/lockstep/locks/m"),
			func(context.Context, *locks.Lease) error { return nil }))
		used := time.Now()
		older := func(d time.Duration) func(*Options) { return func(o *Options) { o.OlderThan = d } }
		time.Sleep(10 * time.Second)
		require.Empty(t, w.find("/", older(time.Second)).Leftovers,
			"nothing was written later, so it may have been used just now")
		require.NoError(t, w.admin.MakeDirs(t.Context(), "/lockstep/locks/other"))
		time.Sleep(10 * time.Second)
		found := w.find("/", older(15*time.Second))
		require.Empty(t, found.Leftovers)
		require.Equal(t, 2, found.Recent)
		found = w.find("/", older(5*time.Second))
		require.Equal(t, map[string]Kind{"/lockstep/locks/m": EmptyDirectory, "/lockstep/locks/other": EmptyDirectory},
			found.kinds())
		require.False(t, found.Leftovers[0].Since.Before(used))
	})
}

// TestFaults: an answer is lost, the servers cannot be reached for a while, the session ends, the
// context ends.
func TestFaults(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 700 { // several requests
			require.NoError(t, w.admin.MakeDirs(t.Context(), fmt.Sprintf("/lockstep/locks/m%03d", i)))
		}
		w.zk.DropReply(1, zktest.Match{Op: zktest.OpMultiRead})
		found := w.find("/")
		require.Len(t, found.Leftovers, 700)
		w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		require.NoError(t, w.delete(found.Leftovers[0]))
		_, there := w.zk.Node(found.Leftovers[0].Path)
		require.False(t, there)

		s, err := w.admin.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.zk.Expire(s.ID()))
		require.NoError(t, w.delete(found.Leftovers[1]))
		w.zk.Freeze()
		looked := make(chan *Found, 1)
		go func() {
			f, err := Find(context.WithoutCancel(t.Context()), w.admin.Client, "/", Options{Now: time.Now()})
			require.NoError(t, err)
			looked <- f
		}()
		time.Sleep(30 * time.Second)
		require.Empty(t, looked)
		w.zk.Thaw()
		require.Len(t, (<-looked).Leftovers, 698)

		w.zk.Freeze()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f, err := Find(short, w.admin.Client, "/", Options{})
		require.Nil(t, f, "no partial result")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.zk.Thaw()
	})
}

// TestBounds: the limit of nodes is reached, the client may not read some nodes, the root does not
// exist.
func TestBounds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, w.admin.MakeDirs(t.Context(), "/lockstep/locks/"+name))
		}
		found := w.find("/lockstep/locks", func(o *Options) { o.MaxNodes = 3 })
		require.Equal(t, map[string]Kind{"/lockstep/locks/a": EmptyDirectory, "/lockstep/locks/b": EmptyDirectory},
			found.kinds())
		require.Equal(t, "/lockstep/locks/c", found.LeftOut)
		require.Equal(t, 3, found.Looked)

		_, err := Find(t.Context(), w.admin.Client, "/missing", Options{})
		require.ErrorIs(t, err, framework.ErrNoNode)

		other := w.zk.Member(t, "other",
			framework.Config{SessionTimeout: 10 * time.Second,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		require.NoError(t, other.MakeDirs(t.Context(), "/lockstep/locks/secret/inner"))
		found = w.find("/lockstep/locks")
		require.Equal(t, []string{"/lockstep/locks/secret"}, found.Refused)
		require.Len(t, found.Leftovers, 3)
	})
}

// TestLostAnswersOfDroppedQueue: each answer to a transaction of the deletion is lost, and whether
// the request has arrived is unknown.
func TestLostAnswersOfDroppedQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for nth := 1; nth <= 3; nth++ {
			for name, faults := range map[string]func(){
				"the answer is lost": func() {
					w.zk.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
				},
				"the session ends": func() {
					lost := w.zk.DropReply(nth, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
					s, err := w.admin.Session(t.Context())
					require.NoError(t, err)
					go func() {
						<-lost.Hit()
						_ = w.zk.Expire(s.ID())
					}()
				},
			} {
				w.put("/queues/q", `{"v":2,"recipe":"queue","order":"parallel","dropped":true}`)
				w.put("/queues/q/dropped", "")
				for i := range deletedAtOnce {
					w.put(fmt.Sprintf("/queues/q/items/%03d", i), "x")
				}
				l := w.one("/", DroppedQueue)
				faults()
				require.NoError(t, w.delete(l), "%s, of transaction %d", name, nth)
				require.Empty(t, w.paths("/queues/q"))
			}
		}
	})
}

// TestDroppedQueueThatComesBack: the answer to a part of the deletion is lost, and another client
// finishes the removal and creates the queue again.
func TestDroppedQueueThatComesBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		other := w.member("other")
		w.put("/queues/q", `{"v":2,"recipe":"queue","order":"parallel","dropped":true}`)
		w.put("/queues/q/dropped", "")
		w.put("/queues/q/items/1", "x")
		l := w.one("/", DroppedQueue)
		lost := w.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Func: zktest.Request.Writes})
		deleted := make(chan error, 1)
		go func() { deleted <- w.delete(l) }()
		<-lost.Hit()
		w.admin.Link.Cut()
		q := queue.New(other.Client, "/queues/q", codec.Text())
		require.NoError(t, q.Put(t.Context(), "y"))
		require.NoError(t, q.Close(t.Context()))
		w.admin.Link.Heal()
		require.ErrorIs(t, <-deleted, ErrChanged)
		n, err := queue.New(other.Client, "/queues/q", codec.Text()).Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// TestRemovedJobThatIsAheadOfTheClock: the ensemble's clock was set back after the job was
// registered again, or its schedule was changed.
func TestRemovedJobThatIsAheadOfTheClock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		day := func(n int) string {
			return time.Now().Add(time.Duration(n) * 24 * time.Hour).UTC().Format(time.RFC3339)
		}
		w.put("/s/changes", `{"v":1,"changes":[]}`)
		for _, field := range []string{"registered", "since", "last"} {
			w.put("/s/jobs/"+field, fmt.Sprintf(
				`{"v":1,"spec":"* * * * *","zone":"UTC","removed":%q,"paused":%[1]q,%q:%q,"number":0,"fired":0}`,
				day(0), field, day(5)))
		}
		time.Sleep(48 * time.Hour)
		require.Empty(t, w.find("/").Leftovers)
		time.Sleep(96 * time.Hour)
		require.Equal(t, map[string]Kind{"/s/jobs/registered": RemovedJob, "/s/jobs/since": RemovedJob,
			"/s/jobs/last": RemovedJob}, w.find("/").kinds())
	})
}
