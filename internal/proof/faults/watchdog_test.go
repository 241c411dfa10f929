//go:build unix

package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

const (
	// longTimeout is a session timeout that no test waits for. soonerThanTimeout is well below it.
	longTimeout       = 30 * time.Second
	soonerThanTimeout = longTimeout / 2
	// minSessionTimeout is the shortest session timeout that the servers here accept.
	minSessionTimeout = 4 * time.Second
)

// TestWatchdogClosesSession ends holders' processes in different ways, on a single server and on an
// ensemble.
func TestWatchdogClosesSession(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{
			Servers: servers, Tick: 2 * time.Second, NoFsync: true, Patience: waitLimit, HeapMB: 512,
			Properties: map[string]string{ // servers answer only authenticated clients
				"zookeeper.enforce.auth.enabled": "true", "zookeeper.enforce.auth.schemes": "digest",
			},
		})}
		t.Run(fmt.Sprintf("servers=%d", servers), func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, *testEnv){
				"dead processes":       testEndOfProcess,
				"commands":             testCommandsDieFirst,
				"stopped parent":       testStoppedParent,
				"stopped watchdog":     testStoppedWatchdog,
				"killed watchdog":      testKilledWatchdog,
				"both killed":          testBothKilled,
				"inherited descriptor": testInheritedDescriptor,
				"replaced session":     testReplacedSession,
				"unreachable servers":  testUnreachableServers,
				"through another":      testCloseThroughAnotherServer,
				"late write":           testLateWrite,
				"load":                 testNoCloseUnderLoad,
			} {
				t.Run(name, func(t *testing.T) { t.Parallel(); test(t, env) })
			}
		})
	}
}

// watchedProcess is a child process that holds a lock and has a watchdog.
type watchedProcess struct {
	t            *testing.T
	cmd          *exec.Cmd
	stdin        io.WriteCloser
	lines        *bufio.Reader
	path         string
	watchdogPID  int
	token        int64
	waiterClient *framework.Client // waits for the lock
}

// startWatched starts a holder on these servers and waits until its watchdog is armed.
func startWatched(t *testing.T, env *testEnv, timeout time.Duration, servers ...string) *watchedProcess {
	t.Helper()
	holder := &watchedProcess{t: t, cmd: exec.Command(os.Args[0]), path: "/" + strings.ReplaceAll(t.Name(), "/", "-")}
	holder.cmd.Env = append(os.Environ(), watchedVariable+"=1", pathVariable+"="+holder.path,
		targetVariable+"="+holder.path+"-target",
		framework.EnvServers+"="+strings.Join(servers, ","), framework.EnvSessionTimeout+"="+timeout.String(),
		framework.EnvAuth+"="+string(credentials[0].Auth), "GORACE=atexit_sleep_ms=0")
	holder.cmd.SysProcAttr = newProcessGroup()
	var err error
	holder.stdin, err = holder.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := holder.cmd.StdoutPipe()
	require.NoError(t, err)
	holder.lines = bufio.NewReader(out)
	require.NoError(t, holder.cmd.Start())
	t.Cleanup(func() { _ = holder.cmd.Process.Kill(); _ = holder.cmd.Wait() })
	for holder.watchdogPID == 0 || holder.token == 0 {
		switch word, value := holder.readLine(); word {
		case "armed":
			holder.watchdogPID = int(parseNumber(t, value))
		case "held":
			holder.token = parseNumber(t, value)
		}
	}
	cfg := config(env.Addrs()...)
	cfg.SessionTimeout, cfg.Auth = longTimeout, credentials
	holder.waiterClient = mustConnect(t, cfg)
	return holder
}

func parseNumber(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// readLine returns the next word that the holder prints, and its value.
func (holder *watchedProcess) readLine() (word, value string) {
	holder.t.Helper()
	timer := time.AfterFunc(waitLimit, func() { _ = holder.cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	line, err := holder.lines.ReadString('\n')
	require.NoError(holder.t, err)
	word, value, _ = strings.Cut(strings.TrimSpace(line), " ")
	return word, value
}

// awaitLine reads lines until one begins with want, and returns its value.
func (holder *watchedProcess) awaitLine(want string) string {
	holder.t.Helper()
	for {
		if word, value := holder.readLine(); word == want {
			return value
		}
	}
}

func (holder *watchedProcess) order(what string) {
	holder.t.Helper()
	_, err := fmt.Fprintln(holder.stdin, what)
	require.NoError(holder.t, err)
}

func (holder *watchedProcess) signal(pid int, s syscall.Signal) {
	holder.t.Helper()
	require.NoError(holder.t, syscall.Kill(pid, s))
}

func (holder *watchedProcess) kill() { holder.signal(holder.cmd.Process.Pid, syscall.SIGKILL) }

// startWaiter waits for the lock behind the holder. The channel receives the grant.
func (holder *watchedProcess) startWaiter() <-chan *grant {
	holder.t.Helper()
	history := &lockHistory{t: holder.t, path: holder.path}
	next, err := history.startWaiter("the waiter", holder.waiterClient)
	require.NoError(holder.t, err)
	return next
}

// awaitTakeover returns the waiter's grant, which must arrive within a time.
func (holder *watchedProcess) awaitTakeover(next <-chan *grant, within time.Duration, began time.Time) *grant {
	holder.t.Helper()
	select {
	case g := <-next:
		require.NotNil(holder.t, g)
		require.Greater(holder.t, g.lease.Token(), holder.token)
		holder.t.Logf("%s: %v", holder.t.Name(), g.at.Sub(began).Round(100*time.Microsecond))
		return g
	case <-time.After(within):
		require.Fail(holder.t, "the waiter was not granted in time")
		return nil
	}
}

// requireNoTakeover fails if the waiter is granted within d.
func (holder *watchedProcess) requireNoTakeover(next <-chan *grant, d time.Duration) {
	holder.t.Helper()
	select {
	case <-next:
		require.Fail(holder.t, "the waiter was granted while the holder's session must live")
	case <-time.After(d):
	}
}

// awaitProcessEnd waits until a process has ended, or is a zombie.
func (holder *watchedProcess) awaitProcessEnd(pid int) {
	holder.t.Helper()
	eventually(holder.t, func() error { return mismatch("no process", !isRunning(pid), pid) })
}

func isRunning(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func testEndOfProcess(t *testing.T, env *testEnv) {
	for name, end := range map[string]func(*watchedProcess){
		"kill":         (*watchedProcess).kill,
		"group":        func(holder *watchedProcess) { holder.signal(-holder.cmd.Process.Pid, syscall.SIGKILL) },
		"panic":        func(holder *watchedProcess) { holder.order("panic") },
		"exit":         func(holder *watchedProcess) { holder.order("exit") },
		"main returns": func(holder *watchedProcess) { holder.stdin.Close() },
		"orderly close": func(holder *watchedProcess) {
			holder.order("close")
			require.Equal(holder.t, "<nil>", holder.awaitLine("closed"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			holder := startWatched(t, env, longTimeout, env.Addrs()...)
			next := holder.startWaiter()
			began := time.Now()
			end(holder)
			holder.awaitTakeover(next, soonerThanTimeout, began)
			holder.awaitProcessEnd(holder.watchdogPID)
		})
	}
}

// startCommand lets the holder run a registered command, and returns the command's processes.
func (holder *watchedProcess) startCommand() (pids []int) {
	holder.t.Helper()
	holder.order("command")
	for _, pid := range strings.Fields(holder.awaitLine("command")) {
		pids = append(pids, int(parseNumber(holder.t, pid)))
	}
	require.Len(holder.t, pids, 2)
	holder.t.Cleanup(func() { _ = syscall.Kill(-pids[0], syscall.SIGKILL) })
	return pids
}

func (holder *watchedProcess) requireDead(pids []int) {
	holder.t.Helper()
	for _, pid := range pids {
		require.False(holder.t, isRunning(pid), "a command is alive while the next holder holds")
	}
}

func testCommandsDieFirst(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, longTimeout, env.Addrs()...)
	pids := holder.startCommand()
	next := holder.startWaiter()
	began := time.Now()
	holder.kill()
	holder.awaitTakeover(next, soonerThanTimeout, began)
	holder.requireDead(pids)
}

// testStoppedParent stops a holder until its session has expired. The waiter must not be granted
// before, and the holder's command must be dead by then.
func testStoppedParent(t *testing.T, env *testEnv) {
	for timeout := minSessionTimeout; !stopParent(t, env, timeout); timeout *= 2 {
		// on a slow machine its lease or its session may end before
		require.Less(t, timeout, longTimeout, "the lease is extended, and the command lives")
	}
}

// stopParent returns false if the holder's command ends before the holder is stopped, or if the
// waiter is granted within half a session timeout after that: then the machine may have stalled, so
// that the servers had heard nothing for the other half.
func stopParent(t *testing.T, env *testEnv, timeout time.Duration) bool {
	holder := startWatched(t, env, timeout, env.Addrs()...)
	pids := holder.startCommand()
	wait(t, 2*timeout)
	if !isRunning(pids[0]) || !isRunning(pids[1]) {
		holder.kill()
		return false
	}
	next := holder.startWaiter()
	began := time.Now()
	require.NoError(t, stopProcess(holder.cmd.Process))
	granted := holder.awaitTakeover(next, waitLimit, began)
	holder.requireDead(pids)
	require.True(t, isRunning(holder.watchdogPID))
	if granted.at.Sub(began) < timeout/2 {
		granted.release(t.Context()) // the next holder needs it
		holder.kill()
		return false
	}
	return true
}

// testStoppedWatchdog checks that the session ends by its timeout if the watchdog is stopped, and
// that the watchdog exits when it continues.
func testStoppedWatchdog(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, minSessionTimeout, env.Addrs()...)
	next := holder.startWaiter()
	holder.signal(holder.watchdogPID, syscall.SIGSTOP)
	began := time.Now()
	holder.kill()
	holder.awaitTakeover(next, waitLimit, began)
	holder.signal(holder.watchdogPID, syscall.SIGCONT)
	holder.awaitProcessEnd(holder.watchdogPID)
}

func testKilledWatchdog(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, longTimeout, env.Addrs()...)
	next := holder.startWaiter()
	for range 3 {
		holder.signal(holder.watchdogPID, syscall.SIGKILL)
		holder.watchdogPID = int(parseNumber(t, holder.awaitLine("armed")))
	}
	began := time.Now()
	holder.kill()
	holder.awaitTakeover(next, soonerThanTimeout, began)
}

func testBothKilled(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, minSessionTimeout, env.Addrs()...)
	next := holder.startWaiter()
	require.NoError(t, stopProcess(holder.cmd.Process)) // so that it cannot restart the watchdog
	began := time.Now()
	holder.signal(holder.watchdogPID, syscall.SIGKILL)
	holder.kill()
	holder.awaitTakeover(next, waitLimit, began)
}

// testInheritedDescriptor checks that the watchdog waits until the last process that inherited the
// socket has ended.
func testInheritedDescriptor(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, longTimeout, env.Addrs()...)
	holder.order("inherit")
	heir := int(parseNumber(t, holder.awaitLine("inherited")))
	next := holder.startWaiter()
	holder.kill()
	holder.requireNoTakeover(next, 2*time.Second)
	began := time.Now()
	holder.signal(heir, syscall.SIGKILL)
	holder.awaitTakeover(next, soonerThanTimeout, began)
}

// testReplacedSession cuts the holder off until its session is lost, and kills it in the next
// session.
func testReplacedSession(t *testing.T, env *testEnv) {
	proxy := env.newProxy(t, 0)
	holder := startWatched(t, env, minSessionTimeout, proxy.Addr())
	holder.order("again")
	proxy.Cut()
	wait(t, 2*minSessionTimeout)
	proxy.Heal()
	token := parseNumber(t, holder.awaitLine("held"))
	require.Greater(t, token, holder.token)
	next := holder.startWaiter()
	began := time.Now()
	holder.kill()
	holder.awaitTakeover(next, soonerThanTimeout, began) // it takes milliseconds; the figure is logged
}

func testUnreachableServers(t *testing.T, env *testEnv) {
	proxy := env.newProxy(t, 0)
	holder := startWatched(t, env, longTimeout, proxy.Addr())
	next := holder.startWaiter()
	proxy.Cut()
	holder.kill()
	holder.requireNoTakeover(next, 2*time.Second)
	proxy.Heal()
	holder.awaitTakeover(next, soonerThanTimeout, time.Now())
}

// startWithTwoLinks starts a holder that is connected through near, and also knows far.
func startWithTwoLinks(t *testing.T, env *testEnv) (holder *watchedProcess, near, far *ensemble.Proxy) {
	near, far = env.newProxy(t, 0), env.newProxy(t, env.Size()-1)
	far.Cut()
	holder = startWatched(t, env, longTimeout, near.Addr(), far.Addr())
	far.Heal()
	return holder, near, far
}

func testCloseThroughAnotherServer(t *testing.T, env *testEnv) {
	holder, near, _ := startWithTwoLinks(t, env)
	next := holder.startWaiter()
	near.Hold(ensemble.Both)
	began := time.Now()
	holder.kill()
	holder.awaitTakeover(next, soonerThanTimeout, began)
}

// testLateWrite lets the dead holder's last write reach a server after the next holder's write. The
// servers must refuse it.
func testLateWrite(t *testing.T, env *testEnv) {
	holder, near, _ := startWithTwoLinks(t, env)
	target := holder.path + "-target"
	require.NoError(t, holder.waiterClient.Create(t.Context(), target, []byte("none"), framework.Persistent))
	next := holder.startWaiter()
	near.Hold(ensemble.Up)
	holder.order("write")
	holder.awaitLine("writing")
	eventually(t, func() error { return mismatch("the write has reached the proxy", near.HoldsUp(), nil) })
	holder.kill()
	g := holder.awaitTakeover(next, soonerThanTimeout, time.Now())
	_, err := holder.waiterClient.Multi(t.Context(), g.lease.Guard(),
		framework.SetOp(target, []byte("next"), framework.AnyVersion))
	require.NoError(t, err)
	near.Release(ensemble.Up)
	eventually(t, func() error {
		return mismatch("the write has left the proxy", near.Connections() == 0, near.Connections())
	})
	wait(t, 500*time.Millisecond) // the server would execute it now
	text, _, err := holder.waiterClient.Get(t.Context(), target)
	require.NoError(t, err)
	require.Equal(t, "next", string(text))
}

// testNoCloseUnderLoad checks that the watchdog does not close the session while the holder lives
// and works.
func testNoCloseUnderLoad(t *testing.T, env *testEnv) {
	holder := startWatched(t, env, longTimeout, env.Addrs()...)
	holder.order("work")
	require.Equal(t, "true", holder.awaitLine("worked"))
	holder.order("close")
	require.Equal(t, "<nil>", holder.awaitLine("closed"))
}
