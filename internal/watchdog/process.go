package watchdog

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	parentVariable = "LOCKSTEP_WATCHDOG_OF" // the environment variable of a watchdog with its parent's process id
	messagesFD     = 0                      // the file descriptor from which a watchdog reads messages
	answersFD      = 3                      // the file descriptor to which a watchdog writes that it is armed
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
	ready  chan struct{} // closed when the watchdog has reported that it is armed
	exited chan struct{} // closed after the watchdog has ended and was waited for

	closing sync.Once
}

// sendMessages writes messages, and waits no longer than timeout. After an error the pipe may have a part of a message, so send no more.
func (p *watchdogProcess) sendMessages(timeout time.Duration, messages ...message) error {
	if err := p.pipe.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
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

// killProcess kills the process. It does not close the pipe.
func (p *watchdogProcess) killProcess() { _ = p.os.Kill() } // the error says that the process has ended

// waitOrKill waits until the process has ended, and kills it after timeout. Then it closes the pipe.
func (p *watchdogProcess) waitOrKill(timeout time.Duration) {
	late := time.AfterFunc(timeout, p.killProcess)
	defer late.Stop()
	<-p.exited
	p.closePipe()
}
