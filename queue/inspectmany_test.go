package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestInspectAllReadsSeveralQueuesAsEachAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		client := w.Member(t, "a", config).Client
		open := func(path string, opts ...Option) *Queue[string] {
			q := New(client, path, Text(), opts...)
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

		all, err := InspectAll(t.Context(), client, "/q/long", "/q/lanes", "/q/later", "/q/empty", "/q/missing",
			"/q/foreign", "/q", "/q/vacant")
		require.NoError(t, err)
		for i, q := range []*Queue[string]{long, lanes, later, empty, open("/q/missing")} {
			r := all[i]
			require.NoError(t, r.Err)
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
		require.ErrorIs(t, all[5].Err, ErrNotQueue)
		require.ErrorContains(t, all[5].Err, "/q/foreign")
		require.ErrorIs(t, all[6].Err, ErrNotQueue, "it has children and no record")
		require.Equal(t, Report{Path: "/q/vacant", Missing: true}, all[7],
			"waiters of a queue that was dropped make it again")

		_, err = InspectAll(t.Context(), client, "q")
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		_, err = InspectAll(t.Context(), nil)
		require.Error(t, err)
	})
}

// TestInspectAllFollowsItemsThatAreTakenMeanwhile removes the first items between the list and the
// read.
func TestInspectAllFollowsItemsThatAreTakenMeanwhile(t *testing.T) {
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
		w.DelayReplies(20*time.Millisecond, zktest.Match{Session: look.Status().SessionID, Op: zktest.OpMultiRead})
		all, err := InspectAll(t.Context(), look, testPath)
		require.NoError(t, err)
		<-taken
		require.Greater(t, reads, 6, "it reads again")
		require.Equal(t, 10, all[0].Items, "counted before")
		require.Equal(t, 6*time.Second, all[0].Oldest.Sub(oldest))
	})
}

func TestInspectAllSaysWhatItMayNotRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.member("a").put("x")
		hidden := New(w.Member(t, "b",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("b:secret")}}}).Client,
			"/hidden", Text())
		require.NoError(t, hidden.Put(t.Context(), "x"))
		defer hidden.Close(t.Context())
		all, err := InspectAll(t.Context(), w.Member(t, "look", config).Client, "/hidden", testPath)
		require.NoError(t, err)
		require.ErrorIs(t, all[0].Err, framework.ErrNoAuth)
		require.ErrorContains(t, all[0].Err, "/hidden")
		require.Equal(t, 1, all[1].Items)
	})
}
