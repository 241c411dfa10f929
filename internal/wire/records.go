package wire

// Identity is an identity of a client: a scheme (world, digest, auth, ip) and an
// id in that scheme.
type Identity struct {
	Scheme string
	ID     string
}

// ACL is an entry of an ACL: it grants permissions to the identities that match
// its scheme and its id.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// WorldACL grants the permissions to everybody.
func WorldACL(perms int32) []ACL { return []ACL{{Perms: perms, Scheme: "world", ID: "anyone"}} }

// Stat is the metadata of a node. Times are in milliseconds since 1970.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Encode appends the record.
func (s *Stat) Encode(e *Encoder) {
	e.Long(s.Czxid)
	e.Long(s.Mzxid)
	e.Long(s.Ctime)
	e.Long(s.Mtime)
	e.Int(s.Version)
	e.Int(s.Cversion)
	e.Int(s.Aversion)
	e.Long(s.EphemeralOwner)
	e.Int(s.DataLength)
	e.Int(s.NumChildren)
	e.Long(s.Pzxid)
}

// Decode reads the record.
func (s *Stat) Decode(d *Decoder) {
	s.Czxid = d.Long()
	s.Mzxid = d.Long()
	s.Ctime = d.Long()
	s.Mtime = d.Long()
	s.Version = d.Int()
	s.Cversion = d.Int()
	s.Aversion = d.Int()
	s.EphemeralOwner = d.Long()
	s.DataLength = d.Int()
	s.NumChildren = d.Int()
	s.Pzxid = d.Long()
}

// RequestHeader begins each frame from a client, except the first frame.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// Encode appends the record.
func (h RequestHeader) Encode(e *Encoder) {
	e.Int(h.Xid)
	e.Int(int32(h.Op))
}

// Decode reads the record.
func (h *RequestHeader) Decode(d *Decoder) {
	h.Xid = d.Int()
	h.Op = Op(d.Int())
}

// ReplyHeaderSize is the length of an encoded ReplyHeader, in bytes.
const ReplyHeaderSize = 16

// ReplyHeader begins each frame from a server, except the first frame.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// Encode appends the record.
func (h ReplyHeader) Encode(e *Encoder) {
	e.Int(h.Xid)
	e.Long(h.Zxid)
	e.Int(int32(h.Err))
}

// Decode reads the record.
func (h *ReplyHeader) Decode(d *Decoder) {
	h.Xid = d.Int()
	h.Zxid = d.Long()
	h.Err = Code(d.Int())
}

// EncodeAt overwrites the header that was encoded at an offset. A server encodes
// the body of the answer before it knows the header.
func (h ReplyHeader) EncodeAt(e *Encoder, at int) {
	end := e.buf
	e.buf = e.buf[:at]
	h.Encode(e)
	e.buf = end
}

// MultiHeader comes before each part of a multi. A header with Done comes after
// the last part.
type MultiHeader struct {
	Op   Op
	Done bool
	Err  Code
}

// MultiEnd is the header after the last part.
var MultiEnd = MultiHeader{Op: OpError, Done: true, Err: -1}

// Encode appends the record.
func (h MultiHeader) Encode(e *Encoder) {
	e.Int(int32(h.Op))
	e.Bool(h.Done)
	e.Int(int32(h.Err))
}

// Decode reads the record.
func (h *MultiHeader) Decode(d *Decoder) {
	h.Op = Op(d.Int())
	h.Done = d.Bool()
	h.Err = Code(d.Int())
}

// WatchEvent is the body of a frame whose xid is XidNotify.
type WatchEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Encode appends the record.
func (w WatchEvent) Encode(e *Encoder) {
	e.Int(int32(w.Type))
	e.Int(w.State)
	e.String(w.Path)
}

// Decode reads the record.
func (w *WatchEvent) Decode(d *Decoder) {
	w.Type = EventType(d.Int())
	w.State = d.Int()
	w.Path = d.String()
}
