package watchdog

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	marker     = "LOCKSTEP_WATCHDOG_OF" // in the environment of a watchdog: its parent's process id
	commandsFD = 0                      // where a watchdog listens
	answersFD  = 3                      // and where it answers
)

var (
	// ErrUnsupported is returned where there can be no watchdog.
	ErrUnsupported = errors.New("no watchdog on this system")

	errNotReady = errors.New("the watchdog ended before it was ready: is WatchdogMain the first call in main?")
	errCommand  = errors.New("watchdog: a command may still run")
)

// Asked reports whether this process was started as a watchdog.
func Asked() bool { return os.Getenv(marker) != "" }

// process is a watchdog, as its parent sees it.
type process struct {
	os    *os.Process
	pipe  *os.File
	ready chan struct{} // closed when it has said that it is
	gone  chan struct{} // closed when it has ended and was waited for

	closing sync.Once
}

// send writes messages, and waits for no longer than patience. After an error nothing more can be sent.
func (p *process) send(patience time.Duration, messages ...message) error {
	if err := p.pipe.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, m := range messages {
		if _, err := p.pipe.Write(frame(m)); err != nil {
			return err
		}
	}
	return nil
}

// hangUp ends the pipe.
func (p *process) hangUp() { p.closing.Do(func() { p.pipe.Close() }) }

// kill ends the process and leaves the pipe: without its reader it does no harm.
func (p *process) kill() { _ = p.os.Kill() } // it may have ended

// end waits until the process has ended, which it is made to do after patience. The pipe ends after that, if it
// has not before.
func (p *process) end(patience time.Duration) {
	late := time.AfterFunc(patience, p.kill)
	defer late.Stop()
	<-p.gone
	p.hangUp()
}
