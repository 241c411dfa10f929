package ensemble

import "syscall"

// childAttr puts a server into a process group of its own, so that a Ctrl-C at
// the terminal reaches it through Close only, and has it killed when the thread
// that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
