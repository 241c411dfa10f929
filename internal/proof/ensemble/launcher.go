package ensemble

import (
	"os/exec"
	"runtime"
)

// launcher starts processes from one OS thread that lives until close. Linux
// kills a child with Pdeathsig when the thread that started it ends, not when the
// process ends, and another thread of a Go program may end earlier.
type launcher struct {
	requests chan request
	done     chan struct{}
}

// request is a function to be run on the thread.
type request struct {
	do     func() error
	result chan error
}

func newLauncher() *launcher {
	l := &launcher{requests: make(chan request), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread() // for good: the thread may have mounts of its own, and ends with this goroutine
	for r := range l.requests {
		r.result <- r.do()
	}
}

func (l *launcher) start(cmd *exec.Cmd) error { return l.do(cmd.Start) }

// do runs f on the thread that starts the servers.
func (l *launcher) do(f func() error) error {
	r := request{do: f, result: make(chan error, 1)}
	l.requests <- r
	return <-r.result
}

// close ends the thread. It must be called when every process has ended.
func (l *launcher) close() {
	close(l.requests)
	<-l.done
}
