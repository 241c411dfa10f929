//go:build unix

package watchdog

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// parentMonitor is the watchdog's state: what its parent has sent.
type parentMonitor struct {
	pipe           int
	waiter         *pipeWaiter
	onArmed        func() // called with the first session: from now on the watchdog acts if the parent dies
	unread         []byte // the beginning of a frame
	access         Access
	session        *Session
	commands       map[int64]*monitoredCommand
	closedByParent bool
}

// monitoredCommand is a command that the parent runs or is about to run.
type monitoredCommand struct {
	epoch        int64
	leaseEnd     time.Duration   // the end of its session's lease; 0: not known
	process      *commandProcess // nil: not started yet, or not to be found
	unidentified bool            // it may run, but its process is not known
	leaseEnded   bool
}

func newParentMonitor(pipe int, armed func()) (*parentMonitor, error) {
	w, err := newPipeWaiter(pipe)
	return &parentMonitor{pipe: pipe, waiter: w, onArmed: armed, commands: map[int64]*monitoredCommand{}}, err
}

// monitorParent reads the pipe until it ends. It reads all messages that were sent before a lease's end before it acts on that end,
// even if it runs late.
func (d *parentMonitor) monitorParent() {
	for {
		if !d.waiter.waitUntil(d.nextLeaseEnd()) {
			d.killCommandsWithoutLease(leaseClock())
		} else if !d.readMessages() {
			return
		}
	}
}

// readMessages reads what has arrived. It returns false at the end of the pipe or for an invalid message.
func (d *parentMonitor) readMessages() bool {
	var buf [4096]byte
	n, err := unix.Read(d.pipe, buf[:])
	if err == unix.EINTR || err == unix.EAGAIN {
		return true
	}
	if err != nil || n <= 0 {
		return false
	}
	d.unread = append(d.unread, buf[:n]...)
	for len(d.unread) >= 4 {
		size := int(wire.FrameLength([4]byte(d.unread)))
		if size < 0 || size > wire.MaxFrame {
			return false
		}
		if len(d.unread) < 4+size {
			break
		}
		m, err := decodeMessage(d.unread[4 : 4+size])
		if err != nil {
			return false
		}
		d.unread = append(d.unread[:0], d.unread[4+size:]...)
		d.handleMessage(m)
	}
	return true
}

// handleMessage applies a message to the state.
func (d *parentMonitor) handleMessage(m message) {
	switch m := m.(type) {
	case Access:
		d.access = m
	case Session:
		if d.session == nil {
			d.onArmed()
		}
		d.session = &m
	case leaseExtended:
		for _, c := range d.commands {
			if c.epoch == m.epoch {
				c.leaseEnd = max(c.leaseEnd, m.end)
			}
		}
	case commandBegins:
		d.commands[m.id] = &monitoredCommand{epoch: m.epoch, unidentified: true}
	case commandStarted:
		d.openCommand(m)
	case commandEnded:
		if c := d.commands[m.id]; c != nil && c.process != nil {
			c.process.closeHandle()
		}
		delete(d.commands, m.id)
	case parentCloses:
		d.closedByParent = true
	}
}

// openCommand opens the process of a command, if it has not ended.
func (d *parentMonitor) openCommand(m commandStarted) {
	c := d.commands[m.id]
	if c == nil {
		return
	}
	t, err := openProcess(m.processIdentity)
	if err != nil {
		c.unidentified = !errors.Is(err, errNoSuchProcess)
		return
	}
	c.process, c.unidentified = t, false
	if c.leaseEnded {
		t.killGroup()
	}
}

// nextLeaseEnd returns when the first lease of a command ends; 0 without one.
func (d *parentMonitor) nextLeaseEnd() (first time.Duration) {
	for _, c := range d.commands {
		if !c.leaseEnded && c.leaseEnd != 0 && (first == 0 || c.leaseEnd < first) {
			first = c.leaseEnd
		}
	}
	return first
}

// killCommandsWithoutLease kills the commands with a lease that has ended. The parent has not killed them, so it must be stopped.
func (d *parentMonitor) killCommandsWithoutLease(at time.Duration) {
	for _, c := range d.commands {
		if c.leaseEnded || c.leaseEnd == 0 || c.leaseEnd > at {
			continue
		}
		c.leaseEnded = true
		if c.process != nil {
			c.process.killGroup()
		}
	}
}

// endSessionOfDeadParent kills the commands of a dead parent and then closes its session. A parent that closed the watchdog needs neither.
func (d *parentMonitor) endSessionOfDeadParent() error {
	if d.closedByParent || d.session == nil {
		return nil
	}
	if err := d.killCommands(time.Now().Add(d.session.Timeout)); err != nil {
		return err
	}
	return d.session.closeOnServers(d.access)
}

// killCommands kills the commands and returns once all have ended. It returns an error if one may still run.
func (d *parentMonitor) killCommands(until time.Time) error {
	for _, c := range d.commands {
		if c.unidentified {
			return errCommandMayRun
		}
	}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if !d.killRunning() {
			return nil
		}
		if time.Now().After(until) {
			return errCommandMayRun
		}
		time.Sleep(pause)
	}
}

// killRunning kills the commands that run, and reports whether there are any.
func (d *parentMonitor) killRunning() (left bool) {
	for _, c := range d.commands {
		if c.process != nil && !c.process.isGroupGone() {
			c.process.killGroup()
			left = true
		}
	}
	return left
}

// signalReady tells the parent that the watchdog is armed.
func signalReady(w io.Writer) { _, _ = w.Write([]byte{'!'}) } // an error means that the parent has ended
