package watchdog

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Access is how the servers are reached.
type Access struct {
	// Servers are addresses, host:port.
	Servers []string
	// DialTimeout bounds one attempt to reach one server.
	DialTimeout time.Duration
	// Auth is presented on every connection.
	Auth []Credential
	// TLS, when not nil, encrypts the connections.
	TLS *TLS
}

// Credential is what a client authenticates with.
type Credential struct {
	Scheme string
	Auth   []byte
}

// Session is a session of the watched process.
type Session struct {
	// Epoch tells a process's sessions apart.
	Epoch int64
	// ID and Password identify it to any server.
	ID       int64
	Password []byte
	// Timeout is what the servers have granted, in whole milliseconds.
	Timeout time.Duration
	// Server is the one that the process is connected to: it is tried first.
	Server string
}

// The messages to the watchdog beside Access and Session.
type (
	// lease says until when, by now(), an epoch's session is proven to live.
	lease struct {
		epoch int64
		until time.Duration
	}
	// begin announces a command that is about to be started.
	begin struct{ id, epoch int64 }
	// runs says which process an announced command is.
	runs struct {
		id int64
		identity
	}
	// over says that a command has ended, or was not started.
	over struct{ id int64 }
	// farewell says that the process ends in order.
	farewell struct{}
)

// identity names a process for good: a number is given again, but never with the same start.
type identity struct {
	pid     int32
	started int64 // in clock ticks since boot; 0 where it cannot be known
}

type message interface {
	kind() int32
	encode(*wire.Encoder)
}

func (Access) kind() int32   { return 1 }
func (Session) kind() int32  { return 2 }
func (lease) kind() int32    { return 3 }
func (begin) kind() int32    { return 4 }
func (runs) kind() int32     { return 5 }
func (over) kind() int32     { return 6 }
func (farewell) kind() int32 { return 7 }

func (a Access) encode(e *wire.Encoder) {
	e.Strings(a.Servers)
	e.Long(int64(a.DialTimeout))
	e.Int(int32(len(a.Auth)))
	for _, c := range a.Auth {
		e.String(c.Scheme)
		e.Buffer(c.Auth)
	}
	e.Bool(a.TLS != nil)
	if a.TLS != nil {
		a.TLS.encode(e)
	}
}

func (s Session) encode(e *wire.Encoder) {
	e.Long(s.Epoch)
	e.Long(s.ID)
	e.Buffer(s.Password)
	e.Long(int64(s.Timeout))
	e.String(s.Server)
}

func (l lease) encode(e *wire.Encoder) { e.Long(l.epoch); e.Long(int64(l.until)) }
func (b begin) encode(e *wire.Encoder) { e.Long(b.id); e.Long(b.epoch) }
func (r runs) encode(e *wire.Encoder)  { e.Long(r.id); e.Int(r.pid); e.Long(r.started) }
func (o over) encode(e *wire.Encoder)  { e.Long(o.id) }
func (farewell) encode(*wire.Encoder)  {}

// frame is a message as it travels: its length, its kind and its fields.
func frame(m message) []byte {
	var e wire.Encoder
	mark := e.BeginFrame()
	e.Int(m.kind())
	m.encode(&e)
	e.EndFrame(mark)
	return e.Bytes()
}

var errMessage = errors.New("watchdog: not a message")

// decode reads the body of a frame. The message aliases nothing of it.
func decode(body []byte) (message, error) {
	d := wire.NewDecoder(body)
	m := decodeKind(d.Int(), &d)
	if m == nil || d.Err() != nil || d.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes", errMessage, len(body))
	}
	return m, nil
}

func decodeKind(kind int32, d *wire.Decoder) message {
	switch kind {
	case Access{}.kind():
		return decodeAccess(d)
	case Session{}.kind():
		return Session{Epoch: d.Long(), ID: d.Long(), Password: bytesOf(d), Timeout: time.Duration(d.Long()), Server: d.String()}
	case lease{}.kind():
		return lease{epoch: d.Long(), until: time.Duration(d.Long())}
	case begin{}.kind():
		return begin{id: d.Long(), epoch: d.Long()}
	case runs{}.kind():
		return runs{id: d.Long(), identity: identity{pid: d.Int(), started: d.Long()}}
	case over{}.kind():
		return over{id: d.Long()}
	case farewell{}.kind():
		return farewell{}
	}
	return nil
}

func decodeAccess(d *wire.Decoder) Access {
	a := Access{Servers: d.Strings(), DialTimeout: time.Duration(d.Long())}
	for n := d.Int(); n > 0 && d.Err() == nil; n-- {
		a.Auth = append(a.Auth, Credential{Scheme: d.String(), Auth: bytesOf(d)})
	}
	if d.Bool() {
		a.TLS = decodeTLS(d)
	}
	return a
}

func bytesOf(d *wire.Decoder) []byte { return append([]byte(nil), d.Buffer()...) }

// String hides the password.
func (s Session) String() string { return fmt.Sprintf("session %#x", s.ID) }

// GoString hides the password.
func (s Session) GoString() string { return s.String() }

// String hides the data.
func (c Credential) String() string { return c.Scheme + ":(hidden)" }

// GoString hides the data.
func (c Credential) GoString() string { return c.String() }
