//go:build unix

package main

import (
	"os"
	"syscall"
)

var noticeSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
