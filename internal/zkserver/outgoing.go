package zkserver

import (
	"net"
	"sync"
	"time"
)

const (
	// keepBuffer is the largest buffer that is kept for the next use.
	keepBuffer = 64 << 10
	// outgoingPause is how many bytes may wait to be written before the
	// connection's next request is left unread.
	outgoingPause = 1 << 20
)

// outgoingQueue holds the frames that wait to be written to a connection, and writes them in a goroutine of its own.
type outgoingQueue struct {
	nc         net.Conn
	limit      int           // bytes that may wait
	lastWrites time.Duration // time for the writes after closeWhenWritten
	onDue      func()        // called when a delayed frame is due; it calls releaseDue

	mu           sync.Mutex
	changed      sync.Cond // for the writer: there is something to do
	drained      sync.Cond // for the reader: something has been written
	frames       []byte
	spare        []byte
	pending      int // bytes in frames, in delayed and being written
	delayed      []delayedFrame
	timer        *time.Timer // for delayed[0]
	closeWritten bool        // close when all is written
	closed       bool
}

// delayedFrame is a frame that waits for an injected delay, or for one before it.
type delayedFrame struct {
	due   time.Time
	bytes []byte
}

func newOutgoingQueue(nc net.Conn, limit int, lastWrites time.Duration, onDue func()) *outgoingQueue {
	q := &outgoingQueue{nc: nc, limit: limit, lastWrites: lastWrites, onDue: onDue}
	q.changed.L, q.drained.L = &q.mu, &q.mu
	return q
}

// addFrame queues a frame, after the delay and after the frames that wait already. It returns false, and adds nothing, when more than limit
// bytes wait already.
func (q *outgoingQueue) addFrame(frame []byte, delay time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closeWritten || q.closed {
		return true
	}
	if q.pending > q.limit {
		return false
	}
	q.pending += len(frame)
	if delay <= 0 && len(q.delayed) == 0 {
		q.frames = append(q.frames, frame...)
		q.changed.Signal()
		return true
	}
	q.addDelayed(frame, delay)
	return true
}

func (q *outgoingQueue) addDelayed(frame []byte, delay time.Duration) {
	due := time.Now().Add(delay)
	if n := len(q.delayed); n > 0 && due.Before(q.delayed[n-1].due) {
		due = q.delayed[n-1].due
	}
	q.delayed = append(q.delayed, delayedFrame{due, append([]byte(nil), frame...)})
	if len(q.delayed) == 1 {
		q.timer = time.AfterFunc(time.Until(due), q.onDue)
	}
}

// releaseDue moves the delayed frames that are due to the writer.
func (q *outgoingQueue) releaseDue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for len(q.delayed) > 0 && !q.delayed[0].due.After(now) {
		q.frames = append(q.frames, q.delayed[0].bytes...)
		q.delayed = q.delayed[1:]
	}
	if len(q.delayed) > 0 {
		q.timer.Reset(q.delayed[0].due.Sub(now))
	}
	q.changed.Signal()
}

// waitDrained waits until the client has read enough of what waits for it, or the connection ends.
func (q *outgoingQueue) waitDrained() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.pending > outgoingPause && !q.closed && !q.closeWritten {
		q.drained.Wait()
	}
}

// closeWhenWritten closes the connection once all frames are written, or after lastWrites if the client does not read them.
func (q *outgoingQueue) closeWhenWritten() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeWritten = true
	_ = q.nc.SetWriteDeadline(time.Now().Add(q.lastWrites))
	q.changed.Signal()
	q.drained.Broadcast()
}

// closeNow closes the connection at once and drops the frames that wait.
func (q *outgoingQueue) closeNow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.frames, q.delayed = nil, nil
	if q.timer != nil {
		q.timer.Stop()
	}
	_ = q.nc.Close()
	q.changed.Signal()
	q.drained.Broadcast()
}

// writeLoop writes all frames that wait in one call, again and again until the connection ends.
func (q *outgoingQueue) writeLoop() {
	defer q.closeNow()
	for {
		b := q.takeFrames()
		if len(b) == 0 {
			return
		}
		if _, err := q.nc.Write(b); err != nil {
			return
		}
		q.noteWritten(b)
	}
}

// takeFrames waits for bytes to write. It returns none when the connection has ended.
func (q *outgoingQueue) takeFrames() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 && !q.closed && !(q.closeWritten && len(q.delayed) == 0) {
		q.changed.Wait()
	}
	b := q.frames
	q.frames, q.spare = q.spare, nil
	return b
}

func (q *outgoingQueue) noteWritten(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending -= len(b)
	if cap(b) <= keepBuffer {
		q.spare = b[:0]
	}
	q.drained.Broadcast()
}
