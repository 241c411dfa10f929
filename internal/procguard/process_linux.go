package procguard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func setParentDeathSignal(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// resumeStopped continues a stopped command, if this process or the command has the terminal. Such
// a command was stopped because it used the terminal from the background, or by Ctrl-Z. The shell
// does not notice, since this process is not stopped. So only this process can continue the
// command.
func (p *process) resumeStopped() {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return
	}
	if isForegroundGroup(unix.Getpgrp()) {
		setForegroundGroup(p.cmd.Process.Pid)
	}
	if isForegroundGroup(p.cmd.Process.Pid) {
		p.signalGroup(syscall.SIGCONT)
	}
}
