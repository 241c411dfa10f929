//go:build unix

package procguard

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareGroup puts the command into a process group of its own. If this process has the terminal,
// the group gets it, since the kernel stops a background group that reads from its terminal. The
// returned function takes the terminal back after the command.
func (p *process) prepareGroup() (takeTerminalBack func()) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	setParentDeathSignal(p.cmd.SysProcAttr)
	if !isTerminal(0) {
		return func() {}
	}
	if isForegroundGroup(unix.Getpgrp()) && isTerminal(1) {
		// otherwise standard output may be a pipe to a pager, which needs the terminal
		p.cmd.SysProcAttr.Foreground, p.cmd.SysProcAttr.Ctty = true, 0
	}
	childSignals := make(chan os.Signal, 1)
	signal.Notify(childSignals, syscall.SIGCHLD, syscall.SIGCONT)
	p.childSignals = childSignals
	return func() {
		signal.Stop(childSignals)
		if p.cmd.Process != nil && isForegroundGroup(p.cmd.Process.Pid) {
			setForegroundGroup(unix.Getpgrp())
			p.interrupt = p.terminalSignal()
		}
	}
}

// exitCode returns the exit code, or 128 + n if signal n ended the command, as shells do.
func (p *process) exitCode() int {
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// terminalSignal is the signal of a key that has ended the command, or nil. A shell ends with 128 +
// n if signal n has ended its command.
func (p *process) terminalSignal() os.Signal {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if p.cmd.ProcessState != nil && p.exitCode() == 128+int(s) {
			return s
		}
	}
	return nil
}

// signalGroup sends a signal to the process group, if a process of it is left.
func (p *process) signalGroup(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-p.cmd.Process.Pid, n)
	}
}

// terminateGroup sends SIGTERM to the process group, and then SIGCONT, so that stopped processes
// handle the SIGTERM.
func (p *process) terminateGroup() {
	p.signalGroup(syscall.SIGTERM)
	p.signalGroup(syscall.SIGCONT)
}

func (p *process) killGroup() { p.signalGroup(syscall.SIGKILL) }

// isGroupAlive reports whether a process of the group is left. A zombie counts until its parent has
// waited for it. Once the command has ended, this process waits for the zombies that it has become
// the parent of, as process 1 of a container does.
func (p *process) isGroupAlive() bool {
	group := p.cmd.Process.Pid
	select {
	case <-p.ended: // before that, Wait4 could take the end of the command itself
		for pid := 1; pid > 0; {
			// it returns 0 or an error if no process has ended
			pid, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		}
	default:
	}
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
