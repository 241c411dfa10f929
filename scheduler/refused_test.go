package scheduler

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestARefusedMemberJoinsLater: the servers refuse the node of a leader that was a member before,
// until an operator grants the permission. Meanwhile the other member runs all jobs, also those of
// the leader.
func TestARefusedMemberJoinsLater(t *testing.T) {
	for name, end := range map[string]func(w *world, a *actor){
		"the session is lost": func(w *world, a *actor) {
			require.NoError(w.t,
				w.Expire(a.sessionID(w.t)))
		},
		"the node is deleted": func(w *world, a *actor) {
			node := testPath + "/members/" + a.participation.currentSession().membership.name
			require.NoError(w.t, a.client.Delete(w.t.Context(), node, framework.AnyVersion))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				all := append(spreadJobs(10, "* * * * *", quick), Job{Name: "leaders", Spec: "* * * * *", Run: quick})
				a := w.start("a", all)
				w.start("b", all)
				until(at(t, "2000-01-01T00:03:10Z"))
				require.Equal(t, "a", w.leader())
				w.setPermissions(testPath+"/members", framework.PermAll&^framework.PermCreate)
				end(w, a)
				until(at(t, "2000-01-01T00:06:30Z"))
				require.Empty(t, a.done, "it tries again")
				require.Len(t, w.Children(testPath+"/members"), 1)
				require.Equal(t, "b", w.leader(), "a member without a node does not lead")
				for job, member := range w.runners("00:05:00") {
					require.Equal(t, "b", member, job)
				}
				require.Len(t, w.runners("00:05:00"), len(all))
				w.setPermissions(testPath+"/members", framework.PermAll)
				until(at(t, "2000-01-01T00:08:30Z"))
				require.Len(t, w.Children(testPath+"/members"), 2)
				require.Contains(t, slices.Collect(maps.Values(w.runners("00:08:00"))), "a")
				require.Len(t, w.Children(testPath+"/election"), 2, "both campaign")
				a.stop()
				require.NoError(t, <-a.done)
			})
		})
	}
}

func TestTheFirstRefusalOfAMemberEndsRun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.start("a", spreadJobs(1, "* * * * *", quick))
		b := w.start("b", spreadJobs(1, "* * * * *", quick))
		b.stop()
		require.NoError(t, <-b.done)
		w.setPermissions(testPath+"/members", framework.PermAll&^framework.PermCreate)
		b.run(t)
		time.Sleep(time.Minute)
		require.NotEmpty(t, b.done)
		require.ErrorIs(t, <-b.done, framework.ErrNoAuth)
		require.Empty(t, a.done)
	})
}

// TestARefusedCandidateCampaignsLater, unless it has just begun. Its jobs of Spread run on.
func TestARefusedCandidateCampaignsLater(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := append(spreadJobs(1, "* * * * *", quick), Job{Name: "leaders", Spec: "* * * * *", Run: quick})
		a := w.start("a", all)
		until(at(t, "2000-01-01T00:03:10Z"))
		operator := w.Member(t, "operator of the election", config)
		// it keeps the container
		require.NoError(t, operator.Create(t.Context(), testPath+"/election/other", nil, framework.Persistent))
		w.setPermissions(testPath+"/election", framework.PermAll&^framework.PermCreate)
		require.NoError(t, w.Expire(a.sessionID(t)))
		until(at(t, "2000-01-01T00:05:30Z"))
		require.Empty(t, a.done, "it tries again")
		require.Equal(t, map[string]string{"j000": "a"}, w.runners("00:05:00"))
		b := w.start("b", all)
		time.Sleep(time.Minute)
		require.NotEmpty(t, b.done)
		require.ErrorIs(t, <-b.done, framework.ErrNoAuth, "it has just begun")
		w.setPermissions(testPath+"/election", framework.PermAll)
		until(at(t, "2000-01-01T00:08:30Z"))
		require.Equal(t, map[string]string{"j000": "a", "leaders": "a"}, w.runners("00:08:00"))
	})
}

// TestAMemberThatMayNotBeReadKeepsNoJobFromMoving: its node may not be read by the others, which
// move the jobs of a member that dies, and give jobs to one that joins.
func TestAMemberThatMayNotBeReadKeepsNoJobFromMoving(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := spreadJobs(30, "* * * * *", quick)
		a := w.start("a", all)
		w.start("b", all)
		secret := w.config
		secret.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		hidden := New(w.Member(t, "hidden", secret).Client, testPath, w.log.of("hidden"))
		require.NoError(t, hidden.Add(Job{Name: "hidden's own", Spec: "* * * * *", Placement: Spread, Run: quick}))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- hidden.Run(ctx) }()
		time.Sleep(time.Second)
		a.kill()
		w.start("c", all)
		until(at(t, "2000-01-01T00:01:30Z"))
		ran := w.runners("00:01:00")
		require.Equal(t, "hidden", ran["hidden's own"])
		delete(ran, "hidden's own")
		require.Len(t, ran, 30)
		require.Contains(t, slices.Collect(maps.Values(ran)), "b")
		require.Contains(t, slices.Collect(maps.Values(ran)), "c")
		stop()
		require.NoError(t, <-done)
	})
}

// TestAMemberThatMayBeReadAgainGetsItsJobs: somebody grants the permission later.
func TestAMemberThatMayBeReadAgainGetsItsJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := Job{Name: jobThatPrefers("a", "b"), Spec: "* * * * *", Placement: Spread, Run: quick}
		a, b := w.start("a", []Job{job}), w.start("b", []Job{job})
		owns := func(m *actor) bool { return m.participation.currentSession().dispatcher.owns(job.Name) }
		node := testPath + "/members/" + a.participation.currentSession().membership.name
		w.setPermissions(node, framework.PermAll&^framework.PermRead)
		require.NoError(t, b.store.announceChanges(t.Context())) // so that all descriptions are read again
		time.Sleep(time.Second)
		require.True(t, owns(b), "it does not know that the other has the job")
		require.True(t, owns(a), "it knows what it has")
		until(at(t, "2000-01-01T00:01:30Z"))
		require.Len(t, w.runners("00:01:00"), 1, "it has run once")
		w.setPermissions(node, framework.PermAll)
		time.Sleep(refusedReadAgainAfter)
		require.True(t, owns(a))
		require.False(t, owns(b))
	})
}

// TestAJobThatMayNotBeReadHidesNoChange of another job, also while its run goes on here. Once it
// may be read again, its own changes are noticed.
func TestAJobThatMayNotBeReadHidesNoChange(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		all := []Job{
			{Name: "hidden", Spec: "0 1 * * *", Run: lasting(time.Hour)},
			{Name: "removed", Spec: "0 1 * * *", Run: lasting(time.Hour)},
		}
		a, b := w.start("a", all), w.start("b", all)
		until(at(t, "2000-01-01T01:00:10Z"))
		require.Len(t, w.runners("01:00:00"), 2)
		w.setPermissions(testPath+"/jobs/hidden", framework.PermAll&^framework.PermRead)
		require.NoError(t, a.store.announceChanges(t.Context(), "hidden"))
		operator := w.member("operator", nil)
		require.NoError(t, operator.Remove(t.Context(), "removed"))
		until(at(t, "2000-01-01T01:00:20Z"))
		require.Len(t, w.log.all(EventFinished), 1)
		require.Equal(t, "removed", w.log.all(EventFinished)[0].Job)
		require.Nil(t, b.jobs.findJob("removed"))
		w.setPermissions(testPath+"/jobs/hidden", framework.PermAll)
		n, _ := w.Node(testPath + "/jobs/hidden")
		_, err := operator.client.Set(t.Context(), testPath+"/jobs/hidden",
			bytes.Replace(n.Data, []byte(`"running":[{`), []byte(`"running":[{"replace":true,`), 1),
			framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(refusedReadAgainAfter)
		require.Len(t, w.log.all(EventFinished), 2)
		require.ErrorIs(t, w.log.all(EventFinished)[1].Err, ErrReplaced)
	})
}

// TestAClaimWithRefusedDeletionGoesOnceItMay: while a run goes on, somebody takes the permission to
// write its outcome and to delete its claim. Later the run's member, or another one after an
// operator has deleted the job, may claim the next run.
func TestAClaimWithRefusedDeletionGoesOnceItMay(t *testing.T) {
	readOnly := framework.PermRead | framework.PermAdmin
	refuse := func(t *testing.T, w *world) (a *actor) {
		a = w.start("a", jobs("j", "0 * * * *", lasting(10*time.Minute)))
		until(at(t, "2000-01-01T01:00:10Z"))
		w.setPermissions(testPath+"/jobs/j", readOnly)
		until(at(t, "2000-01-01T01:30:00Z"))
		require.Len(t, w.log.all(EventFinished), 1)
		require.Len(t, w.claims("j"), 1)
		return a
	}
	t.Run("the permission is granted again", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			a := refuse(t, w)
			w.setPermissions(testPath+"/jobs/j", framework.PermAll)
			time.Sleep(time.Minute)
			require.Empty(t, w.claims("j"))
			until(at(t, "2000-01-01T02:30:00Z"))
			require.Len(t, w.log.all(EventStarted), 2)
			require.Equal(t, []string{"01:00:00 1 lost", "02:00:00 1 succeeded"}, a.outcomes(t, "j"))
		})
	})
	t.Run("the claim is of another session by then", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			refuse(t, w)
			other, err := w.Member(t, "other", config).Session(t.Context())
			require.NoError(t, err)
			job, claim := testPath+"/jobs/j", testPath+"/jobs/j/"+w.claims("j")[0]
			w.setPermissions(job, framework.PermAll)
			_, err = other.Multi(t.Context(),
				framework.DeleteOp(claim, framework.AnyVersion), framework.DeleteOp(job, framework.AnyVersion),
				framework.CreateOp(job, []byte(`{"v":1,"spec":"0 * * * *","zone":"UTC"}`), framework.Persistent),
				framework.CreateOp(claim, nil, framework.Ephemeral))
			require.NoError(t, err)
			time.Sleep(time.Minute)
			require.Len(t, w.claims("j"), 1)
		})
	})
}

// TestAWithdrawalIsAnnouncedOnceItMayBe: the other member learns of it when an operator has granted
// the permission, and then runs the job.
func TestAWithdrawalIsAnnouncedOnceItMayBe(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := Job{Name: jobThatPrefers("a", "b"), Spec: "* * * * *", Placement: Spread, Run: quick}
		a := w.start("a", []Job{job})
		w.start("b", []Job{job})
		until(at(t, "2000-01-01T00:01:10Z"))
		w.setPermissions(testPath+"/changes", framework.PermAll&^framework.PermWrite)
		require.NoError(t, a.Withdraw(job.Name))
		until(at(t, "2000-01-01T00:03:10Z"))
		w.setPermissions(testPath+"/changes", framework.PermAll)
		until(at(t, "2000-01-01T00:04:10Z"))
		require.Equal(t, map[string]string{job.Name: "a"}, w.runners("00:01:00"))
		require.Equal(t, map[string]string{job.Name: "b"}, w.runners("00:04:00"))
	})
}
