//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
)

// crossing is a script that holds a lock, waits until another script does, and asks for that one's
// lock.
func crossing(s *stage, own, other string, flags ...string) *process {
	return s.start(append([]string{"lock", own, "--", "sh", "-c",
		`own=$1 other=$2; shift 2; touch "$DIR/$own"; until [ -e "$DIR/$other" ]; do sleep 0.02; done; "$0" lock "$other" "$@" -- echo "both of $own"`,
		program, own, other}, flags...)...)
}

// TestScriptsThatWaitForEachOther: two scripts nest two locks in opposite order.
func TestScriptsThatWaitForEachOther(t *testing.T) {
	s := newStage(t)
	began := time.Now()
	scripts := map[string]*process{"a": crossing(s, "a", "b"), "b": crossing(s, "b", "a")}
	codes := map[int]string{}
	for name, p := range scripts {
		codes[p.wait()] = name
	}
	t.Logf("it took %v", time.Since(began))
	require.Len(t, codes, 2)
	require.Contains(t, codes, 0, "one goes on")
	failed, ok := codes[cli.ExitDeadlock]
	require.True(t, ok, codes)
	errs := read(scripts[failed].err)
	for _, want := range []string{"deadlock", "/lockstep/locks/a", "/lockstep/locks/b", "lockstep lock A B"} {
		require.Contains(t, errs, want)
	}
	require.Equal(t, "both of "+codes[0]+"\n", read(scripts[codes[0]].out))
	s.left()
}

// TestScriptsThatOnlyReportTheirDeadlock wait on.
func TestScriptsThatOnlyReportTheirDeadlock(t *testing.T) {
	s := newStage(t)
	scripts := []*process{crossing(s, "a", "b", "--deadlock", "report"), crossing(s, "b", "a", "--deadlock", "report")}
	s.until("one of them reports it",
		func() bool { return strings.Contains(read(scripts[0].err)+read(scripts[1].err), "found a deadlock") })
	code, out, _ := s.run("locks", "--deadlocks")
	require.Equal(t, cli.ExitFound, code)
	require.Contains(t, out, "deadlock 1: 2 holders wait for each other, and only report it\n")
	_, out, _ = s.run("locks", "--deadlocks", "--json")
	for _, one := range decode(t, out)["cycle"].([]any) {
		request := one.(map[string]any)
		_, listed, _ := s.run("locks", request["path"].(string), "--json")
		waiter := decode(t, listed)["waiters"].([]any)[0].(map[string]any)
		require.Equal(t, []any{waiter["owner"], waiter["host"], waiter["pid"]},
			[]any{request["owner"], request["host"], request["pid"]}, "the process that the list of the lock names")
	}
	code, out, _ = s.run("check")
	require.Equal(t, cli.ExitFound, code)
	require.Regexp(t,
		`^/lockstep/locks/[ab]\tdeadlock\t2 holders wait for each other, and only report it: .* holds /lockstep/locks/.*; see it with lockstep locks --deadlocks; `, out)
	require.Empty(t, read(scripts[0].out)+read(scripts[1].out), "both wait on")
	for _, p := range scripts {
		p.signal(syscall.SIGTERM) // the other one may go on now
	}
	for _, p := range scripts {
		p.wait()
	}
	code, _, errs := s.run("lock", "c", "--deadlock", "none", "--", "true")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "it must be fail, report or off")
	s.ok("lock", "c", "--deadlock", "off", "--", "true")
}

// TestAWrongDescriptionOfHeldLocksDoesNoHarm also gives one that is out of date.
func TestAWrongDescriptionOfHeldLocksDoesNoHarm(t *testing.T) {
	s := newStage(t)
	_, stale, _ := s.run("lock", "a", "--", "sh", "-c", "printf %s \"$LOCKSTEP_HELD_LOCKS\"")
	require.Contains(t, stale, `"lock":"/lockstep/locks/a"`)
	holder := s.start("lock", "b")
	holder.line(0)
	before := s.env
	for _, text := range []string{stale, "x", `[{"lock":"/lockstep/locks/b","node":"/lockstep/locks/b","zxid":9}]`} {
		s.env = append(before[:len(before):len(before)], "LOCKSTEP_HELD_LOCKS="+text)
		code, _, errs := s.run("lock", "b", "-w", "1.5", "--", "true")
		require.Equal(t, cli.ExitFound, code, errs)
		require.Equal(t, text == "x", strings.Contains(errs, "LOCKSTEP_HELD_LOCKS is ignored"), errs)
	}
	s.env = before
	holder.release()
}

// TestDeadlocksAreListed: asks that only report stay in their deadlock.
func TestDeadlocksAreListed(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("locks", "--deadlocks")
	require.Equal(t, 0, code)
	require.Empty(t, out)
	require.Contains(t, errs, "no deadlock below /lockstep/locks")
	names := []string{"/lockstep/locks/a", "/lockstep/locks/b"}
	var held []*locks.Lease
	done := make(chan *locks.Lease, 2)
	for i := range 2 {
		lease, err := locks.NewMutex(s.connected(), names[i]).Lock(t.Context())
		require.NoError(t, err)
		held = append(held, lease)
	}
	for i := range 2 {
		asking := s.connected()
		go func() {
			lease, _ := locks.NewMutex(asking, names[1-i],
				locks.WithDeadlockMode(locks.DeadlockReport)).Lock(held[i].Context())
			done <- lease
		}()
	}
	s.until("both requests are recorded", func() bool {
		return len(s.zk.Children(names[0]+"~waits")) == 1 && len(s.zk.Children(names[1]+"~waits")) == 1
	})
	code, out, _ = s.run("locks", "--deadlocks")
	require.Equal(t, 1, code)
	for _, want := range []string{"deadlock 1: 2 holders wait for each other", names[0], names[1], "HOLDS",
		"WAITS FOR"} {
		require.Contains(t, out, want)
	}
	code, out, _ = s.run("locks", "--deadlocks", "--json")
	require.Equal(t, 1, code)
	cycle := decode(t, out)["cycle"].([]any)
	require.Len(t, cycle, 2)
	require.Equal(t, cycle[0].(map[string]any)["path"], cycle[1].(map[string]any)["holds"].([]any)[0])
	code, _, _ = s.run("locks", "--deadlocks", "--waiting")
	require.Equal(t, cli.ExitUsage, code)
	require.NoError(t, held[0].Release(t.Context()))
	for range 2 { // the request under the released lease ends, and the other one is granted
		if lease := <-done; lease != nil {
			require.NoError(t, lease.Release(t.Context()))
		}
	}
	require.NoError(t, held[1].Release(t.Context()))
}

// TestTooManyRequestsAreNoProofOfNoDeadlock: the scans end at 2000 requests.
func TestTooManyRequestsAreNoProofOfNoDeadlock(t *testing.T) {
	s := newStage(t)
	c := s.connected()
	dir := "/lockstep/locks/a~waits"
	require.NoError(t, c.MakeDirs(t.Context(), dir))
	for batch := range 4 {
		var ops []framework.Op
		for i := range 500 {
			ops = append(ops, framework.CreateOp(fmt.Sprintf("%s/_c_00000000-0000-0000-0000-%012d-ask-", dir,
				500*batch+i), []byte(`{"v":1,"lock":"/lockstep/locks/a"}`), framework.Ephemeral))
		}
		_, err := c.Multi(t.Context(), ops...)
		require.NoError(t, err)
	}
	code, out, errs := s.run("locks", "--deadlocks")
	require.Equal(t, cli.ExitMismatch, code)
	require.Empty(t, out)
	require.Contains(t, errs, "more than 2000 lock requests")
	require.NotContains(t, errs, "no deadlock")
}

// connected is a client of this process.
func (s *stage) connected() *framework.Client {
	c, err := framework.New(framework.Config{Servers: strings.Split(s.servers, ",")})
	require.NoError(s.t, err)
	c.Start()
	s.t.Cleanup(func() { require.NoError(s.t, c.Close(context.Background())) })
	return c
}
