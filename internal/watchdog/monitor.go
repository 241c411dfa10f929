//go:build unix

package watchdog

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// parentMonitor is the state of the watchdog, from the messages of its parent.
type parentMonitor struct {
	socket         int
	waiter         *socketWaiter
	onArmed        func() // called at the first session: from now on the watchdog closes the session if the parent dies
	unread         []byte // the beginning of a frame that is not complete
	access         Access
	session        *Session
	commands       map[int64]*monitoredCommand
	closedByParent bool
	invalid        bool // the parent has sent what is no message: nothing is known of its end
}

// monitoredCommand is a command that the parent runs or is about to run.
type monitoredCommand struct {
	epoch        int64
	leaseEnd     time.Duration   // the end of its session's lease; 0 if it is not known
	process      *commandProcess // nil if the command has not started, has ended, or is unidentified
	unidentified bool            // the command may run, but its process is not known
	leaseEnded   bool            // the lease has ended, and the command was killed if its process was known
}

func newParentMonitor(socket int, onArmed func()) (*parentMonitor, error) {
	w, err := newSocketWaiter(socket)
	return &parentMonitor{socket: socket, waiter: w, onArmed: onArmed, commands: map[int64]*monitoredCommand{}}, err
}

// monitorParent reads the socket until it ends or has an invalid message. When a lease has ended,
// it first reads all messages in the socket, since they may extend the lease. So it kills no
// command too early if the system runs this process late.
func (p *parentMonitor) monitorParent() {
	for {
		if !p.waiter.waitUntil(p.nextLeaseEnd()) {
			p.killCommandsWithoutLease(leaseClock())
		} else if !p.readMessages() {
			return
		}
	}
}

// readMessages reads the messages that have arrived. It returns false at the end of the socket and
// after an invalid message.
func (p *parentMonitor) readMessages() bool {
	var buf [4096]byte
	n, err := unix.Read(p.socket, buf[:])
	if err == unix.EINTR || err == unix.EAGAIN {
		return true
	}
	if err != nil || n <= 0 { // also ECONNRESET, with which a socket ends whose parent has not read the answer
		return false
	}
	p.unread = append(p.unread, buf[:n]...)
	for len(p.unread) >= 4 {
		size := int(wire.FrameLength([4]byte(p.unread)))
		if size < 0 || size > wire.MaxFrame {
			p.invalid = true
			return false
		}
		if len(p.unread) < 4+size {
			break
		}
		m, err := decodeMessage(p.unread[4 : 4+size])
		if err != nil {
			p.invalid = true
			return false
		}
		p.unread = append(p.unread[:0], p.unread[4+size:]...)
		p.handleMessage(m)
	}
	return true
}

// handleMessage applies a message to the state.
func (p *parentMonitor) handleMessage(m message) {
	switch m := m.(type) {
	case Access:
		p.access = m
	case Session:
		if p.session == nil {
			p.onArmed()
		}
		p.session = &m
	case leaseExtended:
		for _, c := range p.commands {
			if c.epoch == m.epoch {
				c.leaseEnd = max(c.leaseEnd, m.end)
			}
		}
	case leaseShortened:
		for _, c := range p.commands {
			if c.epoch == m.epoch && c.leaseEnd != 0 {
				c.leaseEnd = min(c.leaseEnd, m.end)
			}
		}
	case commandBegins:
		p.commands[m.id] = &monitoredCommand{epoch: m.epoch, unidentified: true}
	case commandStarted:
		p.openCommand(m)
	case commandEnded:
		if c := p.commands[m.id]; c != nil && c.process != nil {
			c.process.closeHandle()
		}
		delete(p.commands, m.id)
	case parentCloses:
		p.closedByParent = true
	}
}

// openCommand opens the process of a command. If the lease of the command has ended before, it
// kills the command.
func (p *parentMonitor) openCommand(m commandStarted) {
	c := p.commands[m.id]
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

// nextLeaseEnd returns when the next lease of a command ends, or 0 if there is none.
func (p *parentMonitor) nextLeaseEnd() (first time.Duration) {
	for _, c := range p.commands {
		if !c.leaseEnded && c.leaseEnd != 0 && (first == 0 || c.leaseEnd < first) {
			first = c.leaseEnd
		}
	}
	return first
}

// killCommandsWithoutLease kills the commands whose lease has ended. A parent that is not stopped
// kills them earlier.
func (p *parentMonitor) killCommandsWithoutLease(at time.Duration) {
	for _, c := range p.commands {
		if c.leaseEnded || c.leaseEnd == 0 || c.leaseEnd > at {
			continue
		}
		c.leaseEnded = true
		if c.process != nil {
			c.process.killGroup()
		}
	}
}

// endSessionOfDeadParent kills the commands of a dead parent and then closes its session. It does
// nothing after the closing message, and after an invalid one: the parent may live, and starts
// another watchdog.
func (p *parentMonitor) endSessionOfDeadParent() error {
	if p.invalid {
		return errMessage
	}
	if p.closedByParent || p.session == nil {
		return nil
	}
	if err := p.killCommands(time.Now().Add(p.session.Timeout)); err != nil {
		return err
	}
	return p.session.closeOnServers(p.access)
}

// killCommands kills the commands and returns once all have ended. It returns an error if one may
// still run.
func (p *parentMonitor) killCommands(until time.Time) error {
	for pause := 100 * time.Microsecond; p.killRunning(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Now().After(until) {
			return errCommandMayRun
		}
		time.Sleep(pause)
	}
	for _, c := range p.commands {
		if c.unidentified {
			return errCommandMayRun
		}
	}
	return nil
}

// killRunning kills the commands that run, and reports whether there were any.
func (p *parentMonitor) killRunning() (left bool) {
	for _, c := range p.commands {
		if c.process != nil && !c.process.isGroupGone() {
			c.process.killGroup()
			left = true
		}
	}
	return left
}
