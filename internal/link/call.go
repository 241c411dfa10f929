package link

import (
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Errors of a request.
var (
	// ErrDown is a reply's error when the connection ended before the answer: whether the request
	// was carried out is not known then.
	ErrDown = errors.New("link: the connection ended before the answer")
	// ErrNotSent is a reply's error when there is no connection that takes requests, or when it
	// ended before all of the request was written: no server has carried it out.
	ErrNotSent = errors.New("link: not sent")
	// ErrFull is a reply's error when MaxQueued bytes wait to be written already: no server has
	// seen the request.
	ErrFull = errors.New("link: too much waits to be sent")
	// ErrTooLong is a reply's error when the answer is longer than MaxAnswer.
	ErrTooLong = errors.New("link: the answer is too long")
)

// Call is one request and what is to be done with its answer. It is sent once.
type Call struct {
	Op   wire.Op
	Body wire.Request
	// Urgent lets the request leave before all others that are not urgent and still wait to be
	// written.
	Urgent bool
	// Done is called once, with the answer or with the connection's end, from whichever goroutine
	// knows of it, and perhaps before Send has returned. It must not block.
	Done func(Reply)

	// handed to the network, and not known to be written in part only; guarded by the connection's
	// mutex
	sent     bool
	queuedAt time.Duration // a reading of the clock before any of it was written
}

// Reply is the answer to a request.
type Reply struct {
	// Zxid is the transaction of the answer's header. Of a write it is the write's own.
	Zxid int64
	// SessionID is the session of the connection that carried request and answer.
	SessionID int64
	// Code is the server's verdict.
	Code wire.Code
	// Body is the record behind the header, valid until Done returns.
	Body []byte
	// Err is one of this package's errors of a request; there is no answer then.
	Err error
}

// firstXid is the least number of a Call. The library counts the few requests of its own from 1.
const firstXid = 1 << 30

// finish hands the only reply over. It calls answered before, which may be nil; see
// Config.Answered.
func (call *Call) finish(answered func(wire.Op, Reply), r Reply) {
	if answered != nil && call.Op != wire.OpNotify {
		answered(call.Op, r)
	}
	call.Done(r)
}

// answerUnqueued answers calls that were not queued, and reports whether they were.
func answerUnqueued(answered func(wire.Op, Reply), calls []*Call, err error) (queued bool) {
	if err == nil {
		return true
	}
	for _, call := range calls {
		call.finish(answered, Reply{Err: err})
	}
	return false
}
