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
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

const (
	// hourglass is a session timeout that no test waits for, and soon a wait that is well below it.
	hourglass = 30 * time.Second
	soon      = hourglass / 2
	// brief is the shortest session timeout that the servers here grant.
	brief = 4 * time.Second
)

// TestWatchdog ends holders in every way, on a single server and on an ensemble.
func TestWatchdog(t *testing.T) {
	for _, servers := range []int{1, 3} {
		a := &arena{ensemble.Private(t, ensemble.Config{
			Servers: servers, Tick: 2 * time.Second, NoFsync: true, Patience: patience, HeapMB: 512,
			Properties: map[string]string{ // nothing is answered before the credentials were presented
				"zookeeper.enforce.auth.enabled": "true", "zookeeper.enforce.auth.schemes": "digest",
			},
		})}
		t.Run(fmt.Sprintf("servers=%d", servers), func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, *arena){
				"dead processes":       testDead,
				"commands":             testCommandsDieFirst,
				"stopped parent":       testStoppedParent,
				"stopped watchdog":     testStoppedWatchdog,
				"killed watchdog":      testKilledWatchdog,
				"both killed":          testBothKilled,
				"inherited descriptor": testInheritedDescriptor,
				"replaced session":     testReplacedSession,
				"unreachable servers":  testUnreachableServers,
				"through another":      testThroughAnother,
				"late write":           testLateWrite,
				"load":                 testLoad,
			} {
				t.Run(name, func(t *testing.T) { t.Parallel(); test(t, a) })
			}
		})
	}
}

// prey is a process that holds a lock and has a watchdog.
type prey struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
	path  string
	dog   int
	token int64
	next  *framework.Client // of who waits for the lock
}

// hunt starts a holder on these servers and waits until its watchdog is armed.
func hunt(t *testing.T, a *arena, timeout time.Duration, servers ...string) *prey {
	t.Helper()
	p := &prey{t: t, cmd: exec.Command(os.Args[0]), path: "/" + strings.ReplaceAll(t.Name(), "/", "-")}
	p.cmd.Env = append(os.Environ(), watchedVariable+"=1", pathVariable+"="+p.path, targetVariable+"="+p.path+"-target",
		framework.EnvServers+"="+strings.Join(servers, ","), framework.EnvSessionTimeout+"="+timeout.String(),
		framework.EnvAuth+"="+string(credentials[0].Auth), "GORACE=atexit_sleep_ms=0")
	p.cmd.SysProcAttr = ownGroup()
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	for p.dog == 0 || p.token == 0 {
		switch word, value := p.line(); word {
		case "armed":
			p.dog = int(number(t, value))
		case "held":
			p.token = number(t, value)
		}
	}
	cfg := config(a.Addrs()...)
	cfg.SessionTimeout, cfg.Auth = hourglass, credentials
	p.next = client(t, cfg)
	return p
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// line is a word that the holder says, and what comes with it.
func (p *prey) line() (word, value string) {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	line, err := p.lines.ReadString('\n')
	require.NoError(p.t, err)
	word, value, _ = strings.Cut(strings.TrimSpace(line), " ")
	return word, value
}

// hear waits for a word.
func (p *prey) hear(want string) string {
	p.t.Helper()
	for {
		if word, value := p.line(); word == want {
			return value
		}
	}
}

func (p *prey) order(what string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.stdin, what)
	require.NoError(p.t, err)
}

func (p *prey) signal(pid int, s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(pid, s))
}

func (p *prey) kill() { p.signal(p.cmd.Process.Pid, syscall.SIGKILL) }

// line of waiters behind the holder: the channel gets the next one's grant.
func (p *prey) queue() <-chan *grant {
	p.t.Helper()
	r := &record{t: p.t, path: p.path}
	next, err := r.queue("the next", p.next)
	require.NoError(p.t, err)
	return next
}

// inherited returns the next one's grant, which must come within a time.
func (p *prey) inherited(next <-chan *grant, within time.Duration, since time.Time) *grant {
	p.t.Helper()
	select {
	case g := <-next:
		require.NotNil(p.t, g)
		require.Greater(p.t, g.lease.Token(), p.token)
		p.t.Logf("%s: %v", p.t.Name(), g.at.Sub(since).Round(100*time.Microsecond))
		return g
	case <-time.After(within):
		require.Fail(p.t, "nobody took over")
		return nil
	}
}

// pending fails if the next one is granted within a time.
func (p *prey) pending(next <-chan *grant, d time.Duration) {
	p.t.Helper()
	select {
	case <-next:
		require.Fail(p.t, "the lock was given away")
	case <-time.After(d):
	}
}

// ended waits until a process is gone, or waits for its parent only.
func (p *prey) ended(pid int) {
	p.t.Helper()
	eventually(p.t, func() error { return want("the end of a process", !runs(pid), pid) })
}

func runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func testDead(t *testing.T, a *arena) {
	for name, end := range map[string]func(*prey){
		"kill":    (*prey).kill,
		"group":   func(p *prey) { p.signal(-p.cmd.Process.Pid, syscall.SIGKILL) },
		"panic":   func(p *prey) { p.order("panic") },
		"exit":    func(p *prey) { p.order("exit") },
		"return":  func(p *prey) { p.stdin.Close() },
		"orderly": func(p *prey) { p.order("close"); require.Equal(p.t, "<nil>", p.hear("closed")) },
	} {
		t.Run(name, func(t *testing.T) {
			p := hunt(t, a, hourglass, a.Addrs()...)
			next := p.queue()
			since := time.Now()
			end(p)
			p.inherited(next, soon, since)
			p.ended(p.dog)
		})
	}
}

// startCommand has the holder run a command, and returns its processes.
func (p *prey) startCommand() (pids []int) {
	p.t.Helper()
	p.order("command")
	for _, pid := range strings.Fields(p.hear("command")) {
		pids = append(pids, int(number(p.t, pid)))
	}
	require.Len(p.t, pids, 2)
	p.t.Cleanup(func() { _ = syscall.Kill(-pids[0], syscall.SIGKILL) })
	return pids
}

func (p *prey) wantDead(pids []int) {
	p.t.Helper()
	for _, pid := range pids {
		require.False(p.t, runs(pid), "a command runs beside the next holder")
	}
}

func testCommandsDieFirst(t *testing.T, a *arena) {
	p := hunt(t, a, hourglass, a.Addrs()...)
	pids := p.startCommand()
	next := p.queue()
	since := time.Now()
	p.kill()
	p.inherited(next, soon, since)
	p.wantDead(pids)
}

// testStoppedParent stops a holder until its session has expired: not before, and its command is dead by then.
func testStoppedParent(t *testing.T, a *arena) {
	p := hunt(t, a, brief, a.Addrs()...)
	pids := p.startCommand()
	pass(t, 2*brief) // leases move on, and the command lives
	require.True(t, runs(pids[0]) && runs(pids[1]))
	next := p.queue()
	since := time.Now()
	require.NoError(t, stopProcess(p.cmd.Process))
	p.pending(next, brief/2)
	p.inherited(next, patience, since)
	p.wantDead(pids)
	require.True(t, runs(p.dog))
}

// testStoppedWatchdog leaves it to the session timeout, and the watchdog ends when it goes on.
func testStoppedWatchdog(t *testing.T, a *arena) {
	p := hunt(t, a, brief, a.Addrs()...)
	next := p.queue()
	p.signal(p.dog, syscall.SIGSTOP)
	since := time.Now()
	p.kill()
	p.inherited(next, patience, since)
	p.signal(p.dog, syscall.SIGCONT)
	p.ended(p.dog)
}

func testKilledWatchdog(t *testing.T, a *arena) {
	p := hunt(t, a, hourglass, a.Addrs()...)
	next := p.queue()
	for range 3 {
		p.signal(p.dog, syscall.SIGKILL)
		p.dog = int(number(t, p.hear("armed")))
	}
	since := time.Now()
	p.kill()
	p.inherited(next, soon, since)
}

func testBothKilled(t *testing.T, a *arena) {
	p := hunt(t, a, brief, a.Addrs()...)
	next := p.queue()
	require.NoError(t, stopProcess(p.cmd.Process)) // so that it starts no other
	since := time.Now()
	p.signal(p.dog, syscall.SIGKILL)
	p.kill()
	p.inherited(next, patience, since)
}

// testInheritedDescriptor delays the end until nobody has the pipe any more.
func testInheritedDescriptor(t *testing.T, a *arena) {
	p := hunt(t, a, hourglass, a.Addrs()...)
	p.order("inherit")
	heir := int(number(t, p.hear("inherited")))
	next := p.queue()
	p.kill()
	p.pending(next, 2*time.Second)
	since := time.Now()
	p.signal(heir, syscall.SIGKILL)
	p.inherited(next, soon, since)
}

// testReplacedSession cuts the holder off until its session is lost, and kills it in the next one.
func testReplacedSession(t *testing.T, a *arena) {
	proxy := a.proxy(t, 0)
	p := hunt(t, a, brief, proxy.Addr())
	p.order("again")
	proxy.Cut()
	pass(t, 2*brief)
	proxy.Heal()
	token := number(t, p.hear("held"))
	require.Greater(t, token, p.token)
	next := p.queue()
	since := time.Now()
	p.kill()
	p.inherited(next, soon, since) // in milliseconds; the figure is logged
}

func testUnreachableServers(t *testing.T, a *arena) {
	proxy := a.proxy(t, 0)
	p := hunt(t, a, hourglass, proxy.Addr())
	next := p.queue()
	proxy.Cut()
	p.kill()
	p.pending(next, 2*time.Second)
	proxy.Heal()
	p.inherited(next, soon, time.Now())
}

// detour is a holder that is connected through near, and knows far too.
func detour(t *testing.T, a *arena) (p *prey, near, far *ensemble.Proxy) {
	near, far = a.proxy(t, 0), a.proxy(t, a.Size()-1)
	far.Cut()
	p = hunt(t, a, hourglass, near.Addr(), far.Addr())
	far.Heal()
	return p, near, far
}

func testThroughAnother(t *testing.T, a *arena) {
	p, near, _ := detour(t, a)
	next := p.queue()
	near.Hold(ensemble.Both)
	since := time.Now()
	p.kill()
	p.inherited(next, soon, since)
}

// testLateWrite has the holder's last write reach a server after the next holder's.
func testLateWrite(t *testing.T, a *arena) {
	p, near, _ := detour(t, a)
	target := p.path + "-target"
	require.NoError(t, p.next.Create(t.Context(), target, []byte("none"), framework.Persistent))
	next := p.queue()
	near.Hold(ensemble.Up)
	p.order("write")
	p.hear("writing")
	pass(t, 200*time.Millisecond) // it is on its way, as far as the proxy
	p.kill()
	g := p.inherited(next, soon, time.Now())
	_, err := p.next.Multi(t.Context(), g.lease.Guard(), framework.SetOp(target, []byte("next"), framework.AnyVersion))
	require.NoError(t, err)
	near.Release(ensemble.Up)
	pass(t, 500*time.Millisecond)
	text, _, err := p.next.Get(t.Context(), target)
	require.NoError(t, err)
	require.Equal(t, "next", string(text))
}

// testLoad has nobody act while the holder lives and works.
func testLoad(t *testing.T, a *arena) {
	p := hunt(t, a, hourglass, a.Addrs()...)
	p.order("work")
	require.Equal(t, "true", p.hear("worked"))
	p.order("close")
	require.Equal(t, "<nil>", p.hear("closed"))
}
