package ensemble

import (
	"os/exec"
	"runtime"
)

// launcher starts processes from one OS thread that lives until close. Linux
// kills a child with Pdeathsig when the thread that started it ends, not the
// process; any other thread of a Go program may end before its time.
type launcher struct {
	requests chan launch
	done     chan struct{}
}

type launch struct {
	cmd    *exec.Cmd
	result chan error
}

func newLauncher() *launcher {
	l := &launcher{requests: make(chan launch), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for r := range l.requests {
		r.result <- r.cmd.Start()
	}
}

func (l *launcher) start(cmd *exec.Cmd) error {
	r := launch{cmd: cmd, result: make(chan error, 1)}
	l.requests <- r
	return <-r.result
}

// close is called once every process has ended.
func (l *launcher) close() {
	close(l.requests)
	<-l.done
}
