//go:build unix

package faults

import (
	"os"
	"syscall"
)

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// newProcessGroup lets the kernel continue and hang up a stopped child if this process dies.
func newProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
