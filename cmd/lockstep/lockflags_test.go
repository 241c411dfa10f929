//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// holds starts a lock without a command and waits until it is held.
func (s *stage) holds(args ...string) *process {
	s.t.Helper()
	p := s.start(append([]string{"lock"}, args...)...)
	p.line(0)
	return p
}

// refused runs a lock that must not be granted, and returns what it says.
func (s *stage) refused(code int, args ...string) string {
	s.t.Helper()
	got, out, errs := s.run(append(append([]string{"lock"}, args...), "--", "echo", "ran")...)
	require.Equal(s.t, code, got, errs)
	require.Empty(s.t, out)
	return errs
}

// granted runs a lock that must be granted at once.
func (s *stage) granted(args ...string) {
	s.t.Helper()
	code, out, errs := s.run(append(append([]string{"lock", "-n"}, args...), "--", "echo", "ran")...)
	require.Equal(s.t, 0, code, errs)
	require.Equal(s.t, "ran\n", out)
}

func (p *process) release() {
	p.stage.t.Helper()
	p.signal(syscall.SIGTERM)
	require.Equal(p.stage.t, 0, p.wait())
}

func TestReadersHoldTogetherAndAWriterAlone(t *testing.T) {
	s := newStage(t)
	first, second := s.holds("-s", "demo"), s.holds("--shared", "demo")
	s.granted("-s", "demo")
	errs := s.refused(1, "-x", "demo", "-n")
	require.Regexp(t, `not acquired: \S+ asked for it at [-\d: ]+, and 1 more\n`, errs)
	s.refused(33, "--exclusive", "demo", "-w", "0.1", "-E", "33")

	writer := s.start("lock", "-x", "demo")
	s.queue("/lockstep/locks/demo", 3)
	require.Contains(t, s.refused(1, "-s", "demo", "-n"), ", and 1 more; 1 waiting\n",
		"a reader does not overtake a writer")
	first.release()
	second.release()
	writer.line(0)
	s.refused(1, "-s", "demo", "-n")
	s.refused(1, "-x", "demo", "-n")
	writer.release()
	s.granted("-x", "demo")
	s.left()
}

func TestAReadWriteLockIsNoMutex(t *testing.T) {
	s := newStage(t)
	s.holds("-s", "demo")
	require.Contains(t, s.refused(65, "demo"), "another kind")
}

func TestPermits(t *testing.T) {
	s := newStage(t)
	two, one := s.holds("--permits", "3", "--count", "2", "demo"), s.holds("--permits=3", "demo")
	require.Regexp(t, `not acquired: \S+ has had it since [-\d: ]+, and 1 more\n`,
		s.refused(1, "--permits", "3", "demo", "-n"))
	s.refused(1, "--permits", "3", "demo", "-w", "100ms")
	one.release()
	s.granted("--permits", "3", "demo")
	s.refused(1, "--permits", "3", "--count", "2", "demo", "-n")
	two.release()
	s.granted("--permits", "3", "--count", "3", "demo")

	errs := s.refused(65, "--permits", "4", "demo")
	require.Contains(t, errs, "/lockstep/locks/demo has 3, the Semaphore was made with 4")
	require.Contains(t, errs, "must give the same --permits")
	s.left()
}

func TestSeveralLocksAreHeldTogetherOrNone(t *testing.T) {
	s := newStage(t)
	code, out, _ := s.run("lock", "b", "a", "/other", "--", "sh", "-c", "echo $LOCKSTEP_PATH $LOCKSTEP_TOKEN")
	require.Equal(t, 0, code)
	require.Regexp(t, `^/lockstep/locks/a,/lockstep/locks/b,/other [1-9]\d*\n$`, out)
	s.left()

	holder := s.holds("b")
	errs := s.refused(1, "a", "b", "c", "-n")
	require.Regexp(t, `not acquired\n  /lockstep/locks/b: \S+ asked for it at `, errs)
	require.NotContains(t, errs, "locks/a: ")
	s.refused(1, "a", "b", "-w", "0.2")
	require.Empty(t, s.zk.Children("/lockstep/locks/a"), "none is kept")

	waiter := s.start("lock", "b", "a", "--", "sh", "-c", `echo ready; while [ ! -e "$DIR/go" ]; do sleep 0.01; done`)
	s.queue("/lockstep/locks/b", 2)
	s.refused(1, "a", "-n")
	holder.release()
	waiter.line(0)
	s.refused(1, "a", "-n")
	s.refused(1, "b", "-n")
	touch(t, s.file("go"))
	require.Equal(t, 0, waiter.wait())
	s.left()
}

// TestMaxHoldEndsTheCommandBeforeTheNextHolds, also if the command takes some time to end.
func TestMaxHoldEndsTheCommandBeforeTheNextHolds(t *testing.T) {
	s := newStage(t)
	// long enough for the shell to set its trap on a busy machine
	p := s.start("lock", "demo", "--max-hold", "5", "--", "sh", "-c",
		`trap 'echo told; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; echo over >>"$DIR/log"; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	require.Equal(t, "ready", p.line(0))
	next := s.start("lock", "demo", "--", "sh", "-c", `echo next >>"$DIR/log"`)
	require.Equal(t, "told", p.line(1))
	s.queue("/lockstep/locks/demo", 2)
	touch(t, s.file("go"))
	require.Equal(t, 75, p.wait())
	require.Contains(t, read(p.err), "held too long")
	require.Equal(t, 0, next.wait())
	require.Equal(t, "over\nnext\n", read(s.file("log")))

	holder := s.start("lock", "demo", "--max-hold", "0.2")
	require.Equal(t, 75, holder.wait(), "without a command too")
	require.NotEmpty(t, read(holder.out))
	code, _, _ := s.run("lock", "demo", "--max-hold", "1h", "--", "sh", "-c", "exit 5")
	require.Equal(t, 5, code)
	s.left()
}

func TestProcessesCountUnderEveryKind(t *testing.T) {
	for _, args := range []string{"-x counter", "--permits 1 counter", "--permits 4 --count 3 counter",
		"counter other"} {
		t.Run(args, func(t *testing.T) {
			s := newStage(t)
			count(t, s, 6, 3, append([]string{"lock"}, strings.Fields(args)...)...)
			s.left()
		})
	}
}

// TestKazooLocksTakePart with --kazoo, as mutexes and as read-write locks.
func TestKazooLocksTakePart(t *testing.T) {
	s := newStage(t)
	client, err := framework.New(framework.Config{Servers: strings.Split(s.servers, ",")})
	require.NoError(t, err)
	client.Start()
	defer client.Close(t.Context())
	session, err := client.Session(t.Context())
	require.NoError(t, err)
	for _, kind := range []string{"", "-x", "-s"} {
		args := append(strings.Fields(kind), "demo", "-n")
		require.NoError(t, client.MakeDirs(t.Context(), "/lockstep/locks/demo"))
		node := "/lockstep/locks/demo/0123456789abcdef0123456789abcdef__lock__0000000000"
		require.NoError(t, session.Create(t.Context(), node, nil, framework.Ephemeral))
		require.Contains(t, s.refused(65, args...), "--kazoo")
		require.Contains(t, s.refused(1, append(args, "--kazoo")...), "not acquired")
		require.NoError(t, session.Delete(t.Context(), node, framework.AnyVersion))
		s.granted(append(args, "--kazoo")...)
	}
	require.Contains(t, s.refused(64, "--kazoo", "--permits", "2", "demo"), "kazoo")
}
