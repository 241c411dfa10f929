package watchdog

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	parentVariable = "LOCKSTEP_WATCHDOG_OF" // in the environment of a watchdog: its parent's process id
	messagesFD     = 0                      // where a watchdog reads messages
	answersFD      = 3                      // where it reports that it is ready
)

var (
	// ErrUnsupported is returned on systems without watchdogs.
	ErrUnsupported = errors.New("no watchdog on this system")

	errNotReady      = errors.New("the watchdog ended before it was ready: is WatchdogMain the first call in main?")
	errCommandMayRun = errors.New("watchdog: a command may still run")
)

// IsWatchdog reports whether this process was started as a watchdog.
func IsWatchdog() bool { return os.Getenv(parentVariable) != "" }

// watchdogProcess is the parent's side of a watchdog.
type watchdogProcess struct {
	os     *os.Process
	pipe   *os.File
	ready  chan struct{} // closed when it has reported that it is armed
	exited chan struct{} // closed after the wait for the ended process

	closing sync.Once
}

// sendMessages writes messages, and waits for no longer than patience. After an error nothing more can be sent.
func (p *watchdogProcess) sendMessages(patience time.Duration, messages ...message) error {
	if err := p.pipe.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, m := range messages {
		if _, err := p.pipe.Write(encodeFrame(m)); err != nil {
			return err
		}
	}
	return nil
}

// closePipe ends the pipe.
func (p *watchdogProcess) closePipe() { p.closing.Do(func() { p.pipe.Close() }) }

// killProcess ends the process and leaves the pipe: without its reader it does no harm.
func (p *watchdogProcess) killProcess() { _ = p.os.Kill() } // it may have ended

// waitOrKill waits until the process has ended, which it is made to do after patience. The pipe ends after that, if it
// has not before.
func (p *watchdogProcess) waitOrKill(patience time.Duration) {
	late := time.AfterFunc(patience, p.killProcess)
	defer late.Stop()
	<-p.exited
	p.closePipe()
}
