package framework_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

func on(op zktest.Op, dir string) zktest.Match { return zktest.Match{Op: op, Path: dir} }

func TestProtectedCreateListsAfterCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		for i := range 3 {
			c, names, err := createAndList(t.Context(), s, "/dir/deep", "lock-", []byte("data"))
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(c.Path, "/dir/deep/_c_"))
			require.True(t, strings.HasSuffix(c.Path, fmt.Sprintf("-lock-%010d", i)))
			if i > 0 { // the first had to make the directory
				require.Len(t, names, i+1)
			}
			n, ok := zk.Node(c.Path)
			require.True(t, ok)
			require.Equal(t, n.Stat.Czxid, c.Zxid)
			require.Equal(t, s.ID(), n.Stat.EphemeralOwner)
		}
	})
}

// TestNoOrphanWhenRepliesAreLost drops the replies of the create and of what looks for it, in turn.
func TestNoOrphanWhenRepliesAreLost(t *testing.T) {
	for _, lost := range [][]zktest.Op{
		{zktest.OpCreate},
		{zktest.OpCreate, zktest.OpMulti}, // the sync before the list
		{zktest.OpCreate, zktest.OpGetChildren2},
		{zktest.OpCreate, zktest.OpMulti, zktest.OpGetChildren2, zktest.OpExists},
		{zktest.OpGetChildren2},
	} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			m := zk.Member(t, "a", config)
			s := session(t, m)
			require.NoError(t, s.MakeDirs(t.Context(), "/dir"))
			var faults []*zktest.Fault
			for _, op := range lost {
				faults = append(faults, zk.DropReply(1, on(op, "/dir")))
			}
			c, _, err := createAndList(t.Context(), s, "/dir", "lock-", nil)
			require.NoError(t, err)
			for i, f := range faults {
				select {
				case <-f.Hit():
				default:
					t.Errorf("the reply of %v was never lost", lost[i])
				}
			}
			require.Equal(t, []string{c.Path[len("/dir/"):]}, zk.Children("/dir"))
			n, _ := zk.Node(c.Path)
			require.Equal(t, n.Stat.Czxid, c.Zxid)
			require.NoError(t, s.Err())
		})
	}
}

// TestALookUpAfterALostReplyIsTheList: the list in which the session finds its node shows the
// caller the line, too.
func TestALookUpAfterALostReplyIsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		require.NoError(t, s.MakeDirs(t.Context(), "/dir"))
		require.NoError(t, s.Create(t.Context(), "/dir/other", nil, framework.Persistent))
		lost := zk.DropReply(1, on(zktest.OpCreate, "/dir"))
		made, names, err := createAndList(t.Context(), s, "/dir", "lock-", nil)
		require.NoError(t, err)
		<-lost.Hit()
		require.ElementsMatch(t, []string{"other", made.Path[len("/dir/"):]}, names)
	})
}

// TestNoOrphanWhenTheContextEnds ends the context at every step of a slow create, with and without
// a lost reply.
func TestNoOrphanWhenTheContextEnds(t *testing.T) {
	for _, lose := range []bool{false, true} {
		for step := range 40 {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", config)
				s := session(t, m)
				m.Link.Delay(10 * time.Millisecond)
				if lose {
					zk.DropReply(1, on(zktest.OpCreate, "/dir"))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(step)*5*time.Millisecond)
				defer cancel()
				c, _, err := createAndList(ctx, s, "/dir", "lock-", nil)
				time.Sleep(timeout)
				if err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Empty(t, zk.Children("/dir"), "step %d", step)
				} else {
					require.Len(t, zk.Children("/dir"), 1, c.Path)
				}
				require.NoError(t, s.Err())
			})
		}
	}
}

func TestProtectedCreateMakesReapedDirectoriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t, zktest.WithContainerInterval(time.Minute))
		m := zk.Member(t, "a", config)
		s := session(t, m)
		for range 5 {
			c, err := createProtected(t.Context(), s, "/dir/deep", "lock-", nil)
			require.NoError(t, err)
			<-primitives.Of(s).Discard(nil, c.Path).Done()
			time.Sleep(10 * time.Minute)
			_, there := zk.Node("/dir")
			require.False(t, there, "reaped")
		}
	})
}

func TestForbiddenProtectedCreateFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		cfg := config
		cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("alice:secret")}}
		owner := session(t, zk.Member(t, "owner", cfg))
		require.NoError(t, owner.MakeDirs(t.Context(), "/private"))
		stranger := session(t, zk.Member(t, "stranger", config))
		_, err := createProtected(t.Context(), stranger, "/private", "lock-", nil)
		require.ErrorIs(t, err, framework.ErrNoAuth)
		_, err = createProtected(t.Context(), owner, "/private", "lock-", nil)
		require.NoError(t, err)
	})
}

func TestHoldEndsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		operator := session(t, zk.Member(t, "operator", config))
		var holds []primitives.Hold
		for range 250 { // more than one heartbeat names
			c, err := createProtected(t.Context(), s, "/dir", "lock-", nil)
			require.NoError(t, err)
			h, err := primitives.Of(s).Hold(t.Context(), c)
			require.NoError(t, err)
			holds = append(holds, h)
		}
		for i, name := range zk.Children("/dir") {
			if i%10 == 0 {
				require.NoError(t, operator.Delete(t.Context(), "/dir/"+name, framework.AnyVersion))
			}
		}
		time.Sleep(2 * timeout)
		ended := 0
		for _, h := range holds {
			if h.Err() != nil {
				require.ErrorIs(t, h.Err(), framework.ErrNodeGone)
				ended++
			}
		}
		require.Equal(t, 25, ended)
		require.NoError(t, s.Err(), "the session lives on")
	})
}

func TestHoldKeepsValuesNotDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		s := session(t, zk.Member(t, "a", config))
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Second)
		c, err := createProtected(ctx, s, "/dir", "lock-", nil)
		require.NoError(t, err)
		h, err := primitives.Of(s).Hold(ctx, c)
		require.NoError(t, err)
		cancel()
		require.NoError(t, h.Context().Err())
		require.Equal(t, "v", h.Context().Value(key{}))
		child, stop := context.WithCancel(h.Context())
		defer stop()
		require.NoError(t, zk.Expire(s.ID()))
		<-child.Done()
		require.ErrorIs(t, context.Cause(child), framework.ErrSessionLost)
	})
}
