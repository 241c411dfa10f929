//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// TestANoticeThatNobodyReadsEndsNoCommand: lockstep says that others ask for the lock before it
// passes that on to the command.
func TestANoticeThatNobodyReadsEndsNoCommand(t *testing.T) {
	s := newStage(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(program, "lock", "demo", "--yield", "--", "sh", "-c",
		`exec 2>/dev/null; trap 'exit 7' TERM; : >"$DIR/ready"; while :; do sleep 0.01; done`)
	cmd.Env, cmd.Stderr = s.env, write
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	s.until("the command", func() bool { _, err := os.Stat(s.file("ready")); return err == nil })
	s.ok("revoke", "demo")
	<-ended
	require.Equal(t, 7, cmd.ProcessState.ExitCode(), "%v", cmd.ProcessState)
}

// TestACommandDoesNotGetTheCredentials, unless it needs them for its own use of lockstep.
func TestACommandDoesNotGetTheCredentials(t *testing.T) {
	s := newStage(t)
	s.env = append(s.env, framework.EnvAuth+"=ann:secret")
	command := []string{"--", "sh", "-c", `echo "<$LOCKSTEP_AUTH> $LOCKSTEP_PATH"`}
	require.Equal(t, "<> /lockstep/locks/demo\n", s.ok(append([]string{"lock", "demo"}, command...)...))
	require.Equal(t, "<ann:secret> /lockstep/locks/demo\n",
		s.ok(append([]string{"lock", "demo", "--keep-auth"}, command...)...))
}

func TestLockRunsACommand(t *testing.T) {
	s := newStage(t)
	code, out, errs := s.run("lock", "demo", "--", "sh", "-c", `echo "$LOCKSTEP_PATH $LOCKSTEP_TOKEN $1"; exit 7`, "x",
		"-n")
	require.Equal(t, 7, code)
	require.Regexp(t, `^/lockstep/locks/demo [1-9]\d* -n\n$`, out)
	require.Empty(t, errs)
	s.left()
}

func TestLockPassesStandardInputOn(t *testing.T) {
	s := newStage(t)
	require.Equal(t, 0, s.start("lock", "demo", "--", "cat").wait(), "the end of an empty input")
}

func TestLockEndsAsItsCommandDid(t *testing.T) {
	s := newStage(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143} {
		code, _, _ := s.run("lock", "demo", "--", "sh", "-c", script)
		require.Equal(t, want, code, script)
	}
}

func TestLockWithoutACommandHoldsUntilASignal(t *testing.T) {
	s := newStage(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := s.start("lock", "demo")
		fields := p.fields(0)
		require.Equal(t, "/lockstep/locks/demo", fields[0])
		require.Regexp(t, `^[1-9]\d*$`, fields[1])
		require.Len(t, s.zk.Children("/lockstep/locks/demo"), 1)
		p.signal(sig)
		require.Equal(t, 0, p.wait())
		s.left()
	}
}

func TestLockJSON(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "--json", "demo")
	v := decode(t, p.line(0))
	require.Equal(t, "/lockstep/locks/demo", v["path"])
	require.Positive(t, v["token"])
	require.Regexp(t, `^0x[0-9a-f]+$`, v["session"])
	require.Len(t, v, 3)
	p.signal(syscall.SIGINT)
	require.Equal(t, 0, p.wait())
}

func TestLockTokensRise(t *testing.T) {
	s := newStage(t)
	_, first, _ := s.run("lock", "demo", "--", "sh", "-c", "echo $LOCKSTEP_TOKEN")
	_, second, _ := s.run("lock", "demo", "--", "sh", "-c", "echo $LOCKSTEP_TOKEN")
	require.Less(t, number(t, first), number(t, second))
}

func TestLockDoesNotWait(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "demo")
	holder.line(0)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-n"}, 1},
		{[]string{"--nonblock"}, 1},
		{[]string{"-n", "-E", "33"}, 33},
		{[]string{"-n", "-E", "0"}, 0},
		{[]string{"-w", "0.1"}, 1},
		{[]string{"--wait=100ms", "--conflict-exit-code=34"}, 34},
	} {
		code, out, errs := s.run(append([]string{"lock", "demo"}, append(c.args, "--", "echo", "ran")...)...)
		require.Equal(t, c.code, code, c.args)
		require.Empty(t, out)
		require.Regexp(t,
			`^lockstep: lock /lockstep/locks/demo: not acquired( within 100ms \(-w\))?: \S+ asked for it at `, errs)
		require.Equal(t, strings.Contains(fmt.Sprint(c.args), "-w"), strings.Contains(errs, "within 100ms"), c.args)
		require.Len(t, s.zk.Children("/lockstep/locks/demo"), 1, "only the holder is left")
	}
	holder.signal(syscall.SIGTERM)
	require.Equal(t, 0, holder.wait())
	code, out, _ := s.run("lock", "demo", "-n", "--", "echo", "ran")
	require.Equal(t, 0, code)
	require.Equal(t, "ran\n", out)
}

func TestLockWaitsItsTurn(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "demo")
	holder.line(0)
	waiter := s.start("lock", "demo", "-w", "10m", "--", "echo", "ran")
	s.queue("/lockstep/locks/demo", 2)
	require.Empty(t, read(waiter.out))
	holder.signal(syscall.SIGTERM)
	require.Equal(t, 0, holder.wait())
	require.Equal(t, 0, waiter.wait())
	require.Equal(t, "ran\n", read(waiter.out))
	s.left()
}

func TestASignalEndsTheWait(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "demo")
	holder.line(0)
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		waiter := s.start("lock", "demo", "--", "echo", "ran")
		s.queue("/lockstep/locks/demo", 2)
		waiter.signal(sig)
		require.Equal(t, want, waiter.wait())
		require.Empty(t, read(waiter.out))
		require.Empty(t, read(waiter.err))
		s.queue("/lockstep/locks/demo", 1)
	}
}

func TestSignalsArePassedOnToTheCommand(t *testing.T) {
	s := newStage(t)
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 11, syscall.SIGTERM: 12, syscall.SIGHUP: 13} {
		p := s.start("lock", "demo", "--", "sh", "-c",
			`trap 'exit 11' INT; trap 'exit 12' TERM; trap 'exit 13' HUP; echo ready; while :; do sleep 0.01; done`)
		p.line(0)
		p.signal(sig)
		require.Equal(t, want, p.wait())
	}
	s.left()
}

func TestOtherSignalsGoToTheCommandToo(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c",
		`trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo winch' WINCH; trap 'exit 9' QUIT; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	waiter := s.start("lock", "demo", "--", "echo", "ran")
	s.queue("/lockstep/locks/demo", 2)
	for i, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		waiter.signal(sig)
		p.signal(sig)
		require.Equal(t, []string{"usr1", "usr2", "winch"}[i], p.line(i+1))
	}
	p.signal(syscall.SIGQUIT)
	require.Equal(t, 9, p.wait())
	require.Equal(t, 0, waiter.wait(), "without a command they do nothing")
	require.Equal(t, "ran\n", read(waiter.out))
	s.left()
}

func TestQuitEndsTheWaitWithoutGoroutines(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "demo")
	holder.line(0)
	waiter := s.start("lock", "demo", "--", "echo", "ran")
	s.queue("/lockstep/locks/demo", 2)
	waiter.signal(syscall.SIGQUIT)
	require.Equal(t, 131, waiter.wait())
	require.Empty(t, read(waiter.err))
	holder.signal(syscall.SIGQUIT)
	require.Equal(t, 0, holder.wait())
	require.Empty(t, read(holder.err))
	s.left()
}

func TestFlagsOfACommandWithoutDashes(t *testing.T) {
	s := newStage(t)
	for says, args := range map[string][]string{
		"put -- before the command":    {"lock", "a", "ls", "-l"},
		"put -- before the command if": {"elect", "a", "ls", "--color"},
		"see lockstep lock --help":     {"lock", "a", "-l", "--", "ls"},
		"see lockstep locks --help":    {"locks", "-l"},
	} {
		code, _, errs := s.run(args...)
		require.Equal(t, 64, code)
		require.Contains(t, errs, says, args)
		require.Equal(t, strings.Contains(says, "put --"), strings.Contains(errs, "put --"), errs)
	}
}

func TestACommandThatASignalEnds(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.line(0)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait())
}

func TestNamesAndRoots(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		args []string
		env  string
		node string
		path string
	}{
		{[]string{"a/b"}, "", "/lockstep/locks/a/b", "/lockstep/locks/a/b"},
		{[]string{"/apps/shop"}, "", "/apps/shop", "/apps/shop"},
		{[]string{"job", "--root", "/team"}, "", "/team/lockstep/locks/job", "/lockstep/locks/job"},
		{[]string{"/job", "--root=/team"}, "", "/team/job", "/job"},
		{[]string{"/env"}, "LOCKSTEP_ROOT=/from/env", "/from/env/env", "/env"},
		{[]string{"/flag", "--root", "/"}, "LOCKSTEP_ROOT=/from/env", "/flag", "/flag"},
	} {
		plain := s.env
		if c.env != "" {
			s.env = append(s.env[:len(s.env):len(s.env)], c.env)
		}
		p := s.start(append([]string{"lock"}, c.args...)...)
		s.env = plain
		require.Equal(t, c.path, p.fields(0)[0])
		require.Len(t, s.zk.Children(c.node), 1)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
	}
}

func TestLockSharesCuratorsLayout(t *testing.T) {
	s := newStage(t)
	s.start("lock", "/shared").line(0)
	require.Regexp(t, regexp.MustCompile(`^_c_[0-9a-f-]{36}-lock-\d{10}$`), s.zk.Children("/shared")[0])
}

func TestALockIsNoElection(t *testing.T) {
	s := newStage(t)
	leader := s.start("elect", "/shared")
	leader.line(0)
	code, _, errs := s.run("lock", "/shared")
	require.Equal(t, 65, code)
	require.Contains(t, errs, "another kind")
	require.Contains(t, errs, "use another NAME")
}

func TestHelp(t *testing.T) {
	s := newStage(t)
	for _, args := range [][]string{{}, {"--help"}, {"lock", "--help"}, {"locks", "--help"}, {"elect", "-h"},
		{"cron", "--help"}, {"dev", "--help"}} {
		code, out, errs := s.run(args...)
		require.Equal(t, 0, code)
		require.Contains(t, out, "Examples:")
		require.Empty(t, errs)
		require.NotContains(t, out, "\x1b")
		for _, line := range strings.Split(out, "\n") {
			require.LessOrEqual(t, len(line), 150, line)
		}
	}
}

func TestHelpListsEachExitCode(t *testing.T) {
	code, out, _ := newStage(t).run("--help")
	require.Equal(t, 0, code)
	for _, exit := range []int{cli.ExitNotObtained, cli.ExitDeadlock, cli.ExitUsage, cli.ExitMismatch,
		cli.ExitNoSession, cli.ExitInternal,
		cli.ExitLost, cli.ExitNoPermission, cli.ExitNotExecutable, cli.ExitNoCommand} {
		require.Regexp(t, fmt.Sprintf(`(?m)^ +%d  [a-z]`, exit), out)
	}
	require.Contains(t, out, fmt.Sprintf("%d + n if signal n has ended it", cli.ExitSignal))
}
