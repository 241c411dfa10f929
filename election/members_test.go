package election_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

const group = "/groups/web"

// calls are what one observer of a group has been told.
type calls struct {
	mu   sync.Mutex
	all  []*election.Roster
	err  error
	done chan struct{}
}

func call(ctx context.Context, m *election.Group) *calls {
	c := &calls{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for r, err := range m.Observe(ctx) {
			c.mu.Lock()
			c.err = err
			if err == nil {
				c.all = append(c.all, r)
			}
			c.mu.Unlock()
		}
	}()
	return c
}

// last is "members +joined -left" of the latest roster.
func (c *calls) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.all[len(c.all)-1]
	ids := func(all []election.Member, sign string) (out []string) {
		for _, m := range all {
			out = append(out, sign+m.ID)
		}
		return out
	}
	return strings.Join(slices.Concat(ids(r.Members, ""), ids(r.Joined, "+"), ids(r.Left, "-")), " ")
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

func TestMembersJoinAndLeave(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := election.NewGroup(w.member("a").client, group), election.NewGroup(w.member("b").client, group)
		require.Equal(t, group, a.Path())
		none, err := a.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)
		seen := call(t.Context(), election.NewGroup(w.member("o").client, group))
		synctest.Wait()
		require.Equal(t, "", seen.last())

		first, err := a.Join(t.Context(), "a", election.Metadata{"zone": "x"})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "a +a", seen.last())
		second, err := b.Join(t.Context(), "b", nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "a b +b", seen.last())
		all, err := b.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, "a", all[0].ID)
		require.Equal(t, election.Metadata{"zone": "x"}, all[0].Metadata)
		require.WithinDuration(t, time.Now(), all[0].Joined, time.Second)
		require.NotZero(t, all[0].Session)
		require.Equal(t, group, all[0].Node[:len(group)])

		require.NoError(t, first.Leave(t.Context()))
		require.NoError(t, first.Leave(t.Context()))
		require.Len(t, w.Children(group), 1, "gone when Leave returns")
		synctest.Wait()
		require.Equal(t, "b -a", seen.last())
		require.NoError(t, second.Leave(t.Context()))
		synctest.Wait()
		require.Equal(t, " -b", " "+seen.last())
		time.Sleep(3 * time.Minute) // the directory is removed
		_, err = a.Join(t.Context(), "again", nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "again +again", seen.last())
		require.Equal(t, 6, seen.count(), "nothing is told twice")
	})
}

func TestAMemberJoinsAgainOnItsNextSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		m := election.NewGroup(a.client, group)
		_, err := m.Join(t.Context(), "a", nil)
		require.NoError(t, err)
		seen := call(t.Context(), election.NewGroup(w.member("o").client, group))
		a.link.Cut()
		time.Sleep(2 * timeout)
		require.Equal(t, "-a", seen.last())
		a.link.Heal()
		time.Sleep(2 * timeout)
		require.Equal(t, "a +a", seen.last())

		names := w.Children(group)
		require.Len(t, names, 1)
		require.NoError(t, a.client.Delete(t.Context(), framework.Join(group, names[0]), framework.AnyVersion))
		time.Sleep(timeout)
		require.Equal(t, "a +a", seen.last(), "somebody deleted its node")
		require.NoError(t, a.client.Close(t.Context()))
		time.Sleep(time.Second)
		require.Equal(t, "-a", seen.last())
		_, err = m.Join(t.Context(), "a", nil)
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

func TestAMemberIsThereOnceAndLeavesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		m := election.NewGroup(a.client, group)
		for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpCreate, zktest.OpCreateContainer} {
			w.DropReply(1, zktest.Match{Op: op})
			s, err := m.Join(t.Context(), "a", nil)
			require.NoError(t, err)
			require.Len(t, w.Children(group), 1)
			w.DropReply(1, zktest.Match{Op: zktest.OpDelete})
			require.NoError(t, s.Leave(t.Context()))
			require.Empty(t, w.Children(group))
		}
		a.link.BlackHole(false, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Join(ctx, "a", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.link.Heal()
		time.Sleep(timeout)
		require.Empty(t, w.Children(group))
	})
}

func TestLeavingDoesNotWaitForeverForItsNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		s, err := election.NewGroup(a.client, group).Join(t.Context(), "a", nil)
		require.NoError(t, err)
		a.link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, s.Leave(ctx))
		require.Equal(t, time.Second, time.Since(began))
		a.link.Heal()
		time.Sleep(timeout)
		require.Empty(t, w.Children(group))
	})
}

func TestForeignMembersAreShownByTheirNames(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.client.MakeDirs(t.Context(), group))
		require.NoError(t, a.client.Create(t.Context(), group+"/java-1", []byte("payload"), framework.Ephemeral))
		all, err := election.NewGroup(a.client, group).List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, "java-1", all[0].ID)
		require.NoError(t, a.client.Create(t.Context(), group+"/later", []byte(`{"v":9}`), framework.Ephemeral))
		_, err = election.NewGroup(a.client, group).List(t.Context())
		require.ErrorIs(t, err, election.ErrNewerRecord)
		require.ErrorContains(t, err, group+"/later")
	})
}

func TestObserversOfAGroupReadEachMemberOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const members = 20
		seen := call(t.Context(), election.NewGroup(w.member("o").client, group))
		synctest.Wait()
		m := election.NewGroup(w.member("a").client, group)
		before := w.Requests()[zktest.OpGetData]
		for i := range members {
			_, err := m.Join(t.Context(), fmt.Sprint(i), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, members+1, seen.count())
		require.EqualValues(t, 2*members, w.Requests()[zktest.OpGetData]-before, "and each its own, to watch it")
	})
}

func TestObservingAGroupCanBeLeft(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		for r, err := range election.NewGroup(a.client, group).Observe(t.Context()) {
			require.NoError(t, err)
			require.Empty(t, r.Members)
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		seen := call(ctx, election.NewGroup(a.client, group))
		synctest.Wait()
		cancel()
		<-seen.done
		require.NoError(t, seen.err)
		seen = call(t.Context(), election.NewGroup(a.client, group))
		synctest.Wait()
		require.NoError(t, a.client.Close(t.Context()))
		<-seen.done
		require.ErrorIs(t, seen.err, framework.ErrClosed)
	})
}

func TestBadMembersAreRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").client
		ok := election.NewGroup(c, group)
		for says, join := range map[string]func() (*election.Membership, error){
			"client is nil": func() (*election.Membership, error) {
				return election.NewGroup(nil, group).Join(t.Context(), "a", nil)
			},
			"the root":     func() (*election.Membership, error) { return election.NewGroup(c, "/").Join(t.Context(), "a", nil) },
			"invalid path": func() (*election.Membership, error) { return election.NewGroup(c, "x").Join(t.Context(), "a", nil) },
			"id is empty":  func() (*election.Membership, error) { return ok.Join(t.Context(), "", nil) },
			"key of \"v\"": func() (*election.Membership, error) { return ok.Join(t.Context(), "a", election.Metadata{"": "v"}) },
			"not UTF-8":    func() (*election.Membership, error) { return ok.Join(t.Context(), "a", election.Metadata{"k": "\xff"}) },
			"at most 65536": func() (*election.Membership, error) {
				return ok.Join(t.Context(), "a", election.Metadata{"k": strings.Repeat("x", 65<<10)})
			},
		} {
			_, err := join()
			require.ErrorContains(t, err, says)
		}
		_, err := election.NewGroup(nil, group).List(t.Context())
		require.ErrorContains(t, err, "client is nil")
		for _, err := range election.NewGroup(nil, group).Observe(t.Context()) {
			require.ErrorContains(t, err, "client is nil")
		}
		require.Empty(t, w.Children(group))
	})
}
