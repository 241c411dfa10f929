package watchdog

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// exhaustDescriptors opens files until this process has no file descriptor left. The returned
// function closes them.
func exhaustDescriptors(t *testing.T) (free func()) {
	var limit, low syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	low = syscall.Rlimit{Cur: 256, Max: limit.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	var open []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		open = append(open, f)
	}
	return func() {
		for _, f := range open {
			f.Close()
		}
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	}
}

// TestUnidentifiableCommandMayRun: the parent, and then the watchdog, has no file descriptor left
// to read the start of a process.
func TestUnidentifiableCommandMayRun(t *testing.T) {
	c := startTestCommand(t)
	free := exhaustDescriptors(t)
	id, err := identifyProcess(c.cmd.Process.Pid)
	mayRun := isGroupRunning(c.cmd.Process.Pid)
	free()
	require.Error(t, err)
	require.True(t, mayRun)
	_, err = openProcess(id)
	require.ErrorIs(t, err, errUnidentified)

	k := newTestMonitor(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, id})
	k.runMonitor()
	k.closeSocket()
	require.ErrorIs(t, k.monitor.killCommands(time.Now()), errCommandMayRun, "so the session is not closed")
	require.True(t, c.isRunning())
	k.monitor.handleMessage(commandEnded{1})
	require.NoError(t, k.monitor.killCommands(time.Now()))

	exact := requireIdentity(t, c.cmd.Process.Pid)
	free = exhaustDescriptors(t)
	_, err = openProcess(exact)
	free()
	require.Error(t, err)
	require.NotErrorIs(t, err, errNoSuchProcess, "the watchdog has no file descriptor left")
}

// TestProcessEndingDuringReadIsGone: the system has two errors for it.
func TestProcessEndingDuringReadIsGone(t *testing.T) {
	require.True(t, isProcessGone(&fs.PathError{Op: "open", Err: syscall.ENOENT}))
	require.True(t, isProcessGone(&fs.PathError{Op: "read", Err: syscall.ESRCH}))
	require.False(t, isProcessGone(&fs.PathError{Op: "open", Err: syscall.EMFILE}))
	require.False(t, isProcessGone(errStat))
}

func TestReusedPIDIsLeftAlone(t *testing.T) {
	c := startTestCommand(t)
	id := requireIdentity(t, c.cmd.Process.Pid)
	id.started--
	_, err := openProcess(id)
	require.ErrorIs(t, err, errNoSuchProcess)

	k := newTestMonitor(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, id}, leaseExtended{1, leaseClock()},
		Session{ID: 1, Timeout: time.Second})
	k.runMonitor()
	k.closeSocket()
	require.NoError(t, k.monitor.killCommands(time.Now()), "the command has ended")
	require.True(t, c.isRunning())
}

// TestAGroupOutlivesItsLeader kills the rest of a group whose leader has ended and was waited for.
func TestAGroupOutlivesItsLeader(t *testing.T) {
	c := startTestCommand(t)
	target, err := openProcess(requireIdentity(t, c.cmd.Process.Pid))
	require.NoError(t, err)
	defer target.closeHandle()
	require.NoError(t, syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL))
	<-c.ended
	require.False(t, target.isGroupGone())
	target.killGroup()
	requireEventually(t, target.isGroupGone)
	require.False(t, isProcessRunning(c.worker))
}

// TestAGroupOutlivesItsLeaderOnAnOldKernel, where the rest of a group cannot be signalled after its
// leader was waited for: it is not gone, so its session is not closed.
func TestAGroupOutlivesItsLeaderOnAnOldKernel(t *testing.T) {
	defer func(known int) { signalProcessGroup = known }(signalProcessGroup)
	signalProcessGroup = 1 << 30
	c := startTestCommand(t)
	target, err := openProcess(requireIdentity(t, c.cmd.Process.Pid))
	require.NoError(t, err)
	defer target.closeHandle()
	require.NoError(t, target.signalGroup(0))
	require.NoError(t, syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL))
	<-c.ended
	require.False(t, target.isGroupGone())
	require.NoError(t, syscall.Kill(c.worker, syscall.SIGKILL))
	requireEventually(t, target.isGroupGone)
}

func TestAZombieIsGone(t *testing.T) {
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}}
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, attr)
	require.NoError(t, err)
	target, err := openProcess(requireIdentity(t, p.Pid))
	require.NoError(t, err)
	defer target.closeHandle()
	require.False(t, target.isGroupGone())
	target.killGroup()
	requireEventually(t, target.isGroupGone)
	_, err = p.Wait()
	require.NoError(t, err)
	require.True(t, target.isGroupGone())
}

func TestStatsOfOddNames(t *testing.T) {
	state, group, started, err := parseStat(
		[]byte("12 (a) b (c)) S 1 77 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"))
	require.NoError(t, err)
	require.Equal(t, byte('S'), state)
	require.Equal(t, 77, group)
	require.Equal(t, int64(4711), started)
	for _, b := range []string{"", "12", "12 (a) S 1", "12 (a) S 1 x 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711"} {
		_, _, _, err := parseStat([]byte(b))
		require.ErrorIs(t, err, errStat)
	}
}
