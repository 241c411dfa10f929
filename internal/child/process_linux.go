package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// resume lets a stopped command go on if the terminal is this process's to give: it was stopped because
// it used the terminal from the background, or by Ctrl-Z. A hold cannot be put aside: this process, which
// the shell does not see stopped, would wait for ever.
func (p *process) resume() {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return
	}
	if hasTerminal(unix.Getpgrp()) {
		giveTerminal(p.cmd.Process.Pid)
	}
	if hasTerminal(p.cmd.Process.Pid) {
		p.signal(syscall.SIGCONT)
	}
}
