package demo

import (
	"os/exec"
	"syscall"
)

// DieWithParent lets the kernel kill the child when the thread that starts it ends. On other
// systems a child ends when its standard input ends, but a stopped child does not read that.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
