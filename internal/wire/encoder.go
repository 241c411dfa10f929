package wire

import "encoding/binary"

// Encoder appends jute-encoded values to a buffer. The zero value is empty and
// ready to use. Encoding cannot fail.
type Encoder struct{ buf []byte }

// Bytes is the encoded bytes. It is valid until the next call of a method.
func (e *Encoder) Bytes() []byte { return e.buf }

// Len is the number of bytes encoded.
func (e *Encoder) Len() int { return len(e.buf) }

// Reset removes all encoded bytes and keeps the buffer's memory.
func (e *Encoder) Reset() { e.buf = e.buf[:0] }

// Truncate removes all but the first n bytes.
func (e *Encoder) Truncate(n int) { e.buf = e.buf[:n] }

// BeginFrame leaves room for a frame's length. It returns the mark to call
// EndFrame with. One Encoder can hold several frames.
func (e *Encoder) BeginFrame() (mark int) {
	mark = len(e.buf)
	e.Int(0)
	return mark
}

// EndFrame writes the length of the frame that began at mark.
func (e *Encoder) EndFrame(mark int) {
	binary.BigEndian.PutUint32(e.buf[mark:], uint32(len(e.buf)-mark-4))
}

// Int appends an int.
func (e *Encoder) Int(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }

// Long appends a long.
func (e *Encoder) Long(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

// Bool appends a boolean.
func (e *Encoder) Bool(v bool) {
	if v {
		e.buf = append(e.buf, 1)
	} else {
		e.buf = append(e.buf, 0)
	}
}

// Raw appends bytes without a length.
func (e *Encoder) Raw(v []byte) { e.buf = append(e.buf, v...) }

// Buffer appends a buffer. It encodes nil as the null buffer, of length -1.
func (e *Encoder) Buffer(v []byte) {
	if v == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(v)))
	e.buf = append(e.buf, v...)
}

// String appends a string.
func (e *Encoder) String(v string) {
	e.Int(int32(len(v)))
	e.buf = append(e.buf, v...)
}

// Strings appends a vector of strings.
func (e *Encoder) Strings(v []string) {
	e.Int(int32(len(v)))
	for _, s := range v {
		e.String(s)
	}
}

// ACLs appends a vector of ACL entries.
func (e *Encoder) ACLs(v []ACL) {
	e.Int(int32(len(v)))
	for _, a := range v {
		e.Int(a.Perms)
		e.String(a.Scheme)
		e.String(a.ID)
	}
}
