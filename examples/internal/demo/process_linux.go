package demo

import (
	"os/exec"
	"syscall"
)

// DieWithParent lets the kernel kill the child when the thread that starts it ends. Elsewhere children end with their standard input, but a
// stopped child does not read it.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
