package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// book is a log that tests read.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) count(word string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), word)
}

func newTestKeeper(t *testing.T) (*Keeper, *book) {
	t.Helper()
	b := &book{}
	k := NewKeeper(Access{Servers: []string{"127.0.0.1:1"}, DialTimeout: time.Second},
		slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(k.Close)
	return k, b
}

var one = Session{Epoch: 1, ID: 1, Password: []byte{1}, Timeout: time.Second}

// watchdogs are the processes that were started as such by this one.
func watchdogs(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	require.NoError(t, err)
	for _, list := range lists {
		b, _ := os.ReadFile(list) // of a thread that has ended
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

func armed(t *testing.T, b *book, times int) {
	t.Helper()
	eventually(t, func() bool { return b.count(`msg="watchdog armed"`) == times })
}

func descriptors(t *testing.T, pid string) (to []string) {
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

func TestAWatchdogInheritsNothing(t *testing.T) {
	fd, err := syscall.Open(filepath.Join(t.TempDir(), "f"), syscall.O_CREAT|syscall.O_RDWR, 0o600) // not close-on-exec
	require.NoError(t, err)
	defer syscall.Close(fd)
	k, b := newTestKeeper(t)
	k.Follow(one)
	armed(t, b, 1)
	pid := watchdogs(t)[0]
	for _, fd := range descriptors(t, fmt.Sprint(pid)) {
		number, to, _ := strings.Cut(fd, " ")
		switch number {
		case "0", "3":
			require.Contains(t, to, "pipe:", fd)
		case "1", "2":
			require.Equal(t, os.DevNull, to, fd)
		default: // it was opened by the watchdog itself: what is inherited has lost this flag
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
	require.Contains(t, string(env), marker+"=")
}

func TestSignalsDoNotEndAWatchdog(t *testing.T) {
	k, b := newTestKeeper(t)
	k.Follow(one)
	armed(t, b, 1)
	pid := watchdogs(t)[0]
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "SigIgn:")
	var mask uint64
	_, err = fmt.Sscanf(ignored, "%x", &mask)
	require.NoError(t, err)
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGTSTP,
	} {
		require.NotZero(t, mask&(1<<(s-1)), s)
		require.NoError(t, syscall.Kill(pid, s))
	}
	k.Close()
	require.Zero(t, b.count("has ended"))
	require.Empty(t, watchdogs(t))
}

func TestAKilledWatchdogIsReplaced(t *testing.T) {
	k, b := newTestKeeper(t)
	k.Follow(one)
	for n := range 3 {
		armed(t, b, n+1)
		require.NoError(t, syscall.Kill(watchdogs(t)[0], syscall.SIGKILL))
	}
	armed(t, b, 4)
	k.Close()
	require.Empty(t, watchdogs(t))
	require.Zero(t, b.count("level=WARN"))
}

// TestAReplacedWatchdogKnowsTheCommands has one command's lease end while the watchdog is stopped, and kills that.
func TestAReplacedWatchdogKnowsTheCommands(t *testing.T) {
	k, b := newTestKeeper(t)
	c, other := start(t), start(t)
	k.Follow(one)
	k.Runs(k.Begin(1), c.cmd.Process.Pid)
	k.Lease(1, func() time.Duration { return time.Hour })
	armed(t, b, 1)
	first := watchdogs(t)[0]
	require.NoError(t, syscall.Kill(first, syscall.SIGSTOP))
	k.Runs(k.Begin(2), other.cmd.Process.Pid)
	k.Lease(2, func() time.Duration { return 0 })
	k.Lease(1, func() time.Duration { return 0 }) // a lease never becomes shorter
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	other.gone(t)
	armed(t, b, 2)
	require.True(t, c.runs())
}

// TestTheClockIsReadBeforeTheLease lets time pass while the rest of the lease is read: the lease that is told must not end later for that.
func TestTheClockIsReadBeforeTheLease(t *testing.T) {
	k, _ := newTestKeeper(t)
	id := k.Begin(1)
	var read time.Duration
	k.Lease(1, func() time.Duration {
		for read = now(); now() == read; { // until the clock has moved
		}
		return time.Hour
	})
	require.LessOrEqual(t, k.commands[id].until, read+time.Hour)
}

// TestAnEarlierSessionIsNotFollowed follows the session of an earlier epoch after that of a later one.
func TestAnEarlierSessionIsNotFollowed(t *testing.T) {
	k, _ := newTestKeeper(t)
	k.launch = func() (*process, error) { return nil, ErrUnsupported }
	k.Follow(Session{Epoch: 2, ID: 22})
	k.Follow(Session{Epoch: 1, ID: 11})
	require.Equal(t, int64(22), k.session.ID)
	k.Follow(Session{Epoch: 2, ID: 22, Server: "after a reconnect"})
	require.Equal(t, "after a reconnect", k.session.Server)
}

func TestAStoppedWatchdogDelaysNobody(t *testing.T) {
	k, b := newTestKeeper(t)
	k.Follow(one)
	armed(t, b, 1)
	pid := watchdogs(t)[0]
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	id := k.Begin(1)
	for n := range 5000 { // more than its pipe can hold
		k.Lease(1, func() time.Duration { return time.Duration(n) * time.Hour })
	}
	k.Over(id)
	armed(t, b, 2)
	require.NotContains(t, watchdogs(t), pid)
	require.NoError(t, syscall.Kill(watchdogs(t)[0], syscall.SIGSTOP))
	k.Close()
	require.Empty(t, watchdogs(t))
}

func TestCyclesLeaveNothing(t *testing.T) {
	cycles := 100
	if os.Getenv("LOCKSTEP_WATCHDOG_CYCLES") != "" {
		_, err := fmt.Sscan(os.Getenv("LOCKSTEP_WATCHDOG_CYCLES"), &cycles)
		require.NoError(t, err)
	}
	once := func() {
		k, b := newTestKeeper(t)
		k.Follow(one)
		armed(t, b, 1)
		k.Close()
		require.Zero(t, b.count("level=WARN"))
	}
	once()
	before := len(descriptors(t, "self"))
	for range cycles {
		once()
	}
	require.Empty(t, watchdogs(t))
	require.Len(t, descriptors(t, "self"), before)
}

func TestAKeeperThatNeverBeganCloses(t *testing.T) {
	k, b := newTestKeeper(t)
	k.Close()
	k.Close()
	k.Follow(one)
	require.Empty(t, watchdogs(t))
	require.Zero(t, b.count("level="))
}

func TestWhereThereCanBeNoneThereIsOneWarning(t *testing.T) {
	for _, cause := range []error{ErrUnsupported, syscall.EPERM} {
		k, b := newTestKeeper(t)
		tries := make(chan struct{}, 3)
		k.launch = func() (*process, error) {
			select {
			case tries <- struct{}{}:
			default:
			}
			return nil, cause
		}
		k.Follow(one)
		<-tries
		if !errors.Is(cause, ErrUnsupported) {
			<-tries
			<-tries
		}
		eventually(t, func() bool { return b.count("level=WARN") == 1 })
		k.Over(k.Begin(1))
		k.Close()
		require.Equal(t, 1, b.count("level=WARN"))
		require.Equal(t, 1, b.count("free only after the session timeout"))
	}
}

func TestAMainThatIsNoWatchdogIsNamed(t *testing.T) {
	k, b := newTestKeeper(t)
	k.launch = func() (*process, error) {
		heard, pipe, err := os.Pipe()
		require.NoError(t, err)
		defer heard.Close()
		p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
		require.NoError(t, err)
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = p.Wait() }()
		return &process{os: p, pipe: pipe, ready: make(chan struct{}), gone: gone}, nil
	}
	k.Follow(one)
	eventually(t, func() bool { return b.count("is WatchdogMain the first call in main?") == 1 })
	k.Close()
}
