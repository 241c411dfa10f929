package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/zktest"
)

// rivals are two clients of one server in a synctest bubble. What a asks for takes a while, so that
// b can act between a's lost answer and a's next look.
type rivals struct {
	*testing.T
	zk       *zktest.Server
	link     *zktest.Link // a's
	a, b     *framework.Session
	inFlight chan error
}

func withRivals(t *testing.T, test func(r *rivals)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		a := zk.Member(t, "a", config)
		r := &rivals{T: t, zk: zk, link: a.Link, a: session(t, a), b: session(t, zk.Member(t, "b", config)),
			inFlight: make(chan error, 1)}
		a.Link.Delay(50 * time.Millisecond)
		test(r)
	})
}

// ask has a write in the background.
func (r *rivals) ask(write func() error) {
	go func() { r.inFlight <- write() }()
}

// applied has a write whose answer is lost, and waits until the server has applied it.
func (r *rivals) applied(m zktest.Match, write func() error) {
	f := r.zk.DropReply(1, m)
	r.ask(write)
	<-f.Hit()
}

// lost has a write that is sent and never reaches the server.
func (r *rivals) lost(write func() error) {
	r.link.BlackHole(true, false)
	r.ask(write)
	synctest.Wait()
	r.link.Reset()
	r.link.Cut()
}

// unwritten has a write that the session queues on a connection that takes no more bytes, and ends
// that connection: nothing of the write has left.
func (r *rivals) unwritten(write func() error) {
	r.link.BlackHole(true, true)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() { _, _ = r.a.Set(ctx, "/large", make([]byte, 900<<10), framework.AnyVersion) }()
	synctest.Wait() // the connection is full
	r.ask(write)
	synctest.Wait()
	r.link.Reset()
	r.link.Cut()
}

// unsent has a write while there is no connection. The session must have noticed the loss before: a
// write that it makes until then is sent, as far as it knows.
func (r *rivals) unsent(write func() error) {
	r.link.Cut()
	synctest.Wait()
	require.Equal(r, framework.Suspended, r.a.State())
	r.ask(write)
	synctest.Wait() // for the connection
}

// outcome heals a's link and returns what a was told.
func (r *rivals) outcome() error {
	r.link.Heal()
	return <-r.inFlight
}

func (r *rivals) set(s *framework.Session, data string, version int32) error {
	_, err := s.Set(r.Context(), "/n", []byte(data), version)
	return err
}

func (r *rivals) create(s *framework.Session, data string, mode framework.Mode) error {
	return s.Create(r.Context(), "/n", []byte(data), mode)
}

func (r *rivals) data() string {
	data, _, err := r.b.Get(r.Context(), "/n")
	require.NoError(r, err)
	return string(data)
}

func setting() zktest.Match { return on(zktest.OpSetData, "/n") }

// TestAnUnsentWriteIsNoTry has b do the very same while a has no connection: a has done nothing,
// and must be told.
func TestAnUnsentWriteIsNoTry(t *testing.T) {
	t.Run("set", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.b, "", framework.Persistent))
			r.unsent(func() error { return r.set(r.a, "mine", 0) })
			require.NoError(r, r.set(r.b, "mine", 0))
			require.ErrorIs(r, r.outcome(), framework.ErrBadVersion)
		})
	})
	t.Run("create", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.unsent(func() error { return r.create(r.a, "", framework.Persistent) })
			require.NoError(r, r.create(r.b, "", framework.Persistent))
			require.ErrorIs(r, r.outcome(), framework.ErrNodeExists)
		})
	})
	t.Run("delete", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.unsent(func() error { return r.a.Delete(r.Context(), "/never", framework.AnyVersion) })
			require.ErrorIs(r, r.outcome(), framework.ErrNoNode)
		})
	})
	t.Run("transaction", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.unsent(func() error {
				_, err := r.a.Multi(r.Context(), framework.CreateOp("/n", nil, framework.Persistent))
				return err
			})
			require.NoError(r, r.outcome(), "it is sent once there is a connection")
		})
	})
}

// TestAWriteThatNeverLeftIsNoTry has b do the very same while a's write waits behind another one on
// a connection that ends.
func TestAWriteThatNeverLeftIsNoTry(t *testing.T) {
	withRivals(t, func(r *rivals) {
		require.NoError(r, r.create(r.b, "", framework.Persistent))
		r.unwritten(func() error { return r.set(r.a, "mine", 0) })
		require.NoError(r, r.set(r.b, "mine", 0))
		require.ErrorIs(r, r.outcome(), framework.ErrBadVersion)
	})
	withRivals(t, func(r *rivals) {
		r.unwritten(func() error { return r.create(r.a, "", framework.Persistent) })
		require.NoError(r, r.create(r.b, "", framework.Persistent))
		require.ErrorIs(r, r.outcome(), framework.ErrNodeExists)
	})
	withRivals(t, func(r *rivals) {
		r.unwritten(func() error {
			_, err := r.a.Multi(r.Context(), framework.CreateOp("/n", nil, framework.Persistent))
			return err
		})
		require.NoError(r, r.outcome(), "it is sent once there is a connection")
	})
}

// TestALostWriteIsSettled loses a write, or its answer, and nobody else writes.
func TestALostWriteIsSettled(t *testing.T) {
	t.Run("a set that never arrived is sent again", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			for version, expected := range []int32{0, framework.AnyVersion} {
				r.lost(func() error { return r.set(r.a, "mine", expected) })
				require.NoError(r, r.outcome())
				stat, err := r.b.Exists(r.Context(), "/n")
				require.NoError(r, err)
				require.Equal(r, int32(version+1), stat.Version, "written once each")
			}
		})
	})
	t.Run("a set without a version is written over itself", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			var stat framework.Stat
			r.applied(setting(), func() (err error) {
				stat, err = r.a.Set(r.Context(), "/n", []byte("mine"), framework.AnyVersion)
				return err
			})
			require.NoError(r, r.outcome())
			now, err := r.b.Exists(r.Context(), "/n")
			require.NoError(r, err)
			require.Equal(r, now, stat)
		})
	})
	t.Run("a create that never arrived is sent again", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.b.Create(r.Context(), "/other", nil, framework.Persistent))
			require.NoError(r, r.a.Sync(r.Context(), "/")) // a knows of all that happened in the directory
			_, err := r.a.Exists(r.Context(), "/other")
			require.NoError(r, err)
			r.lost(func() error { return r.create(r.a, "", framework.Persistent) })
			require.NoError(r, r.outcome())
		})
	})
	t.Run("an ephemeral node is its session's", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.applied(on(zktest.OpCreate, "/n"), func() error { return r.create(r.a, "", framework.Ephemeral) })
			require.NoError(r, r.outcome())
		})
	})
	t.Run("a deletion that never arrived is sent again", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.lost(func() error { return r.a.Delete(r.Context(), "/n", 0) })
			require.NoError(r, r.outcome())
			_, there := r.zk.Node("/n")
			require.False(r, there)
		})
	})
	t.Run("a deletion of what never was", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.lost(func() error { return r.a.Delete(r.Context(), "/never", framework.AnyVersion) })
			require.ErrorIs(r, r.outcome(), framework.ErrNoNode)
		})
	})
}

// TestALostWriteOfAnothersNode loses a write of a's, and b was faster in a way that a can tell.
func TestALostWriteOfAnothersNode(t *testing.T) {
	t.Run("a set", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.lost(func() error { return r.set(r.a, "mine", 0) })
			require.NoError(r, r.set(r.b, "b's", 0))
			require.ErrorIs(r, r.outcome(), framework.ErrBadVersion)
			require.Equal(r, "b's", r.data())
		})
	})
	for mode, name := range map[framework.Mode]string{framework.Persistent: "a node of other data",
		framework.Ephemeral: "an ephemeral node"} {
		t.Run(name, func(t *testing.T) {
			withRivals(t, func(r *rivals) {
				r.lost(func() error { return r.create(r.a, "a's", mode) })
				require.NoError(r, r.create(r.b, "b's", mode))
				err := r.outcome()
				require.ErrorIs(r, err, framework.ErrNodeExists)
				require.NotErrorIs(r, err, framework.ErrOutcomeUnknown)
			})
		})
	}
	t.Run("a node from before", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "same", framework.Persistent))
			r.lost(func() error { return r.create(r.a, "same", framework.Persistent) })
			require.ErrorIs(r, r.outcome(), framework.ErrNodeExists)
		})
	})
}

// TestUnknownOutcomeIsReported makes each situation in which nothing that can be read shows whether
// a's write was applied.
func TestUnknownOutcomeIsReported(t *testing.T) {
	unknown := func(r *rivals, err error) {
		r.Helper()
		require.ErrorIs(r, err, framework.ErrOutcomeUnknown)
		require.ErrorIs(r, err, framework.ErrSuspended)
		require.True(r, failure.IsTransient(err))
	}
	t.Run("b sets the same, and has won", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.lost(func() error { return r.set(r.a, "taken", 0) })
			require.NoError(r, r.set(r.b, "taken", 0))
			unknown(r, r.outcome())
		})
	})
	t.Run("a has set, and b on top of it", func(t *testing.T) {
		for _, version := range []int32{0, framework.AnyVersion} {
			withRivals(t, func(r *rivals) {
				require.NoError(r, r.create(r.a, "", framework.Persistent))
				r.applied(setting(), func() error { return r.set(r.a, "a's", version) })
				require.NoError(r, r.set(r.b, "b's", 1))
				unknown(r, r.outcome())
				require.Equal(r, "b's", r.data(), "what a wrote before b does not come again")
			})
		}
	})
	t.Run("the node was made anew", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.applied(setting(), func() error { return r.set(r.a, "a's", 0) })
			require.NoError(r, r.b.Delete(r.Context(), "/n", framework.AnyVersion))
			require.NoError(r, r.create(r.b, "", framework.Persistent))
			require.NoError(r, r.set(r.b, "b's", 0))
			unknown(r, r.outcome())
		})
	})
	t.Run("two create the same", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.lost(func() error { return r.create(r.a, "same", framework.Persistent) })
			require.NoError(r, r.create(r.b, "same", framework.Persistent))
			unknown(r, r.outcome())
		})
	})
	t.Run("a has created, and b has deleted", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			r.applied(on(zktest.OpCreate, "/n"), func() error { return r.create(r.a, "", framework.Persistent) })
			require.NoError(r, r.b.Delete(r.Context(), "/n", 0))
			unknown(r, r.outcome())
			_, there := r.zk.Node("/n")
			require.False(r, there, "what b has deleted does not come again")
		})
	})
	t.Run("one of two has deleted", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.lost(func() error { return r.a.Delete(r.Context(), "/n", 0) })
			require.NoError(r, r.b.Delete(r.Context(), "/n", 0))
			unknown(r, r.outcome())
		})
	})
	t.Run("a has deleted, and b creates it again", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.applied(on(zktest.OpDelete, "/n"),
				func() error { return r.a.Delete(r.Context(), "/n", framework.AnyVersion) })
			require.NoError(r, r.create(r.b, "b's", framework.Persistent))
			unknown(r, r.outcome())
			require.Equal(r, "b's", r.data(), "a's deletion does not come again")
		})
	})
	t.Run("the context ends", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
			defer cancel()
			err := r.a.Create(ctx, "/n", nil, framework.Persistent)
			require.ErrorIs(r, err, framework.ErrOutcomeUnknown)
			require.ErrorIs(r, err, context.DeadlineExceeded)
			_, _, err = r.a.Get(ctx, "/n")
			require.NotErrorIs(r, err, framework.ErrOutcomeUnknown, "a read has no outcome")
			require.NotErrorIs(r, r.a.Create(ctx, "/m", nil, framework.Persistent), framework.ErrOutcomeUnknown,
				"it was never sent")
		})
	})
	t.Run("the session ends", func(t *testing.T) {
		withRivals(t, func(r *rivals) {
			require.NoError(r, r.create(r.a, "", framework.Persistent))
			r.applied(setting(), func() error { return r.set(r.a, "mine", 0) })
			require.NoError(r, r.zk.Expire(r.a.ID()))
			err := r.outcome()
			require.ErrorIs(r, err, framework.ErrOutcomeUnknown)
			require.ErrorIs(r, err, framework.ErrSessionLost)
		})
	})
}

// TestRepeatableRequestsAreRepeated loses the answers of writes whose repetition does no harm.
func TestRepeatableRequestsAreRepeated(t *testing.T) {
	withRivals(t, func(r *rivals) {
		ctx := r.Context()
		r.zk.DropReply(1, on(zktest.OpCreate, "/n"))
		require.NoError(r, r.a.CreateIfMissing(ctx, "/n", []byte("1"), framework.Persistent))
		require.NoError(r, r.a.CreateIfMissing(ctx, "/n", []byte("2"), framework.Persistent))
		require.Equal(r, "1", r.data())
		require.ErrorIs(r, r.a.CreateIfMissing(ctx, "/none/n", nil, framework.Persistent), framework.ErrNoNode)
		require.Error(r, r.a.CreateIfMissing(ctx, "/s", nil, framework.PersistentSequential))
		r.zk.DropReply(1, on(zktest.OpDelete, "/n"))
		require.NoError(r, r.a.DeleteIfPresent(ctx, "/n"))
		require.NoError(r, r.a.DeleteIfPresent(ctx, "/n"))
	})
}
