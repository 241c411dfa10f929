package procguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// killMargin is the time between SIGKILL and the end of the lease. In it, the system must schedule this process and deliver the signal.
const killMargin = 100 * time.Millisecond

// Hold is the lock, term or delivery that a command needs.
type Hold struct {
	// Context is done when the hold has ended.
	Context context.Context
	// Remaining returns the time that is left of the lease of the hold's session. A heartbeat extends it.
	Remaining func() time.Duration
}

// Command is a command line and how to run it. The command inherits the standard streams and the environment of
// this process, except for what the fields change.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env holds additional environment variables, as NAME=value.
	Env []string
	// Stdin, if not nil, is the command's standard input instead of this process's.
	Stdin *os.File
	// Stdout, if not nil, is the command's standard output instead of this process's.
	Stdout *os.File
	// KillAfter is the time between SIGTERM and SIGKILL when the hold is lost.
	KillAfter time.Duration
	// Signals are forwarded to the command's process group.
	Signals <-chan os.Signal
	// Guard, if not nil, is called right before the command is started. What it returns ends the command when this
	// process cannot.
	Guard func() Guard
}

// Guard ends the process group of a command when this process is dead or stopped.
type Guard interface {
	// Started names the process that leads the group.
	Started(pid int)
	// Ended is called after the wait for the ended command, or when the command did not start.
	Ended()
}

// noGuard does nothing.
type noGuard struct{}

func (noGuard) Started(int) {}
func (noGuard) Ended()      {}

// Find returns the path of a program, as a shell finds it. Its error wraps ErrNotFound or ErrNotExecutable.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", startError(program, err)
	}
	return path, nil
}

// Run runs the command and returns its exit code, or 128 + n if signal n ended it. It returns when the command has ended. If the hold
// was lost before, it ends the whole process group and returns after its last process. Its error wraps ErrHoldLost, ErrNotFound or ErrNotExecutable.
func (c Command) Run(h Hold) (int, error) {
	path, err := Find(c.Args[0])
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cmp.Or(c.Stdin, os.Stdin), cmp.Or(c.Stdout, os.Stdout), os.Stderr
	cmd.Env = append(os.Environ(), c.Env...)
	p, err := startProcess(cmd, c.newGuard())
	if err != nil {
		return 0, startError(c.Args[0], err)
	}
	cause := c.superviseProcess(p, h)
	if cause != nil {
		c.stopGroup(p, h)
	}
	<-p.ended
	if cause != nil {
		return p.exitCode(), fmt.Errorf("%w: %w", ErrHoldLost, cause)
	}
	return p.exitCode(), nil
}

func (c Command) newGuard() Guard {
	if c.Guard == nil {
		return noGuard{}
	}
	return c.Guard()
}

// superviseProcess forwards signals until the command has ended. It returns an error as soon as the command must end.
func (c Command) superviseProcess(p *process, h Hold) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		left := h.Remaining() - c.KillAfter - killMargin
		switch {
		case h.Context.Err() != nil:
			return context.Cause(h.Context)
		case left <= 0:
			return errLeaseRunsOut
		}
		t.Reset(left)
		select {
		case <-p.ended:
			_ = h.Remaining()               // detects a lost hold at once, also after this process was stopped
			return context.Cause(h.Context) // not nil if the command ran longer than the hold
		case s := <-c.Signals:
			p.signalGroup(s)
		case <-p.childSignals:
			p.resumeStopped()
		case <-h.Context.Done():
		case <-t.C:
		}
	}
}

// stopGroup ends the process group: with SIGTERM, and with SIGKILL after KillAfter or when the hold ends.
func (c Command) stopGroup(p *process, h Hold) {
	left := min(c.KillAfter, h.Remaining())
	if left > 0 {
		p.terminateGroup()
	}
	if left <= 0 || !c.waitForGroupEnd(p, h, left) {
		p.killGroup()
	}
}

// waitForGroupEnd waits until no process of the group is left. It returns false if the time is over or the hold ends before.
func (c Command) waitForGroupEnd(p *process, h Hold, left time.Duration) bool {
	deadline := time.NewTimer(left)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	ended := h.Context.Done()
	if h.Context.Err() != nil {
		ended = nil // a server ended the session; the command got SIGTERM just now and keeps its time
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

// startError distinguishes, as shells do, programs that do not exist from those that do not start.
func startError(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotFound, program)
	}
	return fmt.Errorf("%w: %s: %w", ErrNotExecutable, program, err)
}
