package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// slack is what is left between SIGKILL and the end of the lease: time for this process to be
// scheduled and for the kernel to deliver.
const slack = 100 * time.Millisecond

// Hold is what a command runs under.
type Hold struct {
	// Context is done when the hold has ended.
	Context context.Context
	// Remaining is the time until the hold's session is over unless it is proven to live before.
	Remaining func() time.Duration
}

// Command is a command line and how to run it. It has the standard streams and the environment of
// this process, unless a field says otherwise.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env is added to the environment, as NAME=value.
	Env []string
	// Stdin, if not nil, is the command's standard input instead of this process's.
	Stdin *os.File
	// KillAfter is the time between SIGTERM and SIGKILL when the hold is lost.
	KillAfter time.Duration
	// Signals are passed on to the command's process group.
	Signals <-chan os.Signal
	// Guard, if not nil, is told of the command, so that somebody else ends it when this process cannot. It is
	// asked for right before the command is started.
	Guard func() Guard
}

// Guard ends a command's process group for a process that is dead, or stopped.
type Guard interface {
	// Started says which process leads the group.
	Started(pid int)
	// Ended says that the command has ended and was waited for, or could not be started.
	Ended()
}

// unguarded is the Guard of a command without one.
type unguarded struct{}

func (unguarded) Started(int) {}
func (unguarded) Ended()      {}

// Find looks the program up as a shell does. Its error wraps ErrNotFound or ErrNotExecutable.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", refused(program, err)
	}
	return path, nil
}

// Run runs the command and returns its exit code, or 128 + n when signal n has ended it. It returns
// when nothing of the process group is left, if it had to end it, and when the command has ended,
// otherwise. Its error wraps ErrHoldLost, ErrNotFound or ErrNotExecutable.
func (c Command) Run(h Hold) (int, error) {
	path, err := Find(c.Args[0])
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, c.Args[1:]...)
	cmd.Args[0] = c.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin(), os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), c.Env...)
	p, err := start(cmd, c.guard())
	if err != nil {
		return 0, refused(c.Args[0], err)
	}
	cause := c.watch(p, h)
	if cause != nil {
		c.stop(p, h)
	}
	<-p.done
	if cause != nil {
		return p.code(), fmt.Errorf("%w: %w", ErrHoldLost, cause)
	}
	return p.code(), nil
}

func (c Command) stdin() *os.File {
	if c.Stdin == nil {
		return os.Stdin
	}
	return c.Stdin
}

func (c Command) guard() Guard {
	if c.Guard == nil {
		return unguarded{}
	}
	return c.Guard()
}

// watch passes signals on until the command has ended, or returns why it must end now.
func (c Command) watch(p *process, h Hold) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		left := h.Remaining() - c.KillAfter - slack
		switch {
		case h.Context.Err() != nil:
			return context.Cause(h.Context)
		case left <= 0:
			return errRunningOut
		}
		t.Reset(left)
		select {
		case <-p.done:
			_ = h.Remaining()               // notices a lapse at once, also in a process that was stopped
			return context.Cause(h.Context) // what ended after the hold has run without it
		case s := <-c.Signals:
			p.signal(s)
		case <-p.jobs:
			p.resume()
		case <-h.Context.Done():
		case <-t.C:
		}
	}
}

// stop ends the process group: by SIGTERM, and by SIGKILL after KillAfter or when the hold ends.
func (c Command) stop(p *process, h Hold) {
	left := min(c.KillAfter, h.Remaining())
	if left > 0 {
		p.terminate()
	}
	if left <= 0 || !c.gone(p, h, left) {
		p.kill()
	}
}

// gone waits until the process group is gone; false when the time is over or the hold ends before.
func (c Command) gone(p *process, h Hold, left time.Duration) bool {
	deadline := time.NewTimer(left)
	defer deadline.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	ended := h.Context.Done()
	if h.Context.Err() != nil {
		ended = nil // a server ended the session, and the command has been told just now
	}
	for p.alive() {
		select {
		case <-look.C:
		case <-deadline.C:
			return false
		case <-ended:
			return false
		}
	}
	return true
}

// refused says what a shell would say of a program that did not start.
func refused(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotFound, program)
	}
	return fmt.Errorf("%w: %s: %w", ErrNotExecutable, program, err)
}
