package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// schedulerAt runs a scheduler at a path with jobs that run each minute, until the end of the test.
func (w *world) schedulerAt(path, name string, jobs ...Job) (stop func()) {
	w.t.Helper()
	s := New(w.Member(w.t, name, w.config).Client, path, WithGrace(0))
	for _, j := range jobs {
		require.NoError(w.t, s.Add(j))
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() {
		cancel()
		<-done
		done <- nil
	}
	w.t.Cleanup(stop)
	return stop
}

func TestListReadsSeveralSchedulersAsEachAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		blocks := func(ctx context.Context, _ Run) error { <-ctx.Done(); return ctx.Err() }
		fails := func(context.Context, Run) error { return errors.New("no disk") }
		w.schedulerAt("/a", "a1", Job{Name: "x", Spec: "* * * * *", Run: fails},
			Job{Name: "y", Spec: "* * * * *", Placement: Spread, Run: blocks})
		w.schedulerAt("/a", "a2", Job{Name: "y", Spec: "* * * * *", Placement: Spread, Run: blocks})
		stop := w.schedulerAt("/b", "b1", Job{Name: "x", Spec: "* * * * *", Run: quick})
		time.Sleep(150 * time.Second)
		stop()
		client := w.Member(t, "look", config).Client
		require.NoError(t, client.Create(t.Context(), "/a/jobs/broken", []byte("no state"), framework.Persistent))
		all, err := failure.Collect(List(t.Context(), client, "/"))
		require.ErrorIs(t, err, framework.ErrBadRecord)
		require.ErrorContains(t, err, "/a/jobs/broken")
		var names []string
		for _, r := range all {
			names = append(names, r.Path+" "+r.Name)
			one, err := New(client, r.Path).Inspect(t.Context(), r.Name)
			require.NoError(t, err)
			one.At = r.At
			require.Equal(t, one, r)
		}
		require.Equal(t, []string{"/a x", "/a y", "/b x"}, names)
		require.Equal(t, ProblemNoMember, all[2].Findings[0].Problem)
		require.Equal(t, "a1", all[0].Owner.ID)
		require.Equal(t, ProblemFailed, all[0].Findings[0].Problem)
		require.Len(t, all[1].Members, 2)
		require.Len(t, all[1].Running, 1)
		require.Empty(t, all[1].Abandoned)

		runs, err := runsOf(t.Context(), client, all...)
		require.NoError(t, err)
		for i, r := range all {
			one, err := New(client, r.Path).Runs(t.Context(), r.Name)
			require.NoError(t, err)
			require.NotEmpty(t, one)
			require.Equal(t, one, runs[i])
		}
		_, err = client.Set(t.Context(), "/b/jobs/x/past-1", []byte("no run"), framework.AnyVersion)
		require.NoError(t, err)
		runs, err = runsOf(t.Context(), client, all...)
		require.ErrorIs(t, err, framework.ErrBadRecord)
		require.Nil(t, runs[2])
		require.NotEmpty(t, runs[0])
	})
}

func TestInspectManyJobsIsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start("a", one(Job{Spec: "* * * * *", Run: quick}))
		time.Sleep(61 * time.Second)
		client := w.Member(t, "look", config).Client
		job, ok := w.Node(testPath + "/jobs/j")
		require.True(t, ok)
		for i := range 3000 {
			require.NoError(t, client.Create(t.Context(), fmt.Sprintf("%s/jobs/j%04d", testPath, i), job.Data,
				framework.Persistent))
		}
		s := New(client, testPath)
		for what, read := range map[string]func() (int, error){
			"List": func() (int, error) { all, err := failure.Collect(s.List(t.Context())); return len(all), err },
			"Jobs": func() (int, error) { all, err := s.Jobs(t.Context()); return len(all), err },
		} {
			before := w.Requests()
			n, err := read()
			require.NoError(t, err)
			require.Equal(t, 3001, n)
			after := w.Requests()
			require.LessOrEqual(t, after[zktest.OpMultiRead]-before[zktest.OpMultiRead], int64(12), what)
			require.Equal(t, before[zktest.OpGetData]+before[zktest.OpExists]+before[zktest.OpGetChildren],
				after[zktest.OpGetData]+after[zktest.OpExists]+after[zktest.OpGetChildren], what)
		}
	})
}

func TestListSaysWhatItMayNotRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.config.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		w.schedulerAt("/a", "a", Job{Name: "x", Spec: "* * * * *", Run: quick})
		w.config.Auth = nil
		w.schedulerAt("/b", "b", Job{Name: "x", Spec: "* * * * *", Run: quick})
		time.Sleep(61 * time.Second)
		client := w.Member(t, "look", config).Client
		all, err := failure.Collect(List(t.Context(), client, "/"))
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "/a")
		require.Len(t, all, 1)
		require.Equal(t, "/b", all[0].Path)
		_, err = failure.Collect(List(t.Context(), client, "b"))
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = failure.Collect(List(t.Context(), nil, "/b"))
		require.Error(t, err)
		_, err = runsOf(t.Context(), nil)
		require.Error(t, err)
	})
}

func TestAClaimThatMayNotBeReadIsThere(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		client := w.Member(t, "look", config).Client
		secret := w.Member(t, "secret",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}}).Client
		state := `{"v":1,"spec":"0 3 * * *","zone":"UTC","number":2,"fired":2,"running":[{"n":1,"id":"a","attempt":1,"runner":"a"},{"n":2,"id":"b","attempt":1,"runner":"b"}]}`
		require.NoError(t, client.MakeDirs(t.Context(), testPath+"/jobs"))
		require.NoError(t, client.Create(t.Context(), testPath+"/jobs/j", []byte(state), framework.Persistent))
		require.NoError(t, secret.Create(t.Context(), testPath+"/jobs/j/run-2", nil, framework.Ephemeral))
		r, err := New(client, testPath).Inspect(t.Context(), "j")
		require.NoError(t, err)
		require.Len(t, r.Running, 2)
		require.Len(t, r.Abandoned, 1)
		require.EqualValues(t, 1, r.Abandoned[0].Number)
	})
}

func TestJobsLeavesOutRemovedOnes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		stop := w.schedulerAt(testPath, "a", Job{Name: "x", Spec: "* * * * *", Run: quick},
			Job{Name: "y", Spec: "* * * * *", Run: quick})
		time.Sleep(time.Second)
		stop()
		s := New(w.Member(t, "look", config).Client, testPath)
		require.NoError(t, s.Remove(t.Context(), "x"))
		_, kept := w.Node(testPath + "/jobs/x")
		require.True(t, kept, "as a tombstone")
		states, err := s.Jobs(t.Context())
		require.NoError(t, err)
		require.Len(t, states, 1)
		reports, err := failure.Collect(s.List(t.Context()))
		require.NoError(t, err)
		require.Len(t, reports, 1)
	})
}
