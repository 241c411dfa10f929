package wire

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is returned for bytes that break the protocol: a record that ends
// early, or a length that is negative or larger than the rest of the bytes.
var ErrMalformed = errors.New("wire: malformed record")

// Decoder reads jute-encoded values from a frame. After its first failure every
// method returns a zero value, and Err returns the error.
//
// As in the Java server, a null string is read as "", and a vector with a
// negative length as nil.
type Decoder struct {
	buf      []byte
	err      error
	java     bool
	needPath bool
}

// NewDecoder returns a Decoder that reads from b. It neither copies nor changes
// b.
func NewDecoder(b []byte) Decoder { return Decoder{buf: b} }

// NewServerDecoder returns a Decoder for the bytes of a client. It returns each
// string as the Java server would send it back; see JavaString.
func NewServerDecoder(b []byte) Decoder { return Decoder{buf: b, java: true} }

// RefuseNullPaths makes the Decoder fail at a null path.
func (d *Decoder) RefuseNullPaths() { d.needPath = true }

// Err is nil or ErrMalformed.
func (d *Decoder) Err() error { return d.err }

// Rest is the bytes that have not been read. It aliases the decoder's buffer.
func (d *Decoder) Rest() []byte { return d.buf }

// Len is the number of bytes not read yet.
func (d *Decoder) Len() int { return len(d.buf) }

func (d *Decoder) failDecode() { d.err, d.buf = ErrMalformed, nil }

// takeBytes returns the next n bytes, or nil when there are fewer.
func (d *Decoder) takeBytes(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.buf) {
		d.failDecode()
		return nil
	}
	v := d.buf[:n:n]
	d.buf = d.buf[n:]
	return v
}

// Int reads an int.
func (d *Decoder) Int() int32 {
	if v := d.takeBytes(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

// Long reads a long.
func (d *Decoder) Long() int64 {
	if v := d.takeBytes(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Bool reads a boolean: any byte but zero is true.
func (d *Decoder) Bool() bool {
	v := d.takeBytes(1)
	return v != nil && v[0] != 0
}

// Buffer reads a buffer. The result aliases the decoder's buffer, so copy it to
// keep it. It is nil for a null buffer, and not nil for an empty one.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	if n == -1 || d.err != nil {
		return nil
	}
	return d.takeBytes(int(n))
}

// String reads a string.
func (d *Decoder) String() string { return d.javaText(d.Buffer()) }

// Path reads a string that is a request's path.
func (d *Decoder) Path() string {
	b := d.Buffer()
	if b == nil && d.needPath {
		d.failDecode()
	}
	return d.javaText(b)
}

func (d *Decoder) javaText(b []byte) string {
	if d.java {
		return JavaString(b)
	}
	return string(b)
}

// readCount reads a vector's length. Each element has at least minElementSize
// bytes, so readCount fails if the rest of the bytes is too short for the length.
func (d *Decoder) readCount(minElementSize int) int {
	n := int(d.Int())
	if n <= 0 {
		return 0
	}
	if n > len(d.buf)/minElementSize {
		d.failDecode()
		return 0
	}
	return n
}

// Strings reads a vector of strings.
func (d *Decoder) Strings() []string { return d.readVector(d.String) }

func (d *Decoder) readVector(read func() string) []string {
	n := d.readCount(4)
	if n == 0 {
		return nil
	}
	v := make([]string, 0, n)
	for range n {
		v = append(v, read())
	}
	if d.err != nil {
		return nil
	}
	return v
}

// Paths reads a vector of paths.
func (d *Decoder) Paths() []string { return d.readVector(d.Path) }

// ACLs reads a vector of ACL entries.
func (d *Decoder) ACLs() []ACL {
	n := d.readCount(12)
	if n == 0 {
		return nil
	}
	v := make([]ACL, 0, n)
	for range n {
		v = append(v, ACL{Perms: d.Int(), Scheme: d.String(), ID: d.String()})
	}
	if d.err != nil {
		return nil
	}
	return v
}
