package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// inspectPaths inspects the queues at some paths together.
func inspectPaths(ctx context.Context, client *framework.Client,
	paths ...string) (reports []Report, unread []error, err error) {
	err = inspectMany(ctx, client, paths, func(r Report, err error) {
		reports, unread = append(reports, r), append(unread, err)
	})
	return reports, unread, err
}

func TestQueuesAreInspectedTogetherAsEachAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		client := w.Member(t, "a", config).Client
		open := func(path string, opts ...Option) *Queue[string] {
			q := New(client, path, codec.Text(), opts...)
			t.Cleanup(func() { _ = q.Close(within(t, time.Minute)) })
			return q
		}
		long, lanes, later, empty := open("/q/long", segmentSize(4)), open("/q/lanes", WithMaxAttempts(1)),
			open("/q/later"), open("/q/empty")
		for i := range 10 {
			require.NoError(t, long.Put(t.Context(), fmt.Sprint(i)))
			time.Sleep(time.Second)
		}
		for range 5 { // the first segment is empty then
			d, err := long.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Ack(t.Context()))
		}
		require.NoError(t, lanes.Put(t.Context(), "first"))
		time.Sleep(time.Minute)
		require.NoError(t, lanes.Put(t.Context(), "urgent", WithPriority(5)))
		for range 2 {
			require.NoError(t, lanes.Put(t.Context(), "poison", WithPriority(9)))
			d, err := lanes.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Nack(t.Context(), 0, errors.New("it cannot be read")))
		}
		for n := range 3 {
			require.NoError(t, later.Put(t.Context(), "later", WithDelay(time.Duration(n+1)*time.Hour)))
		}
		require.NoError(t, empty.Put(t.Context(), "x"))
		_, err := empty.Purge(t.Context())
		require.NoError(t, err)
		require.NoError(t, empty.Pause(t.Context()))
		require.NoError(t, client.MakeDirs(t.Context(), "/q/foreign/items"))
		_, err = client.Set(t.Context(), "/q/foreign", []byte("another program's"), framework.AnyVersion)
		require.NoError(t, err)

		require.NoError(t, client.MakeDirs(t.Context(), "/q/vacant/lock"))

		all, unread, err := inspectPaths(t.Context(), client, "/q/long", "/q/lanes", "/q/later", "/q/empty",
			"/q/missing", "/q/foreign", "/q", "/q/vacant")
		require.NoError(t, err)
		for i, q := range []*Queue[string]{long, lanes, later, empty, open("/q/missing")} {
			r := all[i]
			require.NoError(t, unread[i])
			alone, err := Inspect(t.Context(), client, q.Path())
			require.NoError(t, err)
			require.Equal(t, r, alone)
			counts, err := q.Counts(t.Context())
			require.NoError(t, err)
			oldest, err := q.Oldest(t.Context())
			require.NoError(t, err)
			paused, err := q.Paused(t.Context())
			require.NoError(t, err)
			require.Equal(t, Report{Path: q.Path(), Missing: q.Path() == "/q/missing", Counts: counts, Oldest: oldest,
				Paused: paused}, r)
		}
		require.Equal(t, Counts{Items: 5}, all[0].Counts)
		require.Equal(t, Counts{Items: 2, Dead: 2}, all[1].Counts)
		require.Equal(t, Counts{Delayed: 3}, all[2].Counts)
		require.True(t, all[3].Paused)
		require.ErrorIs(t, unread[5], errNotQueue)
		require.ErrorContains(t, unread[5], "/q/foreign")
		require.ErrorIs(t, unread[6], errNotQueue, "it has children and no record")
		require.Equal(t, Report{Path: "/q/vacant", Missing: true}, all[7],
			"waiters of a queue that was dropped make it again")

		_, err = Inspect(t.Context(), client, "/q/foreign")
		require.ErrorIs(t, err, errNotQueue)
		_, err = Inspect(t.Context(), client, "q")
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = Inspect(t.Context(), nil, "/q")
		require.Error(t, err)
	})
}

// TestInspectFollowsItemsThatAreTakenMeanwhile removes the first items between the list and the
// read.
func TestInspectFollowsItemsThatAreTakenMeanwhile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", segmentSize(4))
		for i := range 10 {
			a.put(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		look := w.Member(t, "look", config).Client
		_, err := look.Session(t.Context())
		require.NoError(t, err)
		oldest, err := a.Oldest(t.Context())
		require.NoError(t, err)
		reads, taken := 0, make(chan struct{})
		defer w.Observe(func(r zktest.Request) {
			if r.Op == zktest.OpMultiRead && r.Session == look.Status().SessionID {
				if reads++; reads == 5 { // the list of the first segment's items
					go func() {
						defer close(taken)
						a.drain(6)
					}()
				}
			}
		})()
		w.DelayReplies(20*time.Millisecond, zktest.Match{Session: look.Status().SessionID,
			Op: zktest.OpMultiRead})
		report, err := Inspect(t.Context(), look, testPath)
		require.NoError(t, err)
		<-taken
		require.Greater(t, reads, 6, "it reads again")
		require.Equal(t, 10, report.Items, "counted before")
		require.Equal(t, 6*time.Second, report.Oldest.Sub(oldest))
	})
}

// TestListSaysWhatItMayNotRead, stops when the loop does, and reports the errors of its arguments.
func TestListSaysWhatItMayNotRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.member("a").put("x")
		hidden := New(w.Member(t, "b",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("b:secret")}}}).Client,
			"/hidden", codec.Text())
		require.NoError(t, hidden.Put(t.Context(), "x"))
		defer hidden.Close(t.Context())
		look := w.Member(t, "look", config).Client
		_, unread, err := inspectPaths(t.Context(), look, "/hidden", testPath)
		require.NoError(t, err)
		require.ErrorIs(t, unread[0], framework.ErrNoAuth)
		require.ErrorContains(t, unread[0], "/hidden")
		reports, err := failure.Collect(List(t.Context(), look, "/"))
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "/hidden")
		require.Len(t, reports, 1)
		require.Equal(t, testPath, reports[0].Path)
		require.Equal(t, 1, reports[0].Items)
		for range List(t.Context(), look, "/") {
			break
		}
		_, err = failure.Collect(List(t.Context(), look, "q"))
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = failure.Collect(List(t.Context(), nil, "/"))
		require.Error(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = failure.Collect(List(ended, look, "/"))
		require.ErrorIs(t, err, context.Canceled)
	})
}
