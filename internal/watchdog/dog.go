//go:build unix

package watchdog

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// dog is the watchdog's own state: what its parent has told it.
type dog struct {
	pipe     int
	wait     *waiter
	armed    func() // called when there is something to do should the parent die
	unread   []byte // the beginning of a frame
	access   Access
	session  *Session
	commands map[int64]*command
	farewell bool
}

// command is one that the parent runs, or is about to.
type command struct {
	epoch   int64
	until   time.Duration // the end of its session's lease; 0: not known
	target  *target       // nil: not started yet, or not to be found
	unknown bool          // it may run, but nobody knows as what
	lapsed  bool
}

func newDog(pipe int, armed func()) (*dog, error) {
	w, err := newWaiter(pipe)
	return &dog{pipe: pipe, wait: w, armed: armed, commands: map[int64]*command{}}, err
}

// watch listens to the parent until the pipe ends. What was said before a lease's end is heard before that is
// acted upon, however late both are.
func (d *dog) watch() {
	for {
		if !d.wait.wait(d.nextLapse()) {
			d.lapse(now())
		} else if !d.listen() {
			return
		}
	}
}

// listen reads what has arrived; false when that is the end, or not from a parent.
func (d *dog) listen() bool {
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
		m, err := decode(d.unread[4 : 4+size])
		if err != nil {
			return false
		}
		d.unread = append(d.unread[:0], d.unread[4+size:]...)
		d.take(m)
	}
	return true
}

// take notes what the parent says.
func (d *dog) take(m message) {
	switch m := m.(type) {
	case Access:
		d.access = m
	case Session:
		if d.session == nil {
			d.armed()
		}
		d.session = &m
	case lease:
		for _, c := range d.commands {
			if c.epoch == m.epoch {
				c.until = max(c.until, m.until)
			}
		}
	case begin:
		d.commands[m.id] = &command{epoch: m.epoch, unknown: true}
	case runs:
		d.aim(m)
	case over:
		if c := d.commands[m.id]; c != nil && c.target != nil {
			c.target.release()
		}
		delete(d.commands, m.id)
	case farewell:
		d.farewell = true
	}
}

// aim finds the process of a command. One that has ended needs no more thought.
func (d *dog) aim(m runs) {
	c := d.commands[m.id]
	if c == nil {
		return
	}
	t, err := aim(m.identity)
	if err != nil {
		c.unknown = !errors.Is(err, errNoSuchProcess)
		return
	}
	c.target, c.unknown = t, false
	if c.lapsed {
		t.kill()
	}
}

// nextLapse is when the first lease of a command ends; 0 if none does.
func (d *dog) nextLapse() (first time.Duration) {
	for _, c := range d.commands {
		if !c.lapsed && c.until != 0 && (first == 0 || c.until < first) {
			first = c.until
		}
	}
	return first
}

// lapse kills the commands whose lease has ended: the parent has not, so it must be stopped.
func (d *dog) lapse(at time.Duration) {
	for _, c := range d.commands {
		if c.lapsed || c.until == 0 || c.until > at {
			continue
		}
		c.lapsed = true
		if c.target != nil {
			c.target.kill()
		}
	}
}

// succeed does what is left to do for a dead parent: its commands first, and if they are gone its session.
func (d *dog) succeed() error {
	if d.farewell || d.session == nil {
		return nil
	}
	if err := d.endCommands(time.Now().Add(d.session.Timeout)); err != nil {
		return err
	}
	return d.session.end(d.access)
}

// endCommands kills the commands and returns once all are gone. The error says that one may be left.
func (d *dog) endCommands(until time.Time) error {
	for _, c := range d.commands {
		if c.unknown {
			return errCommand
		}
	}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if !d.killAll() {
			return nil
		}
		if time.Now().After(until) {
			return errCommand
		}
		time.Sleep(pause)
	}
}

// killAll kills the commands that run, and reports whether there are any.
func (d *dog) killAll() (left bool) {
	for _, c := range d.commands {
		if c.target != nil && !c.target.gone() {
			c.target.kill()
			left = true
		}
	}
	return left
}

// ready tells the parent that the watchdog knows enough to be one.
func ready(w io.Writer) { _, _ = w.Write([]byte{'!'}) } // a parent that is gone does not mind
