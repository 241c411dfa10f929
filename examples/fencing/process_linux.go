package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a holder killed when the thread that starts it ends; the end of its standard input,
// which serves everywhere else, is not seen by a holder that is frozen.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
