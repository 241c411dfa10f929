package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// logRecorder is a log that tests read.
type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logRecorder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logRecorder) countLines(word string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), word)
}

func newTestKeeper(t *testing.T) (*Keeper, *logRecorder) {
	t.Helper()
	b := &logRecorder{}
	k := NewKeeper(Access{Servers: []string{"127.0.0.1:1"}, DialTimeout: time.Second},
		slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(k.Close)
	return k, b
}

var one = Session{Epoch: 1, ID: 1, Password: []byte{1}, Timeout: time.Second}

// watchdogPIDs returns the watchdogs among the child processes of this one.
func watchdogPIDs(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	require.NoError(t, err)
	for _, list := range lists {
		b, _ := os.ReadFile(list) // it fails if the thread has ended
		for _, pid := range strings.Fields(string(b)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if strings.HasPrefix(string(line), "lockstep watchdog of process ") {
				var n int
				_, err := fmt.Sscan(pid, &n)
				require.NoError(t, err)
				pids = append(pids, n)
			}
		}
	}
	return pids
}

func waitForArmed(t *testing.T, b *logRecorder, times int) {
	t.Helper()
	requireEventually(t, func() bool { return b.countLines(`msg="watchdog armed"`) == times })
}

func openDescriptors(t *testing.T, pid string) (to []string) {
	t.Helper()
	fds, err := filepath.Glob("/proc/" + pid + "/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil {
			to = append(to, filepath.Base(fd)+" "+target)
		}
	}
	return to
}

func TestAWatchdogInheritsNoFiles(t *testing.T) {
	t.Setenv(traceableVariable, "1")
	fd, err := syscall.Open(filepath.Join(t.TempDir(), "f"), syscall.O_CREAT|syscall.O_RDWR, 0o600) // not close-on-exec
	require.NoError(t, err)
	defer syscall.Close(fd)
	k, b := newTestKeeper(t)
	k.SetSession(one)
	waitForArmed(t, b, 1)
	pid := watchdogPIDs(t)[0]
	for _, fd := range openDescriptors(t, fmt.Sprint(pid)) {
		number, to, _ := strings.Cut(fd, " ")
		switch number {
		case "0":
			require.Contains(t, to, "socket:", fd)
		case "1", "2":
			require.Equal(t, os.DevNull, to, fd)
		default: // the watchdog itself has opened the file: an inherited file has no close-on-exec flag
			info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, number))
			require.NoError(t, err)
			var flags int
			_, err = fmt.Sscanf(string(info), "pos: %d\nflags: %o", new(int), &flags)
			require.NoError(t, err)
			require.NotZero(t, flags&syscall.O_CLOEXEC, fd)
		}
	}
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, group)
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	require.NoError(t, err)
	require.Equal(t, "/", dir)
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	require.Contains(t, string(env), socketVariable+"=")
}

// TestTheSocketCannotBeOpened by those who see its ends in /proc: neither the watchdog's, nor the
// parent's.
func TestTheSocketCannotBeOpened(t *testing.T) {
	own, watchdogs, err := newSocketPair()
	require.NoError(t, err)
	defer own.Close()
	defer watchdogs.Close()
	for _, end := range []*os.File{own, watchdogs} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY} {
			_, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", end.Fd()), flag, 0)
			require.ErrorIs(t, err, syscall.ENXIO)
		}
	}
}

func init() {
	if os.Getenv("LOCKSTEP_TEST_HARDENED") != "" {
		hardenProcess()
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Print(dumpable, err)
		os.Exit(0)
	}
}

func TestAWatchdogCannotBeTraced(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_HARDENED=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "0 <nil>", string(out))
}

// TestTheVariableMakesNoWatchdog of a process that has it from elsewhere, also where standard input
// is another socket.
func TestTheVariableMakesNoWatchdog(t *testing.T) {
	other, in, err := newSocketPair()
	require.NoError(t, err)
	defer other.Close()
	defer in.Close()
	for _, value := range []string{"1", socketNumber(int(other.Fd()))} {
		for _, stdin := range []*os.File{nil, in} {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), socketVariable+"="+value)
			if stdin != nil {
				cmd.Stdin = stdin
			}
			out, err := cmd.Output()
			require.NoError(t, err)
			require.Contains(t, string(out), "PASS", "it ran as a watchdog")
		}
	}
}

func TestSignalsDoNotEndAWatchdog(t *testing.T) {
	k, b := newTestKeeper(t)
	k.SetSession(one)
	waitForArmed(t, b, 1)
	pid := watchdogPIDs(t)[0]
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "SigIgn:")
	var mask uint64
	_, err = fmt.Sscanf(ignored, "%x", &mask)
	require.NoError(t, err)
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGPIPE, syscall.SIGTSTP,
	} {
		require.NotZero(t, mask&(1<<(s-1)), s)
		require.NoError(t, syscall.Kill(pid, s))
	}
	k.Close()
	require.Zero(t, b.countLines("has ended"))
	require.Empty(t, watchdogPIDs(t))
}

func TestAKilledWatchdogIsReplaced(t *testing.T) {
	k, b := newTestKeeper(t)
	k.SetSession(one)
	for n := range 3 {
		waitForArmed(t, b, n+1)
		require.NoError(t, syscall.Kill(watchdogPIDs(t)[0], syscall.SIGKILL))
	}
	waitForArmed(t, b, 4)
	k.Close()
	require.Empty(t, watchdogPIDs(t))
	require.Zero(t, b.countLines("level=WARN"))
}

// TestAReplacedWatchdogKnowsTheCommands: the lease of one of two commands ends while the watchdog
// is stopped. The next watchdog kills that command.
func TestAReplacedWatchdogKnowsTheCommands(t *testing.T) {
	k, b := newTestKeeper(t)
	c, other := startTestCommand(t), startTestCommand(t)
	k.SetSession(one)
	k.CommandStarted(k.BeginCommand(1), c.cmd.Process.Pid)
	k.ExtendLease(1, func() time.Duration { return time.Hour })
	waitForArmed(t, b, 1)
	first := watchdogPIDs(t)[0]
	require.NoError(t, syscall.Kill(first, syscall.SIGSTOP))
	k.CommandStarted(k.BeginCommand(2), other.cmd.Process.Pid)
	k.ExtendLease(2, func() time.Duration { return 0 })
	k.ExtendLease(1, func() time.Duration { return 0 }) // does not shorten the lease
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	other.requireGone(t)
	waitForArmed(t, b, 2)
	require.True(t, c.isRunning())
}

// TestTheClockIsReadBeforeTheLease: time passes while ExtendLease reads the rest of the lease. This
// must not move the end of the lease.
func TestTheClockIsReadBeforeTheLease(t *testing.T) {
	k, _ := newTestKeeper(t)
	id := k.BeginCommand(1)
	var read time.Duration
	k.ExtendLease(1, func() time.Duration {
		for read = leaseClock(); leaseClock() == read; { // until the clock has moved
		}
		return time.Hour
	})
	require.LessOrEqual(t, k.commands[id].leaseEnd, read+time.Hour)
}

// TestAnEarlierSessionIsNotFollowed sets the session of an earlier epoch after that of a later one.
func TestAnEarlierSessionIsNotFollowed(t *testing.T) {
	k, _ := newTestKeeper(t)
	k.startProcess = func() (*watchdogProcess, error) { return nil, ErrUnsupported }
	k.SetSession(Session{Epoch: 2, ID: 22})
	k.SetSession(Session{Epoch: 1, ID: 11})
	require.Equal(t, int64(22), k.session.ID)
	k.SetSession(Session{Epoch: 2, ID: 22, Server: "after a reconnect"})
	require.Equal(t, "after a reconnect", k.session.Server)
}

func TestStoppedWatchdogDoesNotDelayItsParent(t *testing.T) {
	k, b := newTestKeeper(t)
	k.SetSession(one)
	waitForArmed(t, b, 1)
	pid := watchdogPIDs(t)[0]
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	id := k.BeginCommand(1)
	for n := range 5000 { // more than fits into the socket
		k.ExtendLease(1, func() time.Duration { return time.Duration(n) * time.Hour })
	}
	k.CommandEnded(id)
	waitForArmed(t, b, 2)
	require.NotContains(t, watchdogPIDs(t), pid)
	require.NoError(t, syscall.Kill(watchdogPIDs(t)[0], syscall.SIGSTOP))
	k.Close()
	require.Empty(t, watchdogPIDs(t))
}

func TestCyclesLeaveNoProcessOrDescriptor(t *testing.T) {
	cycles := 100
	if os.Getenv("LOCKSTEP_WATCHDOG_CYCLES") != "" {
		_, err := fmt.Sscan(os.Getenv("LOCKSTEP_WATCHDOG_CYCLES"), &cycles)
		require.NoError(t, err)
	}
	once := func() {
		k, b := newTestKeeper(t)
		k.SetSession(one)
		waitForArmed(t, b, 1)
		k.Close()
		require.Zero(t, b.countLines("level=WARN"))
	}
	once()
	before := len(openDescriptors(t, "self"))
	for range cycles {
		once()
	}
	require.Empty(t, watchdogPIDs(t))
	require.Len(t, openDescriptors(t, "self"), before)
}

func TestCloseOfAKeeperWithoutSession(t *testing.T) {
	k, b := newTestKeeper(t)
	k.Close()
	k.Close()
	k.SetSession(one)
	require.Empty(t, watchdogPIDs(t))
	require.Zero(t, b.countLines("level="))
}

func TestUnsupportedSystemGetsOneWarning(t *testing.T) {
	for _, cause := range []error{ErrUnsupported, syscall.EPERM} {
		k, b := newTestKeeper(t)
		tries := make(chan struct{}, 3)
		k.startProcess = func() (*watchdogProcess, error) {
			select {
			case tries <- struct{}{}:
			default:
			}
			return nil, cause
		}
		k.SetSession(one)
		<-tries
		if !errors.Is(cause, ErrUnsupported) {
			<-tries
			<-tries
		}
		requireEventually(t, func() bool { return b.countLines("level=WARN") == 1 })
		k.CommandEnded(k.BeginCommand(1))
		k.Close()
		require.Equal(t, 1, b.countLines("level=WARN"))
		require.Equal(t, 1, b.countLines("free only after the session timeout"))
	}
}

func TestMainWithoutWatchdogMainIsReported(t *testing.T) {
	k, b := newTestKeeper(t)
	k.startProcess = func() (*watchdogProcess, error) {
		socket, watchdogsEnd, err := newSocketPair()
		require.NoError(t, err)
		defer watchdogsEnd.Close()
		p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
		require.NoError(t, err)
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = p.Wait() }()
		return &watchdogProcess{os: p, socket: socket, ready: make(chan struct{}), exited: gone}, nil
	}
	k.SetSession(one)
	requireEventually(t, func() bool { return b.countLines("is WatchdogMain the first call in main?") == 1 })
	k.Close()
}
