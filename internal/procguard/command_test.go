//go:build unix

package procguard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/clock"
)

var errLost = errors.New("lost by the test")

// endlessHold is a hold whose lease never runs out.
func endlessHold() Hold {
	return Hold{Context: context.Background(), Remaining: func() time.Duration { return time.Hour }}
}

// newLosableHold returns a hold and a function that ends it before the end of its lease. Then the
// rest of the lease is 0, as when a server has ended the session.
func newLosableHold(t *testing.T) (Hold, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	return Hold{ctx, func() time.Duration {
		if ctx.Err() != nil {
			return 0
		}
		return time.Hour
	}}, func() { cancel(errLost) }
}

// skippingClock is a clock that a test moves forward, as if this process had been stopped for that
// time.
type skippingClock struct {
	clock.Clock
	skipped atomic.Int64
}

func (c *skippingClock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.skipped.Load()) }

// shellCommand returns a command that runs a shell script. The script may write to the file $F.
func shellCommand(t *testing.T, script string) (c Command, file string) {
	file = filepath.Join(t.TempDir(), "f")
	return Command{Args: []string{"sh", "-c", script}, Env: []string{"F=" + file}, KillAfter: 10 * time.Second}, file
}

// startCommand runs the command in the background. The returned function waits for its end.
func startCommand(c Command, h Hold) (wait func() (int, error)) {
	type outcome struct {
		code int
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		code, err := c.Run(h)
		ended <- outcome{code, err}
	}()
	return func() (int, error) {
		o := <-ended
		return o.code, o.err
	}
}

// waitForLine waits until the file has a whole line, and returns it.
func waitForLine(t *testing.T, file string) string {
	t.Helper()
	var text string
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		text = string(b)
		return err == nil && strings.HasSuffix(text, "\n")
	}, time.Minute, 5*time.Millisecond)
	return strings.TrimSpace(text)
}

// waitForProcessEnd waits until there is no such process.
func waitForProcessEnd(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isZombieOrGone(n) }, 20*time.Second, 5*time.Millisecond)
}

func isZombieOrGone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 42", 42}, {"kill -TERM $$", 143}, {"kill -KILL $$", 137}} {
		cmd, _ := shellCommand(t, c.script)
		code, err := cmd.Run(endlessHold())
		require.NoError(t, err)
		require.Equal(t, c.code, code, c.script)
	}
}

func TestRunErrors(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o644))
	garbled := filepath.Join(t.TempDir(), "garbled")
	require.NoError(t, os.WriteFile(garbled, []byte("text"), 0o755))
	for _, c := range []struct {
		program string
		want    error
	}{
		{"no-such-command-here", ErrNotFound},
		{"/no/such/command", ErrNotFound},
		{plain, ErrNotExecutable},
		{t.TempDir(), ErrNotExecutable},
		{garbled, ErrNotExecutable},
	} {
		_, err := Command{Args: []string{c.program}}.Run(endlessHold())
		require.ErrorIs(t, err, c.want, c.program)
		require.ErrorContains(t, err, c.program)
	}
}

func TestWithheldVariablesAreNotInherited(t *testing.T) {
	t.Setenv("PROCGUARD_SECRET", "x")
	t.Setenv("PROCGUARD_SECRET_TOO", "y")
	cmd, file := shellCommand(t, `echo "<$PROCGUARD_SECRET> <$PROCGUARD_SECRET_TOO>" >$F`)
	cmd.Withheld = []string{"PROCGUARD_SECRET"}
	_, err := cmd.Run(endlessHold())
	require.NoError(t, err)
	require.Equal(t, "<> <y>", waitForLine(t, file))
}

func TestSignalsAreForwardedToTheGroup(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cmd, file := shellCommand(t, `sleep 1000 & echo $! >$F; trap 'exit 7' TERM; wait`)
	cmd.Signals = signals
	wait := startCommand(cmd, endlessHold())
	waitForLine(t, file)
	signals <- syscall.SIGTERM
	code, err := wait()
	require.NoError(t, err)
	require.Contains(t, []int{7, 143}, code)
	waitForProcessEnd(t, waitForLine(t, file))
}

func TestLostHoldTerminatesTheCommand(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `trap 'exit 9' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.ErrorIs(t, err, errLost)
	require.Equal(t, 9, code)
}

func TestLostHoldKillsCommandIgnoringSIGTERM(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `trap '' TERM; sleep 1000 & echo $! >$F; wait; sleep 1000`)
	cmd.KillAfter = 50 * time.Millisecond
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 137, code)
	waitForProcessEnd(t, waitForLine(t, file))
}

func TestLostHoldEndsTheGroupAfterItsLeader(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `(trap '' TERM; echo ready >$F.ready; exec sleep 1000) & echo $! >$F; wait`)
	cmd.KillAfter = 200 * time.Millisecond
	wait := startCommand(cmd, hold)
	pid := waitForLine(t, file)
	waitForLine(t, file+".ready")
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 143, code, "the shell ended by TERM")
	waitForProcessEnd(t, pid)
}

func TestEndedLeaseKillsAtOnce(t *testing.T) {
	skipping := &skippingClock{Clock: leaseClock}
	leaseClock = skipping
	t.Cleanup(func() { leaseClock = skipping.Clock })
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `trap 'echo told >$F.told' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	cmd.KillAfter = 10 * time.Minute
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	skipping.skipped.Store(int64(time.Hour))
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 137, code)
	require.NoFileExists(t, file+".told")
}

// TestNoCommandIsStartedUnderAnEndedHold: neither after the end of its context, nor after that of
// its session, which the context may show a moment later.
func TestNoCommandIsStartedUnderAnEndedHold(t *testing.T) {
	lost, lose := newLosableHold(t)
	lose()
	for _, hold := range []Hold{lost, {context.Background(), func() time.Duration { return 0 }},
		{lost.Context, endlessHold().Remaining}} {
		cmd, _ := shellCommand(t, `exit 0`)
		started := false
		cmd.Guard = func() Guard { started = true; return noGuard{} }
		_, err := cmd.Run(hold)
		require.ErrorIs(t, err, ErrHoldLost)
		require.False(t, started)
	}
}

// TestHoldThatIsLostAtTheStartTerminatesTheCommand, which has the time of KillAfter.
func TestHoldThatIsLostAtTheStartTerminatesTheCommand(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, _ := shellCommand(t, `exec sleep 1000`)
	cmd.Guard = func() Guard { lose(); return noGuard{} }
	code, err := cmd.Run(hold)
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 143, code)
}

func TestSIGTERMBeforeTheLeaseEnds(t *testing.T) {
	const killAfter = time.Minute // on a loaded machine the shell may handle the signal late
	var end atomic.Pointer[time.Time]
	hold := Hold{context.Background(), func() time.Duration {
		if e := end.Load(); e != nil {
			return max(0, time.Until(*e))
		}
		return killAfter + time.Second
	}}
	cmd, file := shellCommand(t,
		`trap 'date +%s.%N >$F.told; exit 9' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	cmd.KillAfter = killAfter
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	soon := time.Now().Add(killAfter + time.Second) // no heartbeat extends the lease from now on
	end.Store(&soon)
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.ErrorIs(t, err, errLeaseRunsOut)
	require.Equal(t, 9, code)
	told, err := strconv.ParseFloat(waitForLine(t, file+".told"), 64)
	require.NoError(t, err)
	require.Less(t, told, float64(end.Load().UnixNano())/1e9, "SIGTERM came before the end of the lease")
}

// TestSIGTERMFollowsALeaseThatBecomesShorter: a server grants a smaller session timeout while the
// command runs.
func TestSIGTERMFollowsALeaseThatBecomesShorter(t *testing.T) {
	const killAfter = time.Minute
	var isShorter atomic.Bool
	hold := Hold{context.Background(), func() time.Duration {
		if isShorter.Load() {
			return killAfter
		}
		return time.Hour
	}}
	cmd, file := shellCommand(t, `trap 'exit 9' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	cmd.KillAfter = killAfter
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	isShorter.Store(true)
	code, err := wait()
	require.ErrorIs(t, err, errLeaseRunsOut)
	require.Equal(t, 9, code)
}

func TestStoppedCommandHandlesSIGTERM(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `trap 'exit 9' TERM; echo $$ >$F; kill -STOP $$; while :; do sleep 0.01; done`)
	wait := startCommand(cmd, hold)
	waitForLine(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 9, code)
}

func TestCommandWithStdin(t *testing.T) {
	in, err := os.Open("testdata/input.txt")
	require.NoError(t, err)
	defer in.Close()
	c, file := shellCommand(t, `cat >"$F"`)
	c.Stdin = in
	code, err := c.Run(endlessHold())
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "an item", waitForLine(t, file))
}

// recordingGuard calls ended when its command has ended.
type recordingGuard struct {
	noGuard
	ended func()
}

func (g recordingGuard) Ended() { g.ended() }

// TestAGuardLastsUntilTheGroupHasEnded: the command ends by SIGTERM and its worker does not. If
// this process dies meanwhile, the guard must end the worker.
func TestAGuardLastsUntilTheGroupHasEnded(t *testing.T) {
	hold, lose := newLosableHold(t)
	cmd, file := shellCommand(t, `trap 'exit 0' TERM
		sh -c 'trap "" TERM; echo $PPID $$ >$F; exec sleep 1000' & while :; do sleep 0.01; done`)
	cmd.KillAfter = 30 * time.Minute
	var worker atomic.Int64
	workerHadEnded := make(chan bool, 1)
	cmd.Guard = func() Guard {
		return recordingGuard{ended: func() { workerHadEnded <- isZombieOrGone(int(worker.Load())) }}
	}
	wait := startCommand(cmd, hold)
	pids := strings.Fields(waitForLine(t, file))
	pid, err := strconv.Atoi(pids[1])
	require.NoError(t, err)
	worker.Store(int64(pid))
	lose()
	waitForProcessEnd(t, pids[0])
	select {
	case <-workerHadEnded:
		t.Error("the guard has ended before the group")
	case <-time.After(10 * time.Millisecond): // a guard that ends too early does so at once
	}
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	_, err = wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.True(t, <-workerHadEnded)
}
