package locks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	itemqueue "github.com/lockstep-go/lockstep/queue" // queue is a function of these tests
	"github.com/lockstep-go/lockstep/zktest"
)

// survey returns what is found below a path, as "path kind" or an error's text.
func survey(t *testing.T, c *framework.Client, root string) (found []string) {
	t.Helper()
	for r, err := range locks.List(t.Context(), c, root) {
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		found = append(found, fmt.Sprint(r.Path, " ", r.Kind))
	}
	return found
}

func TestSurvey(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		for _, locker := range []locks.Locker{
			locks.NewMutex(a, "/z"), locks.NewMutex(a, "/team/deploy"), locks.NewMutex(a, "/team/deploy/nested/lock"),
			locks.NewMutex(b, "/team/locks"),
			locks.NewRWLock(a, "/team/catalogue").RLocker(), locks.NewSemaphore(b, "/team/pool", 2),
			locks.NewClaim(b, "/team/claim"),
		} {
			_, err := locker.Lock(t.Context())
			require.NoError(t, err)
		}
		put(t, a, "/team/data/file", "text", framework.Persistent)
		put(t, a, "/team/e/_c_1-latch-0000000001", "me", framework.Ephemeral)
		put(t, a, "/team/e~waiting/_c_2-p0", "me", framework.Ephemeral) // no claim

		team := []string{
			"/team/catalogue read-write", "/team/claim claim", "/team/deploy mutex", "/team/deploy/nested/lock mutex",
			"/team/e election", "/team/locks mutex", "/team/pool semaphore",
		}
		require.Equal(t, team, survey(t, b, "/team"))
		require.Equal(t, append(team, "/z mutex"), survey(t, b, "/"))
		require.Equal(t, []string{"/z mutex"}, survey(t, b, "/z"), "the root itself")
		require.Empty(t, survey(t, b, "/team/data"))
		require.Empty(t, survey(t, b, "/none"))
		synctest.Wait()
		require.Len(t, w.zk.Watches(), 1, "the claim's own")

		for r, err := range locks.List(t.Context(), b, "/") {
			require.NoError(t, err)
			require.Equal(t, "/team/catalogue", r.Path)
			break
		}
	})
}

func TestASurveyDoesNotDescendIntoContenders(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a").Client
		lock(t, a)
		_, err := locks.NewSemaphore(a, "/pool", 3).Acquire(t.Context(), 3)
		require.NoError(t, err)
		before := w.zk.Requests()
		require.Len(t, survey(t, a, "/"), 2)
		after := w.zk.Requests()
		require.EqualValues(t, 12, after[zktest.OpMultiRead]-before[zktest.OpMultiRead],
			"a level more would be two requests more")
		require.Equal(t, before[zktest.OpExists], after[zktest.OpExists])
		require.Equal(t, before[zktest.OpGetData], after[zktest.OpGetData])
	})
}

func TestListContinuesPastForbiddenNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		cfg := config
		cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		_, err := locks.NewMutex(w.zk.Member(t, "a", cfg).Client, "/b/theirs").Lock(t.Context())
		require.NoError(t, err)
		b := w.member("b").Client
		for _, path := range []string{"/a", "/c"} {
			_, err = locks.NewMutex(b, path).Lock(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, []string{"/a mutex", "list /b: no permission", "/c mutex"}, survey(t, b, "/"))
	})
}

// TestListSkipsDeletedNodes has a lock released, and its directory deleted, between list and look.
func TestListSkipsDeletedNodes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		l := lock(t, a)
		// the fourth is the list of the directory
		f := w.zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpMultiRead})
		defer f.Cancel()
		go func() {
			time.Sleep(3*time.Second + time.Second/2)
			require.NoError(t, l.Release(context.Background()))
			require.NoError(t, a.Delete(context.Background(), path, framework.AnyVersion))
		}()
		require.Empty(t, survey(t, b, "/"))
		synctest.Wait()
	})
}

func TestTheEndOfASurvey(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		lock(t, a.Client)
		_, err := locks.NewMutex(a.Client, "/z").Lock(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		n := 0
		for r, err := range locks.List(ctx, a.Client, "/") {
			if n++; n == 1 {
				require.Equal(t, path, r.Path)
				cancel()
			}
			last = err
		}
		require.Equal(t, 2, n, "one lock, and why there are no more")
		require.ErrorIs(t, last, context.Canceled)

		for _, err := range locks.List(t.Context(), nil, "/") {
			require.ErrorContains(t, err, "client is nil")
		}
		for _, err := range locks.List(t.Context(), a.Client, "relative") {
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
	})
}

// TestAListOfManyLocksIsFewRequests has locks of a team each, and one with more waiters than are
// read at once.
func TestAListOfManyLocksIsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		s, err := w.member("a").Client.Session(t.Context())
		require.NoError(t, err)
		var want []string
		for team := range 30 {
			ops := []framework.Op{framework.CreateOp(fmt.Sprintf("/t%02d", team), nil, framework.Persistent)}
			for n := range 10 {
				dir := fmt.Sprintf("/t%02d/l%d", team, n)
				want = append(want, dir+" mutex")
				ops = append(ops, framework.CreateOp(dir, nil, framework.Persistent))
				for i := range 5 {
					ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/_c_%036d-lock-%010d", dir, i, i), nil,
						framework.Ephemeral))
				}
			}
			_, err := s.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		before := w.zk.Requests()
		require.Equal(t, want, survey(t, w.member("b").Client, "/"))
		after := w.zk.Requests()
		require.LessOrEqual(t, after[zktest.OpMultiRead]-before[zktest.OpMultiRead], int64(20))
		require.Equal(t, before[zktest.OpGetData], after[zktest.OpGetData])
	})
}

// TestAListDoesNotReadTheItemsOfAQueue has a queue that grows. Each look takes as many requests as
// the first, and finds what lies behind the queue, and locks that have the names of a queue's
// directories.
func TestAListDoesNotReadTheItemsOfAQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a").Client, w.member("b").Client
		q := itemqueue.New(a, "/jobs", codec.Bytes(), itemqueue.WithDedup(time.Hour))
		defer func() { require.NoError(t, q.Close(context.Background())) }()
		putEach := func(n int) {
			for i := range n {
				require.NoError(t, q.Put(t.Context(), nil, itemqueue.WithID(fmt.Sprint(n, "/", i))))
				require.NoError(t, q.Put(t.Context(), nil, itemqueue.WithPriority(7)))
				require.NoError(t, q.Put(t.Context(), nil, itemqueue.WithDelay(time.Duration(i+1)*time.Hour)))
			}
		}
		putEach(1)
		_, err := locks.NewMutex(a, "/team/deploy").Lock(t.Context())
		require.NoError(t, err)
		for _, path := range []string{"/team/items", "/team/items/below", "/team/dead", "/team/other/lock"} {
			_, err := locks.NewMutex(a, path).Lock(t.Context())
			require.NoError(t, err)
		}
		look := func() int64 {
			before := w.zk.Requests()
			// claims of those who put
			found := slices.DeleteFunc(survey(t, b, "/"),
				func(lock string) bool { return strings.HasPrefix(lock, "/jobs/writers/") })
			require.Equal(t, []string{"/team/dead mutex", "/team/deploy mutex", "/team/items mutex",
				"/team/items/below mutex", "/team/other/lock mutex"}, found)
			after := w.zk.Requests()
			require.Equal(t, before[zktest.OpGetData], after[zktest.OpGetData])
			return after[zktest.OpMultiRead] - before[zktest.OpMultiRead]
		}
		first := look()
		putEach(300)
		require.Equal(t, first, look())
	})
}
