package zkserver

import (
	"net"
	"sync"
	"time"
)

const (
	// keepBuffer is the size of the largest buffer that is kept for the next use.
	keepBuffer = 64 << 10
	// outgoingPause is how many bytes may wait to be written. If more wait, the server does not
	// process the connection's next request.
	outgoingPause = 1 << 20
)

// outgoingQueue has the frames that wait to be written to a connection. A goroutine of its own
// writes them.
type outgoingQueue struct {
	nc         net.Conn
	limit      int           // how many bytes may wait
	lastWrites time.Duration // how long the writes after closeWhenWritten may take
	onDue      func()        // called when a delayed frame is due; it calls releaseDue

	mu           sync.Mutex
	changed      sync.Cond // wakes the writer: there are frames to write, or the connection ends
	drained      sync.Cond // wakes the reader: bytes were written, or the connection ends
	frames       []byte    // the next bytes to write
	spare        []byte    // a buffer to use for frames
	pending      int       // how many bytes are in frames, in delayed and in the current write
	largest      int       // the size of the largest frame since the queue was empty
	delayed      []delayedFrame
	timer        *time.Timer // fires when delayed[0] is due
	closeWritten bool        // close the connection when all frames are written
	closed       bool
}

// delayedFrame is a frame with an injected delay, or one that waits for such a frame before it.
type delayedFrame struct {
	due   time.Time
	bytes []byte
}

func newOutgoingQueue(nc net.Conn, limit int, lastWrites time.Duration, onDue func()) *outgoingQueue {
	q := &outgoingQueue{nc: nc, limit: limit, lastWrites: lastWrites, onDue: onDue}
	q.changed.L, q.drained.L = &q.mu, &q.mu
	return q
}

// addFrame queues a frame. The frame is written after the delay, and after the frames that wait
// already. If more than limit bytes wait, addFrame returns false and does not queue the frame. The
// largest frame does not count: an answer may be larger than the limit, and the client may need
// some time to read it.
func (q *outgoingQueue) addFrame(frame []byte, delay time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closeWritten || q.closed {
		return true
	}
	if q.pending-q.largest > q.limit {
		return false
	}
	q.pending += len(frame)
	q.largest = max(q.largest, len(frame))
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

// releaseDue passes the delayed frames that are due to the writer.
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
	q.limitLastWrites()
	q.changed.Signal()
}

// waitDrained waits while more than outgoingPause bytes wait for the client, unless the connection
// ends.
func (q *outgoingQueue) waitDrained() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.pending > outgoingPause && !q.closed && !q.closeWritten {
		q.drained.Wait()
	}
}

// limitLastWrites limits the time of the writes after closeWhenWritten, once no delayed frame
// waits; q.mu is held.
func (q *outgoingQueue) limitLastWrites() {
	if q.closeWritten && len(q.delayed) == 0 {
		_ = q.nc.SetWriteDeadline(time.Now().Add(q.lastWrites))
	}
}

// closeWhenWritten closes the connection once all frames are written, or lastWrites after the last
// one was due if the client does not read them.
func (q *outgoingQueue) closeWhenWritten() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeWritten = true
	q.limitLastWrites()
	q.changed.Signal()
	q.drained.Broadcast()
}

// closeNow closes the connection at once and drops the queued frames.
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

// writeLoop writes frames until the connection ends. Each call of Write has all frames that wait.
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
		q.recordWritten(b)
	}
}

// takeFrames waits for bytes to write, and returns them. It returns none if the connection has
// ended.
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

func (q *outgoingQueue) recordWritten(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending -= len(b); q.pending == 0 {
		q.largest = 0
	}
	if cap(b) <= keepBuffer {
		q.spare = b[:0]
	}
	q.drained.Broadcast()
}
