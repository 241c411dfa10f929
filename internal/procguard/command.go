package procguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/clock"
)

// killMargin is the time between SIGKILL and the end of the lease, for the system to schedule this
// process and to deliver the signal.
const killMargin = 100 * time.Millisecond

// leaseClock is the clock that measures leases. It also counts while the machine is suspended.
var leaseClock = clock.System()

// leaseCheckInterval is the longest time between two readings of the rest of a lease: it may become
// shorter (framework.Session.LeaseRemaining).
const leaseCheckInterval = time.Second

// Hold is the lock, term or delivery that a command needs.
type Hold struct {
	// Context is done when the hold has ended.
	Context context.Context
	// Remaining returns the rest of the lease of the hold's session, which heartbeats extend. It
	// returns 0 if the session has ended.
	Remaining func() time.Duration
}

// Command is a command line and how to run it. The command inherits the standard streams and the
// environment of this process, except for what the fields change.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env holds additional environment variables, as NAME=value.
	Env []string
	// Withheld are names of variables of this process's environment that the command does not get.
	Withheld []string
	// Stdin, if not nil, is the command's standard input instead of this process's.
	Stdin *os.File
	// Stdout, if not nil, is the command's standard output instead of this process's.
	Stdout *os.File
	// Stderr, if not nil, is the command's standard error instead of this process's.
	Stderr *os.File
	// KillAfter is the time between SIGTERM and SIGKILL when the hold is lost.
	KillAfter time.Duration
	// Signals are forwarded to the command's process group.
	Signals <-chan os.Signal
	// Interrupted, if not nil, is called before Run returns if a key of the terminal, such as
	// Ctrl-C, has ended the command by a signal. The terminal sends that signal to the command's
	// process group, and this process does not get it.
	Interrupted func(os.Signal)
	// Guard, if not nil, is called right before the command is started. The Guard that it returns
	// ends the command if this process is dead or stopped.
	Guard func() Guard
}

// Guard ends the process group of a command when this process is dead or stopped.
type Guard interface {
	// Started is called with the id of the process that leads the group.
	Started(pid int)
	// Ended is called before Run returns: the command has ended and was waited for, and its group
	// was ended if the hold was lost; or the command could not be started.
	Ended()
}

// noGuard does nothing.
type noGuard struct{}

func (noGuard) Started(int) {}
func (noGuard) Ended()      {}

// Find returns the path of a program, as a shell finds it. Its error wraps ErrNotFound or
// ErrNotExecutable.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", startError(program, err)
	}
	return path, nil
}

// Run runs the command until it ends, and returns its exit code, or 128 + n if signal n ended it.
// If the hold is lost before that, Run ends the whole process group. If the hold has ended already,
// Run does not start the command. Its error wraps ErrHoldLost, ErrNotFound or ErrNotExecutable.
func (c Command) Run(h Hold) (int, error) {
	path, err := Find(c.Args[0])
	if err != nil {
		return 0, err
	}
	now, remaining := leaseClock.Now(), h.Remaining()
	if remaining <= 0 || h.Context.Err() != nil {
		return 0, fmt.Errorf("%w: %w", ErrHoldLost, cmp.Or(context.Cause(h.Context), errLeaseRunsOut))
	}
	cmd := exec.Command(path, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Stdin, cmd.Stdout = cmp.Or(c.Stdin, os.Stdin), cmp.Or(c.Stdout, os.Stdout)
	cmd.Stderr = cmp.Or(c.Stderr, os.Stderr)
	cmd.Env = append(c.inheritedEnv(), c.Env...)
	guard := c.newGuard()
	defer guard.Ended() // not when the command itself has ended: others of its group may have to be killed
	p, err := startProcess(cmd, guard)
	if err != nil {
		return 0, startError(c.Args[0], err)
	}
	leaseEnd, cause := c.superviseProcess(p, h, now+remaining)
	if cause != nil {
		c.stopGroup(p, h, leaseEnd)
	}
	<-p.ended
	if p.interrupt != nil && c.Interrupted != nil {
		c.Interrupted(p.interrupt)
	}
	if cause != nil {
		return p.exitCode(), fmt.Errorf("%w: %w", ErrHoldLost, cause)
	}
	return p.exitCode(), nil
}

// inheritedEnv returns the variables of this process's environment that the command gets.
func (c Command) inheritedEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(c.Withheld, name)
	})
}

func (c Command) newGuard() Guard {
	if c.Guard == nil {
		return noGuard{}
	}
	return c.Guard()
}

// superviseProcess forwards signals until the command has ended. If the command must end before, it
// returns the cause at once: the hold has ended, or its lease runs out. leaseEnd is when the lease
// ends, by leaseClock. superviseProcess returns the last one: it does not change when a server ends
// the session earlier.
func (c Command) superviseProcess(p *process, h Hold, leaseEnd time.Duration) (time.Duration, error) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		now := leaseClock.Now()
		remaining := h.Remaining()
		if remaining > 0 {
			leaseEnd = now + remaining
		}
		left := remaining - c.KillAfter - killMargin
		switch {
		case h.Context.Err() != nil:
			return leaseEnd, context.Cause(h.Context)
		case left <= 0:
			return leaseEnd, errLeaseRunsOut
		}
		t.Reset(min(left, leaseCheckInterval))
		select {
		case <-p.ended:
			// reads the clock, so that an ended lease ends the context, also after this process was
			// stopped
			_ = h.Remaining()
			return leaseEnd, context.Cause(h.Context) // not nil if the hold ended before the command
		case s := <-c.Signals:
			p.signalGroup(s)
		case <-p.childSignals:
			p.resumeStopped()
		case <-h.Context.Done():
		case <-t.C:
		}
	}
}

// stopGroup ends the process group: with SIGTERM, and with SIGKILL after KillAfter. SIGKILL comes
// earlier if the lease or the hold ends before.
func (c Command) stopGroup(p *process, h Hold, leaseEnd time.Duration) {
	left := min(c.KillAfter, leaseEnd-leaseClock.Now())
	if left > 0 {
		p.terminateGroup()
	}
	if left <= 0 || !c.waitForGroupEnd(p, h, left) {
		p.killGroup()
	}
}

// waitForGroupEnd waits until no process of the group is left. It returns false if left is over or
// the hold ends before.
func (c Command) waitForGroupEnd(p *process, h Hold, left time.Duration) bool {
	deadline := time.NewTimer(left)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	ended := h.Context.Done()
	if h.Context.Err() != nil {
		// the hold ended before its lease, for example because its node was deleted; the command
		// still has the whole time left
		ended = nil
	}
	for p.isGroupAlive() {
		select {
		case <-poll.C:
		case <-deadline.C:
			return false
		case <-ended:
			return false
		}
	}
	return true
}

// startError distinguishes programs that do not exist from programs that do not start, as shells
// do.
func startError(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotFound, program)
	}
	return fmt.Errorf("%w: %s: %w", ErrNotExecutable, program, err)
}
