//go:build !linux

package testproc

import "os"

// QuitAll ends a program.
func QuitAll(program *os.Process) { _ = program.Kill() }
