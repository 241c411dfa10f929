//go:build unix

package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// startWatchdog starts a watchdog. The watchdog is in a Unix session of its own, without a terminal, so that it does not get the signals of this
// process's group and terminal. It inherits the reading end of the pipe, a pipe for its answer, and no other file.
func startWatchdog() (*watchdogProcess, error) {
	exe, err := executablePath()
	if err != nil {
		return nil, fmt.Errorf("find the program's file: %w", err)
	}
	readEnd, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer readEnd.Close()
	answers, answer, err := os.Pipe()
	if err != nil {
		pipe.Close()
		return nil, err
	}
	defer answer.Close()
	cmd := exec.Command(exe)
	cmd.Args = []string{"lockstep watchdog of process " + strconv.Itoa(os.Getpid())}
	cmd.Env = append(os.Environ(), parentVariable+"="+strconv.Itoa(os.Getpid()))
	cmd.Stdin, cmd.ExtraFiles = readEnd, []*os.File{answer}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		pipe.Close()
		answers.Close()
		return nil, err
	}
	p := &watchdogProcess{os: cmd.Process, pipe: pipe, ready: make(chan struct{}), exited: make(chan struct{})}
	go p.waitForExit(cmd, answers)
	return p, nil
}

// waitForExit waits for the watchdog's answer and for its end.
func (p *watchdogProcess) waitForExit(cmd *exec.Cmd, answers *os.File) {
	defer close(p.exited)
	if n, _ := answers.Read(make([]byte, 1)); n == 1 {
		close(p.ready)
	}
	answers.Close()
	_ = cmd.Wait() // it fails if other code of this program waits for all children; the watchdog has ended in any case
}
