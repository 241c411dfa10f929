//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestALostLockSendsTheCommandSIGTERM(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c",
		`trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	p.line(0)
	s.expire()
	require.Equal(t, 75, p.wait())
	require.Equal(t, "told", p.line(1))
	require.Contains(t, read(p.err), "lockstep: lock /lockstep/locks/demo: hold lost: session lost")
	s.left()
}

func TestALostLockKillsACommandThatIgnoresSIGTERM(t *testing.T) {
	s := newStage(t)
	told := false
	for killAfter := 100 * time.Millisecond; !told; killAfter *= 4 {
		// the shell needs a moment of a loaded machine to say it
		p := s.start("lock", "demo", "--kill-after", killAfter.String(), "--", "sh", "-c",
			`trap 'echo told' TERM; sleep 1000 & echo $!; echo $$; while :; do sleep 0.01; done`)
		worker, shell := p.line(0), p.line(1)
		s.expire()
		require.Equal(t, 75, p.wait())
		s.gone(worker)
		s.gone(shell)
		told = strings.HasSuffix(read(p.out), "\ntold\n")
	}
}

func TestTheCommandHasEndedBeforeTheServersGiveTheLockAway(t *testing.T) {
	s := newStage(t, zktest.WithTick(100*time.Millisecond), zktest.WithSessionTimeouts(time.Second, time.Minute))
	cutOff(t, s, 2*time.Second)
}

func TestTheCommandHasEndedBeforeAnEnsembleGivesTheLockAway(t *testing.T) {
	s, _ := onEnsemble(t)
	cutOff(t, s, 4*time.Second)
}

// cutOff cuts a holder off from its server. The next holder looks whether the former's command
// still lives. On a slow machine the holder may have lost its session before, or its command may
// not come to say that it was told: then the test gives the next holder more time.
func cutOff(t *testing.T, s *stage, timeout time.Duration) {
	for ; !toldBeforeTheLeaseEnds(t, s, timeout); timeout *= 2 {
		require.Less(t, timeout, time.Minute, "TERM came first")
	}
}

func toldBeforeTheLeaseEnds(t *testing.T, s *stage, timeout time.Duration) bool {
	server, _, _ := strings.Cut(s.servers, ",")
	proxy, err := ensemble.NewProxy(server)
	require.NoError(t, err)
	defer proxy.Close()
	p := s.start("lock", "demo", "--zk", proxy.Addr(), "--session-timeout", timeout.String(), "--", "sh", "-c",
		`trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done`)
	shell := p.line(0)
	next := s.start("lock", "demo", "--", "sh", "-c",
		`if kill -0 $0 2>/dev/null; then echo two holders; else echo alone; fi`, shell)
	proxy.Hold(ensemble.Both)
	require.Equal(t, 0, next.wait())
	require.Equal(t, "alone\n", read(next.out))
	proxy.Heal()
	require.Equal(t, 75, p.wait())
	return strings.HasSuffix(read(p.out), "\ntold\n") && strings.Contains(read(p.err), "lease runs out")
}

func TestAStoppedHolderKillsAtOnceWhenItGoesOn(t *testing.T) {
	s := newStage(t)
	toldBefore := true
	for timeout := time.Second; toldBefore; timeout *= 2 { // on a slow machine, its lease may end before it is stopped
		p := s.start("lock", "demo", "--session-timeout", timeout.String(), "--", "sh", "-c",
			`trap 'echo told' TERM; echo $$; while :; do sleep 0.01; done`)
		shell := p.line(0)
		next := s.start("lock", "demo", "--", "true")
		_ = p.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended
		require.Equal(t, 0, next.wait(),
			"the servers cannot know that its command runs on: that is what tokens are for")
		toldBefore = p.hasEnded() || strings.Contains(read(p.out), "told")
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		require.Equal(t, 75, p.wait())
		s.gone(shell)
		if !toldBefore {
			require.NotContains(t, read(p.out), "told", "others may hold it already")
		}
	}
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
	p := s.start("lock", "demo", "--", "sh", "-c", "echo $$; exec sleep 1000")
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

// TestAnInterruptionIsToldInPlainWords: how long holds last, and when the interruption is over; the
// command goes on.
func TestAnInterruptionIsToldInPlainWords(t *testing.T) {
	s := newStage(t)
	server := s.servers
	proxy, err := ensemble.NewProxy(server)
	require.NoError(t, err)
	defer proxy.Close()
	p := s.start("lock", "demo", "--zk", proxy.Addr(), "--", "sh", "-c",
		`echo ready; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; exit 4`)
	p.line(0)
	proxy.Cut()
	s.until("the warning", func() bool {
		return strings.Contains(read(p.err), "lockstep: warning: no server can be reached ("+proxy.Addr()+": ") &&
			strings.Contains(read(p.err), "): holds last for another 3")
	})
	proxy.Heal()
	s.until("the end", func() bool {
		return strings.Contains(read(p.err), "lockstep: "+proxy.Addr()+" can be reached again, after ")
	})
	touch(t, s.file("go"))
	require.Equal(t, 4, p.wait())
	require.Equal(t, 2, strings.Count(read(p.err), "\n"), read(p.err))
}

// TestAShorterTimeoutIsToldInPlainWords, once: the servers grant 20 ticks.
func TestAShorterTimeoutIsToldInPlainWords(t *testing.T) {
	s := newStage(t, zktest.WithSessionTimeouts(time.Second, 10*time.Second))
	p := s.start("lock", "demo", "--", "true")
	require.Equal(t, 0, p.wait())
	require.Equal(t, "lockstep: warning: the servers grant a session timeout of 10s instead of 40s: holds survive "+
		"interruptions of 3.416s only; "+
		"raise their maxSessionTimeout, or ask for less with --session-timeout\n", read(p.err))
}

// TestAnOutageIsToldOnceWithItsCause and its end too.
func TestAnOutageIsToldOnceWithItsCause(t *testing.T) {
	s := newStage(t)
	p := s.start("elect", "demo", "--observe", "--session-timeout", "8s")
	p.line(0)
	s.zk.Freeze()
	s.until("the warning", func() bool {
		return strings.Contains(read(p.err), "warning: no server can be reached ("+s.servers+": ")
	})
	s.zk.Thaw()
	s.until("the end", func() bool { return strings.Contains(read(p.err), s.servers+" can be reached again, after ") })
	require.Equal(t, 1, strings.Count(read(p.err), "no server can be reached"))
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}

// TestALossAfterASignalIsTold: the command was told to end, and went on until its hold was lost.
func TestALossAfterASignalIsTold(t *testing.T) {
	for name, args := range map[string][]string{
		"lock":    {"lock", "demo"},
		"take":    {"queue", "take", "work", "--follow"},
		"barrier": {"barrier", "enter", "demo", "-n", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.ok("queue", "put", "work", "item")
			p := s.start(append(args, "--", "sh", "-c",
				`n=0; trap 'n=$((n+1)); echo told; test $n = 1 || exit 3' TERM; echo ready; while :; do sleep 0.01; done`)...)
			p.line(0)
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
			require.Equal(t, "told", p.line(1))
			s.expire()
			require.Equal(t, cli.ExitLost, p.wait())
			require.Contains(t, read(p.err), "hold lost")
		})
	}
}
