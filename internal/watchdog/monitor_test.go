//go:build unix

package watchdog

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testMonitor is a parentMonitor in this process, and the socket to it.
type testMonitor struct {
	t       *testing.T
	monitor *parentMonitor
	socket  *os.File
	over    chan struct{} // closed when monitorParent has returned
	arms    int           // calls of onArmed
}

func newTestMonitor(t *testing.T) *testMonitor {
	t.Helper()
	socket, watchdogsEnd, err := newSocketPair()
	require.NoError(t, err)
	k := &testMonitor{t: t, socket: socket, over: make(chan struct{})}
	k.monitor, err = newParentMonitor(int(watchdogsEnd.Fd()), func() { k.arms++ })
	require.NoError(t, err)
	t.Cleanup(func() { k.closeSocket(); watchdogsEnd.Close() })
	return k
}

// runMonitor runs monitorParent. Messages that were sent before wait in the socket, as if the
// watchdog had been stopped.
func (k *testMonitor) runMonitor() {
	go func() { defer close(k.over); k.monitor.monitorParent() }()
}

func (k *testMonitor) sendMessages(messages ...message) {
	k.t.Helper()
	for _, m := range messages {
		_, err := k.socket.Write(encodeFrame(m))
		require.NoError(k.t, err)
	}
}

// closeSocket ends the socket and waits until monitorParent has returned.
func (k *testMonitor) closeSocket() {
	k.socket.Close()
	if k.over != nil {
		<-k.over
	}
}

// requireIdentity returns the identity of a process.
func requireIdentity(t *testing.T, pid int) processIdentity {
	t.Helper()
	id, err := identifyProcess(pid)
	require.NoError(t, err)
	return id
}

// testCommand is a running command with a worker in its process group.
type testCommand struct {
	cmd    *exec.Cmd
	worker int
	ended  chan struct{}
}

func startTestCommand(t *testing.T) *testCommand {
	t.Helper()
	s := &testCommand{cmd: exec.Command("sh", "-c", "sleep 1000 & echo $!; wait"), ended: make(chan struct{})}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	var buf [32]byte
	n, err := out.Read(buf[:])
	require.NoError(t, err)
	s.worker, err = strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	require.NoError(t, err)
	go func() { defer close(s.ended); _ = s.cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); <-s.ended })
	return s
}

func (s *testCommand) isRunning() bool {
	return isProcessRunning(s.cmd.Process.Pid) && isProcessRunning(s.worker)
}

// requireGone waits until the command and its worker have ended.
func (s *testCommand) requireGone(t *testing.T) {
	t.Helper()
	requireEventually(t, func() bool { return !isProcessRunning(s.cmd.Process.Pid) && !isProcessRunning(s.worker) })
}

func isProcessRunning(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, syscall.ESRCH) { // the process has ended after the file was opened
		return false
	}
	if os.IsNotExist(err) {
		return syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(stat), ") Z ")
}

func requireEventually(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, 2*time.Millisecond)
}

func TestMonitorIsArmedOnce(t *testing.T) {
	k := newTestMonitor(t)
	k.sendMessages(Access{}, Session{ID: 1}, Session{ID: 2})
	k.runMonitor()
	k.closeSocket()
	require.Equal(t, 1, k.arms)
	require.Equal(t, int64(2), k.monitor.session.ID)
}

func TestInvalidMessageEndsTheMonitor(t *testing.T) {
	for _, b := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 4, 0, 0, 0, 99}, {0x7f, 0, 0, 0}} {
		k := newTestMonitor(t)
		_, err := k.socket.Write(b)
		require.NoError(t, err)
		k.runMonitor()
		<-k.over
		require.True(t, k.monitor.invalid)
	}
}

// TestInvalidMessageClosesNoSession: the parent that has sent it lives.
func TestInvalidMessageClosesNoSession(t *testing.T) {
	k, c := newTestMonitor(t), startTestCommand(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)},
		Session{ID: 1, Password: []byte{1}, Timeout: time.Hour})
	_, err := k.socket.Write([]byte{0, 0, 0, 4, 0, 0, 0, 99})
	require.NoError(t, err)
	k.runMonitor()
	<-k.over
	require.ErrorIs(t, k.monitor.endSessionOfDeadParent(), errMessage)
	require.True(t, c.isRunning())
}

func TestFramesMayComeInPieces(t *testing.T) {
	k := newTestMonitor(t)
	k.runMonitor()
	for _, b := range append(encodeFrame(Access{Servers: []string{"a"}}), encodeFrame(Session{ID: 7})...) {
		_, err := k.socket.Write([]byte{b})
		require.NoError(t, err)
	}
	k.closeSocket()
	require.Equal(t, []string{"a"}, k.monitor.access.Servers)
	require.Equal(t, int64(7), k.monitor.session.ID)
}

func TestACommandIsKilledAtItsLeasesEnd(t *testing.T) {
	k, c, other := newTestMonitor(t), startTestCommand(t), startTestCommand(t)
	k.runMonitor()
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)}, commandBegins{2, 2},
		commandStarted{2, requireIdentity(t, other.cmd.Process.Pid)})
	k.sendMessages(leaseExtended{2, leaseClock() + time.Hour}, leaseExtended{1, leaseClock() + 50*time.Millisecond})
	c.requireGone(t)
	require.True(t, other.isRunning(), "the other session's lease stands")
}

func TestProcessRegisteredAfterItsLeaseIsKilled(t *testing.T) {
	k, c := newTestMonitor(t), startTestCommand(t)
	k.monitor.commands[1] = &monitoredCommand{epoch: 1, leaseEnd: leaseClock(), unidentified: true, leaseEnded: true}
	k.sendMessages(commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)})
	k.runMonitor()
	c.requireGone(t)
}

// TestMessagesBeforeALeaseEndAreReadFirst: a watchdog that was stopped continues after the end of a
// lease. The socket has a message that extends the lease.
func TestMessagesBeforeALeaseEndAreReadFirst(t *testing.T) {
	for range 100 {
		k := newTestMonitor(t)
		at := leaseClock()
		k.monitor.commands[1] = &monitoredCommand{epoch: 1, leaseEnd: at - time.Second}
		// the second message does not shorten the lease
		k.sendMessages(leaseExtended{1, at + time.Hour}, leaseExtended{1, at})
		k.runMonitor()
		k.closeSocket()
		require.False(t, k.monitor.commands[1].leaseEnded)
	}
}

// TestLeaseIsNotShortened: a message with an earlier end of the lease, such as a delayed one,
// changes nothing.
func TestLeaseIsNotShortened(t *testing.T) {
	k := newTestMonitor(t)
	defer k.runMonitor()
	k.monitor.handleMessage(commandBegins{1, 1})
	k.monitor.handleMessage(leaseExtended{1, 2 * time.Hour})
	k.monitor.handleMessage(leaseExtended{1, time.Hour})
	require.Equal(t, 2*time.Hour, k.monitor.nextLeaseEnd())
	k.monitor.handleMessage(leaseExtended{1, 3 * time.Hour})
	require.Equal(t, 3*time.Hour, k.monitor.nextLeaseEnd())
}

// TestLeaseIsShortened when a server grants a smaller session timeout.
func TestLeaseIsShortened(t *testing.T) {
	k := newTestMonitor(t)
	defer k.runMonitor()
	k.monitor.handleMessage(commandBegins{1, 1})
	k.monitor.handleMessage(leaseShortened{1, time.Hour})
	require.Zero(t, k.monitor.nextLeaseEnd(), "it is not known yet")
	k.monitor.handleMessage(leaseExtended{1, 2 * time.Hour})
	k.monitor.handleMessage(leaseShortened{1, time.Hour})
	require.Equal(t, time.Hour, k.monitor.nextLeaseEnd())
}

func TestAnEndedCommandIsForgotten(t *testing.T) {
	k, c := newTestMonitor(t), startTestCommand(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)}, commandEnded{1},
		commandEnded{1}, leaseExtended{1, leaseClock()}, Session{ID: 1, Timeout: time.Second})
	k.runMonitor()
	k.closeSocket()
	require.NoError(t, k.monitor.killCommands(time.Now()))
	require.True(t, c.isRunning())
}

func TestCommandsEndWithTheirParent(t *testing.T) {
	k, c, other := newTestMonitor(t), startTestCommand(t), startTestCommand(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)}, commandBegins{2, 2},
		commandStarted{2, requireIdentity(t, other.cmd.Process.Pid)})
	k.runMonitor()
	k.closeSocket()
	require.NoError(t, k.monitor.killCommands(time.Now().Add(20*time.Second)))
	require.False(t, isProcessRunning(c.cmd.Process.Pid) || isProcessRunning(c.worker) ||
		isProcessRunning(other.cmd.Process.Pid) || isProcessRunning(other.worker))
}

// TestKnownCommandsEndBesideAnUnknownOne: they do not run on beside the next holder's, although the
// session is left to its timeout.
func TestKnownCommandsEndBesideAnUnknownOne(t *testing.T) {
	k, c := newTestMonitor(t), startTestCommand(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)}, commandBegins{2, 1})
	k.runMonitor()
	k.closeSocket()
	require.ErrorIs(t, k.monitor.killCommands(time.Now().Add(20*time.Second)), errCommandMayRun)
	require.False(t, isProcessRunning(c.cmd.Process.Pid) || isProcessRunning(c.worker))
}

func TestUnknownCommandKeepsSession(t *testing.T) {
	k := newTestMonitor(t)
	k.sendMessages(commandBegins{1, 1}, Session{ID: 1, Password: []byte{1}, Timeout: time.Hour})
	k.runMonitor()
	k.closeSocket()
	require.ErrorIs(t, k.monitor.endSessionOfDeadParent(), errCommandMayRun)
}

func TestClosedWatchdogLeavesTheSession(t *testing.T) {
	k, c := newTestMonitor(t), startTestCommand(t)
	k.sendMessages(commandBegins{1, 1}, commandStarted{1, requireIdentity(t, c.cmd.Process.Pid)},
		Session{ID: 1, Password: []byte{1}, Timeout: time.Hour}, parentCloses{})
	k.runMonitor()
	k.closeSocket()
	require.NoError(t, k.monitor.endSessionOfDeadParent())
	require.True(t, c.isRunning())
}
