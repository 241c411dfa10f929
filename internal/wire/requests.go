package wire

// Request is the body of a request, after its header.
type Request interface {
	// Encode appends the record.
	Encode(e *Encoder)
	// Decode reads the record. Its buffers alias the decoder's buffer.
	Decode(d *Decoder)
}

// CreateRequest is the body of create, create2, createContainer and, with
// HasTTL, createTTL. TTL is in milliseconds.
type CreateRequest struct {
	Path   string
	Data   []byte
	ACL    []ACL
	Flags  int32
	HasTTL bool
	TTL    int64
}

// Encode appends the record.
func (r *CreateRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	e.ACLs(r.ACL)
	e.Int(r.Flags)
	if r.HasTTL {
		e.Long(r.TTL)
	}
}

// Decode reads the record. Set HasTTL before.
func (r *CreateRequest) Decode(d *Decoder) {
	r.Path, r.Data, r.ACL, r.Flags = d.Path(), d.Buffer(), d.ACLs(), d.Int()
	if r.HasTTL {
		r.TTL = d.Long()
	}
}

// PathRequest is the body of sync, getACL, getEphemerals and
// getAllChildrenNumber.
type PathRequest struct{ Path string }

// Encode appends the record.
func (r *PathRequest) Encode(e *Encoder) { e.String(r.Path) }

// Decode reads the record.
func (r *PathRequest) Decode(d *Decoder) { r.Path = d.Path() }

// WatchRequest is the body of exists, getData, getChildren and getChildren2.
type WatchRequest struct {
	Path  string
	Watch bool
}

// Encode appends the record.
func (r *WatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bool(r.Watch)
}

// Decode reads the record.
func (r *WatchRequest) Decode(d *Decoder) { r.Path, r.Watch = d.Path(), d.Bool() }

// NumberRequest is the body of delete and check, whose number is a version, of
// addWatch, whose number is a mode, and of checkWatches and removeWatches, whose
// number is a watcher type.
type NumberRequest struct {
	Path   string
	Number int32
}

// Encode appends the record.
func (r *NumberRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int(r.Number)
}

// Decode reads the record.
func (r *NumberRequest) Decode(d *Decoder) { r.Path, r.Number = d.Path(), d.Int() }

// SetDataRequest is the body of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Encode appends the record.
func (r *SetDataRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	e.Int(r.Version)
}

// Decode reads the record.
func (r *SetDataRequest) Decode(d *Decoder) {
	r.Path, r.Data, r.Version = d.Path(), d.Buffer(), d.Int()
}

// SetACLRequest is the body of setACL.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Encode appends the record.
func (r *SetACLRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.ACLs(r.ACL)
	e.Int(r.Version)
}

// Decode reads the record.
func (r *SetACLRequest) Decode(d *Decoder) { r.Path, r.ACL, r.Version = d.Path(), d.ACLs(), d.Int() }

// AuthRequest is the body of auth.
type AuthRequest struct {
	Type   int32
	Scheme string
	Auth   []byte
}

// Encode appends the record.
func (r *AuthRequest) Encode(e *Encoder) {
	e.Int(r.Type)
	e.String(r.Scheme)
	e.Buffer(r.Auth)
}

// Decode reads the record.
func (r *AuthRequest) Decode(d *Decoder) { r.Type, r.Scheme, r.Auth = d.Int(), d.String(), d.Buffer() }

// SetWatchesRequest is the body of setWatches and, with Two, of setWatches2.
type SetWatchesRequest struct {
	RelativeZxid        int64
	Data, Exist, Child  []string
	Two                 bool
	Persistent, Recurse []string
}

// Encode appends the record.
func (r *SetWatchesRequest) Encode(e *Encoder) {
	e.Long(r.RelativeZxid)
	e.Strings(r.Data)
	e.Strings(r.Exist)
	e.Strings(r.Child)
	if r.Two {
		e.Strings(r.Persistent)
		e.Strings(r.Recurse)
	}
}

// Decode reads the record. Set Two before.
func (r *SetWatchesRequest) Decode(d *Decoder) {
	r.RelativeZxid = d.Long()
	r.Data, r.Exist, r.Child = d.Paths(), d.Paths(), d.Paths()
	if r.Two {
		r.Persistent, r.Recurse = d.Paths(), d.Paths()
	}
}

// EmptyRequest is the body of ping, closeSession and whoAmI.
type EmptyRequest struct{}

// Encode appends nothing.
func (*EmptyRequest) Encode(*Encoder) {}

// Decode reads nothing.
func (*EmptyRequest) Decode(*Decoder) {}
