//go:build unix

package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// startWatchdog starts a watchdog. It is in a session of its own, without a terminal, so that what is sent to this
// process's group or terminal does not reach it. It inherits the pipe's end, a pipe for its answer, and nothing else.
func startWatchdog() (*watchdogProcess, error) {
	exe, err := executablePath()
	if err != nil {
		return nil, fmt.Errorf("the program's file: %w", err)
	}
	heard, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer heard.Close()
	answers, answer, err := os.Pipe()
	if err != nil {
		pipe.Close()
		return nil, err
	}
	defer answer.Close()
	cmd := exec.Command(exe)
	cmd.Args = []string{"lockstep watchdog of process " + strconv.Itoa(os.Getpid())}
	cmd.Env = append(os.Environ(), parentVariable+"="+strconv.Itoa(os.Getpid()))
	cmd.Stdin, cmd.ExtraFiles = heard, []*os.File{answer}
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

// waitForExit waits for the process's answer and for its end.
func (p *watchdogProcess) waitForExit(cmd *exec.Cmd, answers *os.File) {
	defer close(p.exited)
	if n, _ := answers.Read(make([]byte, 1)); n == 1 {
		close(p.ready)
	}
	answers.Close()
	_ = cmd.Wait() // somebody else in this program may wait for every child
}
