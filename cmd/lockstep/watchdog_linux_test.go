package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

const (
	// pair is a command of two processes in one group, which print their numbers.
	pair = `sleep 1000 & echo $!; echo $$; wait`
	// census looks whether any of the processes $0 and $1 runs. Nobody may have waited for a dead
	// one yet.
	census = `for p in $0 $1; do case "$(sed 's/.*) //' /proc/$p/stat 2>/dev/null)" in ''|[ZX]*) ;; *) echo "$p runs"; exit 9;; esac; done; echo alone`
)

// slow is a stage whose servers would take far longer than any test to notice a crash.
func slow(t *testing.T) *stage {
	return newStage(t, zktest.WithTick(2*time.Second), zktest.WithSessionTimeouts(time.Second, time.Hour))
}

const slowTimeout = "1h"

// armed waits until a process has a watchdog that knows what to do: it goes by another name then.
func (p *process) armed() {
	p.stage.t.Helper()
	p.stage.until("a watchdog", func() bool { return len(watchdogsOf(p.cmd.Process.Pid)) == 1 })
}

func TestAKilledLockstepsCommandIsDeadBeforeTheNextHolds(t *testing.T) {
	s := slow(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT} { // SIGABRT: Go's own crash
		p := s.start("lock", "demo", "--session-timeout", slowTimeout, "--", "sh", "-c", pair)
		worker, shell := p.line(0), p.line(1)
		p.armed()
		next := s.start("lock", "demo", "--", "sh", "-c", census, worker, shell)
		s.queue("/lockstep/locks/demo", 2)
		p.signal(signal)
		require.Equal(t, 0, next.wait())
		require.Equal(t, "alone\n", read(next.out))
	}
	s.left()
}

func TestWithoutAWatchdogTheTimeoutDecides(t *testing.T) {
	s := slow(t)
	p := s.start("lock", "demo", "--no-watchdog", "--session-timeout", slowTimeout, "--", "sh", "-c", pair)
	worker, err := strconv.Atoi(p.line(0))
	require.NoError(t, err)
	p.line(1)
	defer syscall.Kill(worker, syscall.SIGKILL) // it has no watchdog that ends it
	require.Empty(t, watchdogsOf(p.cmd.Process.Pid))
	p.signal(syscall.SIGKILL)
	p.wait()
	require.Equal(t, 1, s.start("lock", "demo", "-w", "1", "--", "true").wait())
}

// TestAStoppedLockstepsCommandIsDeadBeforeTheNextHolds also if the command is stopped as well, and
// would go on when somebody continues it.
func TestAStoppedLockstepsCommandIsDeadBeforeTheNextHolds(t *testing.T) {
	for name, commandStops := range map[string]bool{"lockstep": false, "lockstep and its command": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			stopped := false
			for timeout := 2 * time.Second; !stopped; timeout *= 2 {
				// on a slow machine, its session may end before it is stopped
				p := s.start("lock", "demo", "--session-timeout", timeout.String(), "--", "sh", "-c", pair)
				worker, shell := p.line(0), p.line(1)
				s.until("a watchdog", func() bool { return p.hasEnded() || len(watchdogsOf(p.cmd.Process.Pid)) == 1 })
				next := s.start("lock", "demo", "--", "sh", "-c", census, worker, shell)
				s.until("contenders", func() bool {
					return p.hasEnded() || len(s.zk.Children("/lockstep/locks/demo")) == 2
				})
				stopped = p.cmd.Process.Signal(syscall.SIGSTOP) == nil && !p.hasEnded()
				if stopped && commandStops {
					group, err := strconv.Atoi(shell)
					require.NoError(t, err)
					require.NoError(t, syscall.Kill(-group, syscall.SIGSTOP))
				}
				require.Equal(t, 0, next.wait())
				require.Equal(t, "alone\n", read(next.out))
				_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may have ended
				require.Equal(t, 75, p.wait())
				require.Contains(t, read(p.err), "hold lost")
			}
		})
	}
}

func TestAKilledLeaderIsFollowedAtOnce(t *testing.T) {
	s := slow(t)
	p := s.start("elect", "demo", "--session-timeout", slowTimeout, "--", "sh", "-c", pair)
	worker, shell := p.line(0), p.line(1)
	p.armed()
	next := s.start("elect", "demo", "--", "sh", "-c", census, worker, shell)
	p.signal(syscall.SIGKILL)
	require.Equal(t, 0, next.wait())
	require.Equal(t, "alone\n", read(next.out))
}

func TestAKilledSchedulerIsFollowedAtOnce(t *testing.T) {
	s := slow(t)
	line := []string{"cron", "demo", "* * * * * *", "--session-timeout", slowTimeout, "--", "sh", "-c"}
	p := s.start(append(line, "echo tick")...)
	p.line(0)
	p.armed()
	next := s.start(append(line, "echo tock")...)
	p.signal(syscall.SIGKILL)
	require.Equal(t, "tock", next.line(0))
}

// TestTheWatchdogEndsWithACommand leaves no process behind, whichever way it ends.
func TestTheWatchdogEndsWithACommand(t *testing.T) {
	s := newStage(t)
	p := s.start("lock", "demo", "--", "sh", "-c", `echo ready; while [ ! -e "$DIR/go" ]; do sleep 0.01; done`)
	p.line(0)
	p.armed()
	dog := watchdogsOf(p.cmd.Process.Pid)[0]
	touch(t, s.file("go"))
	require.Equal(t, 0, p.wait())
	s.gone(dog)
	require.Empty(t, strings.TrimSpace(read(p.err)))
}

// watchdogsOf lists the armed watchdogs of a process.
func watchdogsOf(pid int) (dogs []string) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		for _, child := range strings.Fields(read(list)) {
			if read("/proc/"+child+"/comm") == "lockstep-watchd\n" {
				dogs = append(dogs, child)
			}
		}
	}
	return dogs
}
