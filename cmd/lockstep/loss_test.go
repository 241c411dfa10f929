//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestALostLockTermsTheCommand(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c", `trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	s.expire()
	require.Equal(t, 75, p.wait())
	require.Equal(t, "told", p.line(1))
	require.Contains(t, read(p.err), "lockstep: lock /lockstep/locks/demo: hold lost: session lost")
	s.left()
}

func TestALostLockKillsACommandThatStays(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--kill-after", "100ms", "--", "sh", "-c",
		`trap 'echo told' TERM; sleep 1000 & echo $!; echo $$; while :; do sleep 0.01; done`)
	worker, shell := p.line(0), p.line(1)
	s.expire()
	require.Equal(t, 75, p.wait())
	require.Equal(t, "told", p.line(2))
	s.gone(worker)
	s.gone(shell)
}

func TestTheCommandHasEndedBeforeTheServersGiveTheLockAway(t *testing.T) {
	s := newStage(t, zktest.WithTick(100*time.Millisecond), zktest.WithSessionTimeouts(time.Second, time.Minute))
	cutOff(t, s, "2s")
}

func TestTheCommandHasEndedBeforeAnEnsembleGivesTheLockAway(t *testing.T) {
	s, _ := onEnsemble(t)
	cutOff(t, s, "4s")
}

// cutOff cuts a holder off from its server. The next holder looks whether the former's command still lives.
func cutOff(t *testing.T, s *stage, timeout string) {
	server, _, _ := strings.Cut(s.servers, ",")
	proxy, err := ensemble.NewProxy(server)
	require.NoError(t, err)
	defer proxy.Close()
	p := s.start("lock", "demo", "--zk", proxy.Addr(), "--session-timeout", timeout, "--", "sh", "-c",
		`trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done`)
	shell := p.line(0)
	next := s.start("lock", "demo", "--", "sh", "-c", `if kill -0 $0 2>/dev/null; then echo two holders; else echo alone; fi`, shell)
	proxy.Hold(ensemble.Both)
	require.Equal(t, 0, next.wait())
	require.Equal(t, "alone\n", read(next.out))
	require.Equal(t, "told", p.line(1), "TERM came first")
	proxy.Heal()
	require.Equal(t, 75, p.wait())
	require.Contains(t, read(p.err), "lease runs out")
}

func TestAStoppedHolderKillsAtOnceWhenItGoesOn(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--session-timeout", "1s", "--", "sh", "-c",
		`trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done`)
	shell := p.line(0)
	next := s.start("lock", "demo", "--", "true")
	p.signal(syscall.SIGSTOP)
	require.Equal(t, 0, next.wait(), "the servers cannot know that its command runs on: that is what tokens are for")
	p.signal(syscall.SIGCONT)
	require.Equal(t, 75, p.wait())
	s.gone(shell)
	require.NotContains(t, read(p.out), "told", "others may hold it already")
}

func TestAFrozenServer(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--session-timeout", "2s", "--", "sh", "-c", `echo $$; exec sleep 1000`)
	shell := p.line(0)
	s.zk.Freeze()
	require.Equal(t, 75, p.wait())
	s.gone(shell)
}

func TestALostLockWithoutACommand(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo")
	p.line(0)
	s.expire()
	require.Equal(t, 75, p.wait())
	require.Contains(t, read(p.err), "hold lost")
}

func TestAWaiterSurvivesALostSession(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "demo")
	holder.line(0)
	waiter := s.start("lock", "demo", "--", "echo", "ran")
	s.queue("/lockstep/locks/demo", 2)
	lost := s.zk.Sessions()[1].ID // the younger one
	require.NoError(t, s.zk.Expire(lost))
	s.until("another session", func() bool { all := s.zk.Sessions(); return len(all) == 2 && all[1].ID != lost })
	s.queue("/lockstep/locks/demo", 2)
	holder.signal(syscall.SIGTERM)
	require.Equal(t, 0, waiter.wait())
	require.Equal(t, "ran\n", read(waiter.out))
}

func TestTheCommandDiesWithLockstep(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c", "echo $$; exec sleep 1000")
	pid := p.line(0)
	p.signal(syscall.SIGKILL)
	p.wait()
	s.gone(pid)
}

func TestADeletedNodeEndsTheHold(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--session-timeout", "1s", "--", "sh", "-c", "echo $$; exec sleep 1000")
	p.line(0)
	holder := s.zk.Children("/lockstep/locks/demo")[0]
	other := s.start("lock", "demo", "--", "sh", "-c", "echo ran")
	s.queue("/lockstep/locks/demo", 2)
	deleteNode(t, s, "/lockstep/locks/demo/"+holder)
	require.Equal(t, 75, p.wait())
	require.Equal(t, 0, other.wait())
	require.Contains(t, read(p.err), "node was deleted")
}

func TestAHoldSurvivesAServersRestart(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c", `echo ready; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; exit 4`)
	p.line(0)
	s.zk.Restart()
	s.until("a new connection", func() bool { return s.zk.Connections() == 1 })
	touch(t, s.file("go"))
	require.Equal(t, 4, p.wait())
}

// TestAnOutageIsToldOnceWithItsCause and its end too.
func TestAnOutageIsToldOnceWithItsCause(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo", "--observe", "--session-timeout", "8s")
	p.line(0)
	s.zk.Freeze()
	s.until("the warning", func() bool {
		return strings.Contains(read(p.err), "warning: no server can be used servers=\""+s.servers+": ")
	})
	s.zk.Thaw()
	s.until("the end", func() bool { return strings.Contains(read(p.err), outageOver) })
	require.Equal(t, 1, strings.Count(read(p.err), "no server can be used"))
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}
