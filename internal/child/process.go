package child

import (
	"os"
	"os/exec"
	"runtime"
)

// process is a running command, in a process group of its own where there are such.
type process struct {
	cmd   *exec.Cmd
	guard Guard
	done  chan struct{}    // closed when the command has ended and was waited for
	jobs  <-chan os.Signal // may tell that the command was stopped; nil without a terminal
}

func start(cmd *exec.Cmd, g Guard) (*process, error) {
	p := &process{cmd: cmd, guard: g, done: make(chan struct{})}
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// live starts the command and waits for it on one OS thread: on Linux the command is killed when the
// thread that has started it ends, and other threads of a Go program may end before the program does.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	giveBack := p.prepare()
	err := p.cmd.Start()
	if err == nil {
		p.guard.Started(p.cmd.Process.Pid)
	}
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // the state says how it ended
	}
	p.guard.Ended()
	giveBack()
	if err == nil {
		close(p.done)
	}
}
