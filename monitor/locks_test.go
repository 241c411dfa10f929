package monitor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/zktest"
)

// contender is the path of a contender's node.
func contender(lock string, n int) string {
	return fmt.Sprintf("%s/_c_%08d-0000-4000-8000-000000000000-lock-%010d", lock, n, n)
}

func TestManyWaiters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		for n := range 12 {
			w.put(m, contender("/app/a", n), "", framework.Ephemeral)
		}
		for n := range 11 {
			w.put(m, contender("/app/b", n), "", framework.Ephemeral)
		}
		w.watch("x", monitor.WithoutProblems(monitor.ProblemHold))
		require.Empty(t, w.news(), "one scan begins nothing")
		w.scans(1)
		require.Equal(t, []string{"x begins many waiters /app/a"}, w.news())
		require.Contains(t, w.last().Text, "11 wait")
		w.scans(10)
		require.Empty(t, w.news(), "it is reported once")
		w.remove(m, contender("/app/a", 11))
		w.scans(1)
		require.Empty(t, w.news(), "one scan ends nothing")
		w.put(m, contender("/app/a", 12), "", framework.Ephemeral)
		w.scans(1)
		w.remove(m, contender("/app/a", 12))
		w.scans(1)
		require.Empty(t, w.news(), "it does not flap")
		w.scans(1)
		require.Equal(t, []string{"x ends many waiters /app/a"}, w.news())
		require.Equal(t, 14*interval, w.last().Lasted(), "to the first of the scans without it")
		w.scans(3)
		require.Empty(t, w.news())
	})
}

func TestLongHold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		held, err := locks.NewMutex(a.Client, "/app/lock").Lock(t.Context())
		require.NoError(t, err)
		w.watch("x")
		time.Sleep(time.Hour)
		require.Empty(t, w.news(), "there is no waiter")
		next := make(chan *locks.Lease, 1)
		go func() {
			lease, _ := locks.NewMutex(b.Client, "/app/lock").Lock(t.Context())
			next <- lease
		}()
		w.scans(2)
		require.Equal(t, []string{"x begins long hold /app/lock"}, w.news())
		require.Equal(t, held.Node(), w.last().Node)
		require.NoError(t, held.Release(t.Context()))
		c := w.member("c")
		third := make(chan *locks.Lease, 1)
		go func() {
			lease, _ := locks.NewMutex(c.Client, "/app/lock").Lock(t.Context())
			third <- lease
		}()
		w.scans(2)
		require.Equal(t, []string{"x ends long hold /app/lock"}, w.news(),
			"the next holder has waited for long and held for a short time")
		w.scans(8)
		require.Empty(t, w.news())
		w.scans(4)
		require.Equal(t, []string{"x begins long hold /app/lock"}, w.news())
		require.NoError(t, (<-next).Release(t.Context()))
		require.NoError(t, (<-third).Release(t.Context()))
	})
}

func TestCandidatesAreNoWaiters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.timeout = time.Hour // heartbeats are rare
		for n := range 13 {
			m := w.member(fmt.Sprint("m", n))
			go func() { _, _ = election.New(m.Client, "/app/leader").Campaign(t.Context()) }()
		}
		w.watch("x")
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.news())
	})
}

func TestFaultyLines(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		w.put(m, contender("/app/orphan", 1), "", framework.Persistent)
		w.put(m, contender("/app/silent", 1), "__REVOKE__", framework.Ephemeral)
		w.put(m, contender("/app/mixed", 1), "", framework.Ephemeral)
		w.put(m, "/app/mixed/_c_00000002-0000-4000-8000-000000000000-latch-0000000002", "x", framework.Ephemeral)
		time.Sleep(time.Second)
		w.watch("x", monitor.WithSilentHolder(1))
		w.scans(1)
		require.Equal(t, []string{"x begins silent holder /app/silent", "x begins orphan /app/orphan",
			"x begins mixed kinds /app/mixed"}, w.news())
		w.remove(m, contender("/app/orphan", 1))
		w.remove(m, contender("/app/silent", 1))
		w.remove(m, contender("/app/mixed", 1))
		w.scans(2)
		require.Equal(t, []string{"x ends silent holder /app/silent", "x ends orphan /app/orphan",
			"x ends mixed kinds /app/mixed"}, w.news())
	})
}

// TestAHolderThatWasJustAskedIsNotSilent: it may end its work first, for as long as
// WithSilentHolder says.
func TestAHolderThatWasJustAskedIsNotSilent(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, operator := w.member("app"), w.member("operator")
		lease, err := locks.NewMutex(m.Client, "/app/lock").Lock(t.Context())
		require.NoError(t, err)
		found := func(opts ...monitor.Option) []monitor.Finding {
			report, err := monitor.Check(t.Context(), operator.Client, "/app", opts...)
			require.NoError(t, err)
			return report.Findings
		}
		time.Sleep(time.Hour) // the bound counts from the request, and not from the grant
		require.NoError(t, locks.Revoke(t.Context(), operator.Client, lease.Node()))
		asked := time.Now()
		require.Empty(t, found())
		time.Sleep(time.Until(asked.Add(time.Minute)))
		require.Empty(t, found())
		time.Sleep(time.Second)
		silent := found()
		require.Len(t, silent, 1)
		require.Equal(t, monitor.ProblemSilent, silent[0].Problem)
		require.WithinDuration(t, asked, silent[0].Since, time.Second)
		require.Empty(t, found(monitor.WithSilentHolder(time.Hour)))
		require.NoError(t, locks.Revoke(t.Context(), operator.Client, lease.Node())) // again: nothing changes
		require.Len(t, found(), 1)
		require.NoError(t, lease.Release(t.Context()))
		require.Empty(t, found())
	})
}

func TestLargeSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		for n := range 5 {
			w.put(m, contender("/app/lock", n), "", framework.Ephemeral)
		}
		w.watch("x", monitor.WithSessionBytes(5*(len(contender("/app/lock", 0))+4)-1))
		w.scans(1)
		session := m.Status().SessionID
		require.Equal(t, []string{"x begins large session " + session.String()}, w.news())
		w.remove(m, contender("/app/lock", 4))
		w.scans(2)
		require.Equal(t, []string{"x ends large session " + session.String()}, w.news())
	})
}

// TestRequestsOfAScan counts the requests of a scan of 1,000 locks.
func TestRequestsOfAScan(t *testing.T) {
	requireFewRequests(t, 1000, 5, 30)
}

func TestRequestsOfAScanOfTenThousandLocks(t *testing.T) {
	requireFewRequests(t, 10_000, 1, 300)
}

// requireFewRequests requires that two scans this many locks, with this many contenders each,
// send fewer than 2*most requests, and that they write no record.
func requireFewRequests(t *testing.T, locks, contenders int, most int64) {
	in(t, func(t *testing.T, w *world) {
		// the paths of one session's nodes would be so long together that it is a finding
		first, second := w.member("app"), w.member("app-2")
		require.NoError(t, first.MakeDirs(t.Context(), "/app/locks"))
		for dir := range locks {
			lock := fmt.Sprintf("/app/locks/l%05d", dir)
			ops := []framework.Op{framework.CreateOp(lock, nil, framework.Persistent)}
			for n := range contenders {
				ops = append(ops, framework.CreateOp(contender(lock, n), nil, framework.Ephemeral))
			}
			m := first
			if dir%2 == 1 {
				m = second
			}
			_, err := m.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		w.timeout = time.Hour // heartbeats are rare
		x := w.watch("x")
		before := x.Status().Requests
		w.scans(2)
		t.Logf("%d requests in 2 scans", x.Status().Requests-before)
		require.Less(t, x.Status().Requests-before, 2*most)
		_, recorded := w.Node(path + "/findings")
		require.False(t, recorded, "a scan without news writes no record")
		require.Empty(t, w.news())
	})
}

// crossLocks makes two holders ask for each other's lock, the second one 400 ms after the first.
// ended gets the outcome of each request.
func (w *world) crossLocks(mode locks.DeadlockMode) (first *locks.Lease, ended chan error) {
	w.t.Helper()
	a, b := w.member("a"), w.member("b")
	first, err := locks.NewMutex(a.Client, "/app/a").Lock(w.t.Context())
	require.NoError(w.t, err)
	second, err := locks.NewMutex(b.Client, "/app/b").Lock(w.t.Context())
	require.NoError(w.t, err)
	ended = make(chan error, 2)
	ask := func(m *zktest.Member, path string, outer *locks.Lease) {
		_, err := locks.NewMutex(m.Client, path, locks.WithDeadlockMode(mode)).Lock(outer.Context())
		ended <- err
	}
	go ask(a, "/app/b", first)
	time.Sleep(400 * time.Millisecond)
	go ask(b, "/app/a", second)
	return first, ended
}

// TestDeadlocksThatAreOnlyReported are a finding until one of the locks is released.
func TestDeadlocksThatAreOnlyReported(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.watch("x")
		first, ended := w.crossLocks(locks.DeadlockReport)
		w.scans(4)
		require.Equal(t, []string{"x begins deadlock /app/a"}, w.news(), "the younger ask waits for it")
		require.Regexp(t, "^2 holders wait for each other, and only report it: b .* holds /app/b and waits for "+
			"/app/a .*; a .* holds /app/a", w.last().Text)
		report, err := monitor.Check(t.Context(), w.member("c").Client, "/app",
			monitor.WithoutProblems(monitor.ProblemDeadlock))
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.NoError(t, first.Release(t.Context()))
		outcomes := []error{<-ended, <-ended}
		require.Contains(t, outcomes, nil, "the other holder has got it")
		w.scans(3)
		require.Equal(t, []string{"x ends deadlock /app/a"}, w.news())
	})
}

// TestADeadlockThatEndsIsNoFinding, also in a scan that sees it before its youngest request fails.
func TestADeadlockThatEndsIsNoFinding(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("c")
		_, ended := w.crossLocks(locks.DeadlockFail)
		// the older ask has confirmed the deadlock 50 ms ago, and the younger one scans in 100 ms
		time.Sleep(1650 * time.Millisecond)
		found, err := locks.DeadlocksAt(t.Context(), c.Client, "/app/a", "/app/b")
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Len(t, found[0].Cycle, 2)
		require.False(t, found[0].Lasting)
		report, err := monitor.Check(t.Context(), c.Client, "/app")
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		require.Empty(t, ended)
		require.ErrorIs(t, <-ended, locks.ErrDeadlock)
	})
}
