package watchdog

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	socketVariable = "LOCKSTEP_WATCHDOG_SOCKET" // the environment variable of a watchdog with the number of its socket
	socketFD       = 0                          // the file descriptor at which a watchdog has its end of the socket
)

var (
	// ErrUnsupported is returned on systems without watchdogs.
	ErrUnsupported = errors.New("no watchdog on this system")

	errNotReady      = errors.New("the watchdog ended before it was ready: is WatchdogMain the first call in main?")
	errCommandMayRun = errors.New("watchdog: a command may still run")
)

// watchdogProcess is the parent's side of a watchdog.
type watchdogProcess struct {
	os     *os.Process
	socket *os.File
	ready  chan struct{} // closed when the watchdog has reported that it is armed
	exited chan struct{} // closed after the watchdog has ended and was waited for

	closing sync.Once
}

// sendMessages writes messages, and waits no longer than timeout. After an error the socket may
// have a part of a message, so send no more.
func (p *watchdogProcess) sendMessages(timeout time.Duration, messages ...message) error {
	if err := p.socket.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	for _, m := range messages {
		if _, err := p.socket.Write(encodeFrame(m)); err != nil {
			return err
		}
	}
	return nil
}

// closeSocket ends the socket.
func (p *watchdogProcess) closeSocket() { p.closing.Do(func() { p.socket.Close() }) }

// killProcess kills the process. It does not close the socket.
func (p *watchdogProcess) killProcess() { _ = p.os.Kill() } // the error says that the process has ended

// waitOrKill waits until the process has ended, and kills it after timeout. Then it closes the
// socket.
func (p *watchdogProcess) waitOrKill(timeout time.Duration) {
	late := time.AfterFunc(timeout, p.killProcess)
	defer late.Stop()
	<-p.exited
	p.closeSocket()
}
