package wire

import "fmt"

// PasswordSize is the length of a session's password, in bytes.
const PasswordSize = 16

// ConnectRequest is the first frame of a client. With session zero it asks for a
// new session. Timeout is in milliseconds.
type ConnectRequest struct {
	Protocol int32
	LastZxid int64
	Timeout  int32
	Session  int64
	Password []byte
	ReadOnly bool
	// Short says that the frame has no readOnly byte, as with go-zookeeper and
	// with clients before 3.4. Then the reply has none either.
	Short bool
}

// Encode appends the record.
func (c *ConnectRequest) Encode(e *Encoder) {
	e.Int(c.Protocol)
	e.Long(c.LastZxid)
	e.Int(c.Timeout)
	e.Long(c.Session)
	e.Buffer(c.Password)
	if !c.Short {
		e.Bool(c.ReadOnly)
	}
}

// Decode reads the record. The password aliases the decoder's buffer.
func (c *ConnectRequest) Decode(d *Decoder) {
	c.Protocol = d.Int()
	c.LastZxid = d.Long()
	c.Timeout = d.Int()
	c.Session = d.Long()
	c.Password = d.Buffer()
	if c.Short = d.Len() == 0; !c.Short {
		c.ReadOnly = d.Bool()
	}
}

// DecodeFrame decodes a whole frame.
func (c *ConnectRequest) DecodeFrame(frame []byte) error {
	d := NewDecoder(frame)
	_ = d.Int() // its length
	c.Decode(&d)
	return d.Err()
}

// DecodeResponse decodes the answer to the request. It refuses the answer for another session than
// the one that was requested.
func (c *ConnectRequest) DecodeResponse(body []byte) (r ConnectResponse, err error) {
	d := NewDecoder(body)
	r.Decode(&d)
	if d.Err() == nil && c.Session != 0 && r.Session != 0 && r.Session != c.Session {
		return r, fmt.Errorf("an answer for session %#x to a request for session %#x: the peer does not speak "+
			"ZooKeeper's protocol", r.Session, c.Session)
	}
	return r, d.Err()
}

// ConnectResponse is the first frame of a server. Session zero says that the
// requested session has ended, or that the password was wrong.
type ConnectResponse struct {
	Protocol int32
	Timeout  int32
	Session  int64
	Password []byte
	ReadOnly bool
	Short    bool
}

// Refused reports that the requested session has ended, or that the password was wrong.
func (c *ConnectResponse) Refused() bool { return c.Session == 0 || c.Timeout <= 0 }

// Encode appends the record.
func (c *ConnectResponse) Encode(e *Encoder) {
	e.Int(c.Protocol)
	e.Int(c.Timeout)
	e.Long(c.Session)
	e.Buffer(c.Password)
	if !c.Short {
		e.Bool(c.ReadOnly)
	}
}

// Decode reads the record. The password aliases the decoder's buffer.
func (c *ConnectResponse) Decode(d *Decoder) {
	c.Protocol = d.Int()
	c.Timeout = d.Int()
	c.Session = d.Long()
	c.Password = d.Buffer()
	if c.Short = d.Len() == 0; !c.Short {
		c.ReadOnly = d.Bool()
	}
}
