//go:build unix

package procguard

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareGroup puts the command into a process group of its own. The group gets the terminal if this process has it, since the
// kernel stops a background group that reads from its terminal. The returned function takes the terminal back.
func (p *process) prepareGroup() (giveBack func()) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	setParentDeathSignal(p.cmd.SysProcAttr)
	if !isTerminal(0) {
		return func() {}
	}
	if isForegroundGroup(unix.Getpgrp()) && isTerminal(1) { // otherwise a pager beside this process may need it
		p.cmd.SysProcAttr.Foreground, p.cmd.SysProcAttr.Ctty = true, 0
	}
	jobs := make(chan os.Signal, 1)
	signal.Notify(jobs, syscall.SIGCHLD, syscall.SIGCONT)
	p.childSignals = jobs
	return func() {
		signal.Stop(jobs)
		if p.cmd.Process != nil && isForegroundGroup(p.cmd.Process.Pid) {
			setForegroundGroup(unix.Getpgrp())
		}
	}
}

// exitCode returns the exit code as a shell does.
func (p *process) exitCode() int {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// signalGroup sends a signal to the process group, if a process of it is left.
func (p *process) signalGroup(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-p.cmd.Process.Pid, n)
	}
}

// terminateGroup sends SIGTERM to the process group, and SIGCONT so that a stopped process handles it.
func (p *process) terminateGroup() {
	p.signalGroup(syscall.SIGTERM)
	p.signalGroup(syscall.SIGCONT)
}

func (p *process) killGroup() { p.signalGroup(syscall.SIGKILL) }

// isGroupAlive reports whether a process of the group is left.
func (p *process) isGroupAlive() bool {
	return !errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
}
