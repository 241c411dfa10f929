package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a worker killed when the thread that starts it ends; the end of its standard input,
// which serves everywhere else, is not seen by a worker that is stopped.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
