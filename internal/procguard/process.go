package procguard

import (
	"os"
	"os/exec"
	"runtime"
)

// process is a running command. On Unix it leads a process group of its own.
type process struct {
	cmd          *exec.Cmd
	guard        Guard
	ended        chan struct{}    // closed after the command has ended and was waited for
	interrupt    os.Signal        // by which the terminal has ended the command, or nil; known once ended is closed
	childSignals <-chan os.Signal // SIGCHLD and SIGCONT: the command may have been stopped; nil without a terminal
}

func startProcess(cmd *exec.Cmd, g Guard) (*process, error) {
	p := &process{cmd: cmd, guard: g, ended: make(chan struct{})}
	started := make(chan error)
	go p.runOnOneThread(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// runOnOneThread starts the command and waits for it on one OS thread. Linux kills the command when
// the thread that started it ends, and the other threads of a Go program may end before the
// program.
func (p *process) runOnOneThread(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	takeTerminalBack := p.prepareGroup()
	err := p.cmd.Start()
	if err == nil {
		p.guard.Started(p.cmd.Process.Pid)
	}
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // ProcessState says how the command ended
	}
	takeTerminalBack()
	if err == nil {
		close(p.ended)
	}
}
