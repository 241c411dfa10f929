//go:build unix

package child

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
)

var errLost = errors.New("lost by the test")

// lasting is a hold that is always proven.
func lasting() Hold {
	return Hold{Context: context.Background(), Remaining: func() time.Duration { return time.Hour }}
}

// losable is a hold that the test can end, with some of its lease left.
func losable(t *testing.T, left time.Duration) (Hold, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Cleanup(func() { cancel(nil) })
	return Hold{ctx, func() time.Duration {
		if ctx.Err() != nil {
			return left
		}
		return time.Hour
	}}, func() { cancel(errLost) }
}

// sh is a shell's command; $F is a file for it to write to.
func sh(t *testing.T, script string) (c Command, file string) {
	file = filepath.Join(t.TempDir(), "f")
	return Command{Args: []string{"sh", "-c", script}, Env: []string{"F=" + file}, KillAfter: 10 * time.Second}, file
}

// begin runs the command beside the test; what it returns waits for its end.
func begin(c Command, h Hold) (wait func() (int, error)) {
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

// content waits until the file has a whole line.
func content(t *testing.T, file string) string {
	t.Helper()
	var text string
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		text = string(b)
		return err == nil && strings.HasSuffix(text, "\n")
	}, 20*time.Second, 5*time.Millisecond)
	return strings.TrimSpace(text)
}

// gone waits until there is no such process.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return zombieOrGone(n) }, 20*time.Second, 5*time.Millisecond)
}

func zombieOrGone(pid int) bool {
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
		cmd, _ := sh(t, c.script)
		code, err := cmd.Run(lasting())
		require.NoError(t, err)
		require.Equal(t, c.code, code, c.script)
	}
}

func TestWhatCannotBeRun(t *testing.T) {
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
		_, err := Command{Args: []string{c.program}}.Run(lasting())
		require.ErrorIs(t, err, c.want, c.program)
		require.ErrorContains(t, err, c.program)
	}
}

func TestSignalsArePassedToTheGroup(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cmd, file := sh(t, `sleep 1000 & echo $! >$F; trap 'exit 7' TERM; wait`)
	cmd.Signals = signals
	wait := begin(cmd, lasting())
	content(t, file)
	signals <- syscall.SIGTERM
	code, err := wait()
	require.NoError(t, err)
	require.Contains(t, []int{7, 143}, code)
	gone(t, content(t, file))
}

func TestALostHoldTermsTheCommand(t *testing.T) {
	hold, lose := losable(t, time.Hour)
	cmd, file := sh(t, `trap 'exit 9' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	wait := begin(cmd, hold)
	content(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.ErrorIs(t, err, errLost)
	require.Equal(t, 9, code)
}

func TestALostHoldKillsWhatIgnoresTerm(t *testing.T) {
	hold, lose := losable(t, time.Hour)
	cmd, file := sh(t, `trap '' TERM; sleep 1000 & echo $! >$F; wait; sleep 1000`)
	cmd.KillAfter = 50 * time.Millisecond
	wait := begin(cmd, hold)
	content(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 137, code)
	gone(t, content(t, file))
}

func TestWhatItsParentLeftBehindIsEndedToo(t *testing.T) {
	hold, lose := losable(t, time.Hour)
	cmd, file := sh(t, `(trap '' TERM; echo ready >$F.ready; exec sleep 1000) & echo $! >$F; wait`)
	cmd.KillAfter = 200 * time.Millisecond
	wait := begin(cmd, hold)
	pid := content(t, file)
	content(t, file+".ready")
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 143, code, "the shell ended by TERM")
	gone(t, pid)
}

func TestALapsedHoldKillsAtOnce(t *testing.T) {
	hold, lose := losable(t, 0)
	cmd, file := sh(t, `trap 'echo told >$F.told' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	cmd.KillAfter = 10 * time.Minute
	wait := begin(cmd, hold)
	content(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 137, code)
	require.NoFileExists(t, file+".told")
}

func TestTermComesBeforeTheLeaseEnds(t *testing.T) {
	var end atomic.Pointer[time.Time]
	hold := Hold{context.Background(), func() time.Duration {
		if e := end.Load(); e != nil {
			return max(0, time.Until(*e))
		}
		return time.Second
	}}
	cmd, file := sh(t, `trap 'date +%s.%N >$F.told; exit 9' TERM; echo ready >$F; while :; do sleep 0.01; done`)
	cmd.KillAfter = 500 * time.Millisecond
	wait := begin(cmd, hold)
	content(t, file)
	soon := time.Now().Add(2 * time.Second) // no proof comes from now on
	end.Store(&soon)
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.ErrorIs(t, err, errRunningOut)
	require.Equal(t, 9, code)
	told, err := strconv.ParseFloat(content(t, file+".told"), 64)
	require.NoError(t, err)
	require.Less(t, told, float64(end.Load().UnixNano())/1e9, "told while the lease stood")
}

func TestAStoppedCommandHearsTerm(t *testing.T) {
	hold, lose := losable(t, time.Hour)
	cmd, file := sh(t, `trap 'exit 9' TERM; echo $$ >$F; kill -STOP $$; while :; do sleep 0.01; done`)
	wait := begin(cmd, hold)
	content(t, file)
	lose()
	code, err := wait()
	require.ErrorIs(t, err, ErrHoldLost)
	require.Equal(t, 9, code)
}

func TestACommandMayHaveAnotherInput(t *testing.T) {
	in, err := os.Open("testdata/input.txt")
	require.NoError(t, err)
	defer in.Close()
	c, file := sh(t, `cat >"$F"`)
	c.Stdin = in
	code, err := c.Run(lasting())
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "an item", content(t, file))
}
