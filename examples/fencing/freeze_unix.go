//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze stops a process like a long pause: its connections stay open and none of its threads runs.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
