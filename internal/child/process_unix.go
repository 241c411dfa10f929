//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare puts the command into a process group of its own, which gets the terminal if this process
// has it: a background group that reads from its terminal is stopped. What it returns takes the
// terminal back.
func (p *process) prepare() (giveBack func()) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	if !isTerminal(0) {
		return func() {}
	}
	if hasTerminal(unix.Getpgrp()) && isTerminal(1) { // else a pager beside this process may need it
		p.cmd.SysProcAttr.Foreground, p.cmd.SysProcAttr.Ctty = true, 0
	}
	jobs := make(chan os.Signal, 1)
	signal.Notify(jobs, syscall.SIGCHLD, syscall.SIGCONT)
	p.jobs = jobs
	return func() {
		signal.Stop(jobs)
		if p.cmd.Process != nil && hasTerminal(p.cmd.Process.Pid) {
			giveTerminal(unix.Getpgrp())
		}
	}
}

// code is the exit code as a shell has it.
func (p *process) code() int {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// signal sends a signal to the process group. Nobody being left is no error.
func (p *process) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-p.cmd.Process.Pid, n)
	}
}

// terminate asks the process group to end; a stopped one must go on to hear it.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// alive reports whether anybody is left in the process group.
func (p *process) alive() bool {
	return !errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
}
