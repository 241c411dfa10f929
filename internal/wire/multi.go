package wire

// MultiPart is one operation of a multi.
type MultiPart struct {
	Op   Op
	Body Request
}

// MultiRequest is the body of multi and multiRead.
type MultiRequest struct{ Parts []MultiPart }

// Encode appends the record.
func (r *MultiRequest) Encode(e *Encoder) {
	for _, p := range r.Parts {
		MultiHeader{Op: p.Op, Err: -1}.Encode(e)
		p.Body.Encode(e)
	}
	MultiEnd.Encode(e)
}

// Decode reads the record. It fails at an operation that cannot be part of a
// multi.
func (r *MultiRequest) Decode(d *Decoder) {
	for d.Err() == nil {
		var h MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return
		}
		body := newPartBody(h.Op)
		if body == nil {
			d.failDecode()
			return
		}
		body.Decode(d)
		r.Parts = append(r.Parts, MultiPart{Op: h.Op, Body: body})
	}
}

func newPartBody(op Op) Request {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck, OpGetData, OpGetChildren:
		return NewRequest(op)
	}
	return nil
}

// NewRequest returns an empty body of the operation, to decode into. It returns
// nil for an operation without a known body.
func NewRequest(op Op) Request {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return &CreateRequest{}
	case OpCreateTTL:
		return &CreateRequest{HasTTL: true}
	case OpDelete, OpCheck, OpAddWatch, OpCheckWatches, OpRemoveWatches:
		return &NumberRequest{}
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return &WatchRequest{}
	case OpSync, OpGetACL, OpGetEphemerals, OpGetAllChildrenNumber:
		return &PathRequest{}
	case OpSetData:
		return &SetDataRequest{}
	case OpSetACL:
		return &SetACLRequest{}
	case OpMulti, OpMultiRead:
		return &MultiRequest{}
	case OpAuth:
		return &AuthRequest{}
	case OpSetWatches:
		return &SetWatchesRequest{}
	case OpSetWatches2:
		return &SetWatchesRequest{Two: true}
	case OpPing, OpCloseSession, OpWhoAmI:
		return &EmptyRequest{}
	}
	return nil
}
