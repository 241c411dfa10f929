package locks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// inspect looks at a path and checks what holds for every report.
func inspect(t *testing.T, c *framework.Client, path string) locks.Report {
	t.Helper()
	r, err := locks.Inspect(t.Context(), c, path)
	require.NoError(t, err)
	require.Equal(t, path, r.Path)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back locks.Report
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, back, "a report can be written and read")
	return r
}

// put creates a node as another library does, with all directories.
func put(t *testing.T, c *framework.Client, node, data string, mode framework.Mode) {
	t.Helper()
	dir, _ := znode.Split(node)
	require.NoError(t, c.MakeDirs(t.Context(), dir))
	require.NoError(t, c.Create(t.Context(), node, []byte(data), mode))
}

func owners(entries []locks.Entry) (names []string) {
	for _, e := range entries {
		names = append(names, strings.TrimSpace(e.Owner+" "+e.Mode))
	}
	return names
}

func data(entries []locks.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Data)
	}
	return all
}

func TestInspectAMutex(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a").Client, w.member("b").Client, w.member("c").Client
		asked := time.Now()
		l := lock(t, a)
		time.Sleep(time.Minute)
		ask := newAsker(t)
		ask.ask("c", locks.NewMutex(c, path).Lock)
		ask.ask("b", locks.NewMutex(b, path).Lock)

		r := inspect(t, b, path)
		require.Equal(t, locks.MutexLock, r.Kind)
		require.Equal(t, []string{"a"}, owners(r.Holders))
		require.Equal(t, []string{"c", "b"}, owners(r.Waiters))
		require.Equal(t, 3, r.Count)
		require.False(t, r.Truncated)
		require.Empty(t, r.Others)

		e := r.Holders[0]
		require.Equal(t, l.Node(), e.Node)
		require.Equal(t, l.Token(), e.Token)
		require.Equal(t, l.Session(), e.Session)
		require.True(t, e.Since.Equal(asked), "the owner's own clock")
		require.Positive(t, e.PID)
		require.NotEmpty(t, e.Host)
		require.False(t, e.Foreign)
		require.Empty(t, e.Data)
		require.True(t, r.Waiters[0].Since.Equal(asked.Add(time.Minute)))
	})
}

func TestInspectReadersAndWriters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		rw := func(name string) *locks.RWLock { return locks.NewRWLock(w.member(name).Client, path) }
		observer := w.member("observer").Client
		ask := newAsker(t)
		ask.ask("r1", rw("r1").RLock)
		ask.ask("r2", rw("r2").RLock)
		writer := rw("w")
		ask.ask("w", writer.Lock)
		ask.ask("r3", rw("r3").RLock)
		r := inspect(t, observer, path)
		require.Equal(t, locks.ReadWriteLock, r.Kind)
		require.Equal(t, []string{"r1 read", "r2 read"}, owners(r.Holders))
		require.Equal(t, []string{"w write", "r3 read"}, owners(r.Waiters))

		ask.release("r1", "r2")
		require.Equal(t, []string{"r1", "r2", "w"}, ask.now())
		r = inspect(t, observer, path)
		require.Equal(t, []string{"w write"}, owners(r.Holders))
		require.Equal(t, []string{"r3 read"}, owners(r.Waiters))

		_, err := writer.RLock(ask.lease("w").Context())
		require.NoError(t, err)
		r = inspect(t, observer, path)
		require.Equal(t, []string{"w write", "w read"}, owners(r.Holders), "a reader in the writer's place")
		require.Equal(t, []string{"r3 read"}, owners(r.Waiters))

		ask.release("w")
		r = inspect(t, observer, path)
		require.Equal(t, []string{"w read", "r3 read"}, owners(r.Holders))
		require.Empty(t, r.Waiters)
	})
}

func TestInspectASemaphore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		sem := func(name string) *locks.Semaphore { return locks.NewSemaphore(w.member(name).Client, path, 3) }
		observer := w.member("observer").Client
		ask := newAsker(t)
		ask.ask("two", permitLocker(sem("two"), 2))
		ask.ask("one", sem("one").Lock)
		ask.ask("last", permitLocker(sem("last"), 3))
		r := inspect(t, observer, path)
		require.Equal(t, locks.SemaphoreLock, r.Kind)
		require.Equal(t, 3, r.Permits)
		require.Equal(t, []string{"two", "one"}, owners(r.Holders))
		require.Equal(t, []string{"last"}, owners(r.Waiters))
		require.Equal(t, 2, r.Holders[0].Permits, "granted together")
		require.Equal(t, 1, r.Holders[1].Permits)
		require.Equal(t, ask.lease("two").Node(), r.Holders[0].Node)
		require.Equal(t, 4, r.Count)
		require.Empty(t, r.Others)

		require.NoError(t, sem("two").SetLimit(t.Context(), 5))
		require.Equal(t, []string{"two", "one"}, ask.now())
		require.Equal(t, 5, inspect(t, observer, path).Permits)
		ask.release("two", "one")
		ask.release(ask.now()...)
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"permits"}, w.zk.Children(path), "the server has removed the rest")
		r = inspect(t, observer, path)
		require.Equal(t, locks.SemaphoreLock, r.Kind)
		require.Empty(t, r.Holders)
	})
}

// TestInspectSkipsDeletedNodes has the holder leave between the list and the look at its node.
func TestInspectSkipsDeletedNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b, c := w.member("a").Client, w.member("b").Client, w.member("c").Client
		l := lock(t, a)
		go lock(t, b)
		synctest.Wait()
		f := w.zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMultiRead}) // the second is the list
		defer f.Cancel()
		time.AfterFunc(time.Second+time.Second/2, func() { require.NoError(t, l.Release(context.Background())) })
		r := inspect(t, c, path)
		require.Equal(t, []string{"b"}, owners(r.Holders))
		require.Empty(t, r.Waiters)
		require.Equal(t, 2, r.Count)
	})
}

// TestInspectDeletedClaim has a claim whose data cannot be read released before its Stat is.
func TestInspectDeletedClaim(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		cfg := config
		cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		cfg.ParentACL = framework.OpenACL()
		l, err := locks.NewClaim(w.zk.Member(t, "a", cfg).Client, path).Lock(t.Context())
		require.NoError(t, err)
		b := w.member("b")
		require.Equal(t, locks.ClaimLock, inspect(t, b.Client, path).Kind)
		f := w.zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMultiRead, Session: sessionOf(t, b).ID()})
		defer f.Cancel()
		time.AfterFunc(time.Second/2, func() { require.NoError(t, l.Release(context.Background())) })
		r := inspect(t, b.Client, path)
		require.Equal(t, locks.NoLock, r.Kind)
		require.Empty(t, r.Holders)
	})
}

func TestInspectWithoutPermission(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		cfg := config
		cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		cfg.ParentACL = framework.OpenACL()
		l := lock(t, w.zk.Member(t, "a", cfg).Client)
		b := w.member("b").Client
		r := inspect(t, b, path)
		require.Equal(t, []locks.Entry{{
			Node: l.Node(), Token: l.Token(), Session: l.Session(), Since: r.Holders[0].Since,
			Hidden: true,
		}}, r.Holders, "that there is a holder can be seen")
		require.False(t, r.Holders[0].Since.IsZero())

		cfg.ParentACL = nil
		c := w.zk.Member(t, "c", cfg).Client
		_, err := locks.NewMutex(c, "/theirs/x").Lock(t.Context())
		require.NoError(t, err)
		_, err = locks.Inspect(t.Context(), b, "/theirs/x")
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "inspect /theirs/x: ")
	})
}

// TestInspectReadsSoMuchAndNoMore has more foreign children, and more of their data, than anybody
// wants to read.
func TestInspectReadsSoMuchAndNoMore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		lock(t, a)
		big := strings.Repeat("é", 50<<10)
		put(t, a, path+"/0", "x"+big, framework.Persistent)
		const most, more = 1000, 2000
		for n := range more {
			require.NoError(t, a.Create(t.Context(), fmt.Sprintf("%s/_x%d", path, n), nil, framework.Persistent))
		}
		before := w.zk.Requests()
		r := inspect(t, a, path)
		require.Equal(t, []string{"a"}, owners(r.Holders))
		require.Equal(t, more+2, r.Count)
		require.True(t, r.Truncated)
		require.Len(t, r.Others, most-1)
		after := w.zk.Requests()
		require.LessOrEqual(t, after[zktest.OpMultiRead]-before[zktest.OpMultiRead], int64(10))
		require.Equal(t, before[zktest.OpGetData], after[zktest.OpGetData])
		require.Equal(t, "x"+big[:4<<10-2], r.Others[0].Data, "cut between two characters")
	})
}

func TestInspectBadArguments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, err := locks.Inspect(t.Context(), w.member("a").Client, "relative")
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = locks.Inspect(t.Context(), nil, path)
		require.ErrorContains(t, err, "client is nil")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = locks.Inspect(ctx, w.member("a").Client, path)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestInspectLeavesNoNodesOrWatches(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		l := lock(t, w.member("a").Client)
		b := w.member("b").Client
		nodes := len(w.zk.Tree("/"))
		inspect(t, b, path)
		require.Empty(t, w.zk.Watches())
		require.Len(t, w.zk.Tree("/"), nodes)
		require.NoError(t, l.Err())
	})
}

// TestInspectOnRealServers looks at all kinds on an ensemble, from another server than their
// holders'.
func TestInspectOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	root := fmt.Sprintf("/inspect-test-%x", time.Now().UnixNano())
	member := func(name string) *framework.Client {
		c, err := framework.Connect(ctx, framework.Config{Servers: servers, Root: root, Identity: name})
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	a, b := member("a"), member("b")
	for _, locker := range []locks.Locker{
		locks.NewMutex(a, "/mutex"), locks.NewRWLock(a, "/rw").RLocker(), locks.NewSemaphore(a, "/sem", 3).Permits(2),
		locks.NewClaim(a, "/claim"),
	} {
		_, err := locker.Lock(ctx)
		require.NoError(t, err)
	}
	locker := locks.NewMultiLock(locks.NewSemaphore(b, "/sem", 3).Permits(2), locks.NewRWLock(b, "/rw").RLocker())
	asking, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { _, err := locker.Lock(asking); ended <- err }()
	wait(t, func() bool { return len(reportOf(ctx, t, b, "/sem").Waiters) == 1 })

	want := map[string]struct {
		kind             locks.LockKind
		holders, waiters []string
	}{
		"/mutex": {locks.MutexLock, []string{"a"}, nil},
		"/rw":    {locks.ReadWriteLock, []string{"a read", "b read"}, nil},
		"/sem":   {locks.SemaphoreLock, []string{"a"}, []string{"b"}},
		"/claim": {locks.ClaimLock, []string{"a"}, nil},
	}
	seen := 0
	for r, err := range locks.List(ctx, b, "/") {
		require.NoError(t, err)
		require.Equal(t, want[r.Path].kind, r.Kind, r.Path)
		require.Equal(t, want[r.Path].holders, owners(r.Holders), r.Path)
		require.Equal(t, want[r.Path].waiters, owners(r.Waiters), r.Path)
		require.Positive(t, r.Holders[0].Session)
		seen++
	}
	require.Len(t, want, seen)
	require.Equal(t, 2, reportOf(ctx, t, b, "/sem").Holders[0].Permits)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func reportOf(ctx context.Context, t *testing.T, c *framework.Client, path string) locks.Report {
	t.Helper()
	r, err := locks.Inspect(ctx, c, path)
	require.NoError(t, err)
	return r
}

// wait polls what happens on real servers.
func wait(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, 10*time.Millisecond)
}
