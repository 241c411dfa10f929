//go:build unix

package faults

import (
	"os"
	"syscall"
)

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// ownGroup has a stopped child woken and hung up by the kernel if this process dies without its cleanups.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
