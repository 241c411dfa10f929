//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze stops a process as a long pause does: its connections stay open and nothing in it runs.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
