package watchdog

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Access says how to reach the servers.
type Access struct {
	// Servers are addresses, host:port.
	Servers []string
	// DialTimeout limits the time to connect to one server.
	DialTimeout time.Duration
	// Auth are the credentials to send on every connection.
	Auth []Credential
	// TLS, unless it is nil, is the configuration of encrypted connections.
	TLS *TLS
}

// Credential is a scheme of authentication and its data.
type Credential struct {
	Scheme string
	Auth   []byte
}

// Session is a session of the watched process.
type Session struct {
	// Epoch is the number of the session among those of the process.
	Epoch int64
	// ID and Password identify the session to any server.
	ID       int64
	Password []byte
	// Timeout is the session timeout that the servers have granted, in whole milliseconds.
	Timeout time.Duration
	// Server is the address to which the process is connected. The watchdog tries it first.
	Server string
}

// The messages to the watchdog, besides Access and Session.
type (
	// leaseExtended has the end of the lease of an epoch's session, by leaseClock.
	leaseExtended struct {
		epoch int64
		end   time.Duration
	}
	// leaseShortened is a leaseExtended with an earlier end: a server has granted a smaller session
	// timeout.
	leaseShortened leaseExtended
	// commandBegins says that a command is about to be started.
	commandBegins struct{ id, epoch int64 }
	// commandStarted says which process a command is.
	commandStarted struct {
		id int64
		processIdentity
	}
	// commandEnded says that a command has ended, or could not be started.
	commandEnded struct{ id int64 }
	// parentCloses is the closing message: the parent ends the watchdog itself, and its session is
	// not to be closed.
	parentCloses struct{}
)

// processIdentity identifies a process. The system may give its number to a later process, but that
// has another start.
type processIdentity struct {
	pid     int32
	started int64 // in clock ticks since boot; 0 if it is not known
}

type message interface {
	messageType() int32
	encodeFields(*wire.Encoder)
}

func (Access) messageType() int32         { return 1 }
func (Session) messageType() int32        { return 2 }
func (leaseExtended) messageType() int32  { return 3 }
func (commandBegins) messageType() int32  { return 4 }
func (commandStarted) messageType() int32 { return 5 }
func (commandEnded) messageType() int32   { return 6 }
func (parentCloses) messageType() int32   { return 7 }
func (leaseShortened) messageType() int32 { return 8 }

func (a Access) encodeFields(e *wire.Encoder) {
	e.Strings(a.Servers)
	e.Long(int64(a.DialTimeout))
	e.Int(int32(len(a.Auth)))
	for _, c := range a.Auth {
		e.String(c.Scheme)
		e.Buffer(c.Auth)
	}
	e.Bool(a.TLS != nil)
	if a.TLS != nil {
		a.TLS.encodeFields(e)
	}
}

func (s Session) encodeFields(e *wire.Encoder) {
	e.Long(s.Epoch)
	e.Long(s.ID)
	e.Buffer(s.Password)
	e.Long(int64(s.Timeout))
	e.String(s.Server)
}

func (l leaseExtended) encodeFields(e *wire.Encoder)  { e.Long(l.epoch); e.Long(int64(l.end)) }
func (l leaseShortened) encodeFields(e *wire.Encoder) { leaseExtended(l).encodeFields(e) }
func (c commandBegins) encodeFields(e *wire.Encoder)  { e.Long(c.id); e.Long(c.epoch) }
func (c commandStarted) encodeFields(e *wire.Encoder) { e.Long(c.id); e.Int(c.pid); e.Long(c.started) }
func (c commandEnded) encodeFields(e *wire.Encoder)   { e.Long(c.id) }
func (parentCloses) encodeFields(*wire.Encoder)       {}

// encodeFrame encodes a message for the socket: its length, its type and its fields.
func encodeFrame(m message) []byte {
	var e wire.Encoder
	mark := e.BeginFrame()
	e.Int(m.messageType())
	m.encodeFields(&e)
	e.EndFrame(mark)
	return e.Bytes()
}

var errMessage = errors.New("watchdog: not a message")

// decodeMessage decodes the body of a frame. The message does not share memory with it.
func decodeMessage(body []byte) (message, error) {
	d := wire.NewDecoder(body)
	m := decodeFields(d.Int(), &d)
	if m == nil || d.Err() != nil || d.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes", errMessage, len(body))
	}
	return m, nil
}

func decodeFields(messageType int32, d *wire.Decoder) message {
	switch messageType {
	case Access{}.messageType():
		return decodeAccess(d)
	case Session{}.messageType():
		return Session{Epoch: d.Long(), ID: d.Long(), Password: cloneBuffer(d), Timeout: time.Duration(d.Long()),
			Server: d.String()}
	case leaseExtended{}.messageType():
		return leaseExtended{epoch: d.Long(), end: time.Duration(d.Long())}
	case leaseShortened{}.messageType():
		return leaseShortened{epoch: d.Long(), end: time.Duration(d.Long())}
	case commandBegins{}.messageType():
		return commandBegins{id: d.Long(), epoch: d.Long()}
	case commandStarted{}.messageType():
		return commandStarted{id: d.Long(), processIdentity: processIdentity{pid: d.Int(), started: d.Long()}}
	case commandEnded{}.messageType():
		return commandEnded{id: d.Long()}
	case parentCloses{}.messageType():
		return parentCloses{}
	}
	return nil
}

func decodeAccess(d *wire.Decoder) Access {
	a := Access{Servers: d.Strings(), DialTimeout: time.Duration(d.Long())}
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		a.Auth = append(a.Auth, Credential{Scheme: d.String(), Auth: cloneBuffer(d)})
	}
	if d.Bool() {
		a.TLS = decodeTLS(d)
	}
	return a
}

func cloneBuffer(d *wire.Decoder) []byte { return append([]byte(nil), d.Buffer()...) }

// String hides the password.
func (s Session) String() string { return fmt.Sprintf("session %#x", s.ID) }

// GoString hides the password.
func (s Session) GoString() string { return s.String() }

// String hides the data.
func (c Credential) String() string { return c.Scheme + ":(hidden)" }

// GoString hides the data.
func (c Credential) GoString() string { return c.String() }
