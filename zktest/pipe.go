package zktest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeLimit is the number of bytes that one direction of a connection buffers. Then its writer
// waits, as with a socket.
const pipeLimit = 256 << 10

// bytePipe is one direction of a connection: chunks of bytes that wait to be read, each
// with the time of its arrival. It waits on its condition only, so that
// a synctest bubble sees it as idle.
type bytePipe struct {
	mu      sync.Mutex
	changed sync.Cond

	chunks   []chunk
	buffered int           // bytes in chunks
	held     bool          // by BlackHole: the reader waits
	delay    time.Duration // of the chunks that are written from now on

	discard       bool  // drop what is written: there is no reader
	writerClosed  bool  // the writer has closed: EOF after the bytes
	readerClosed  bool  // the reader has closed
	reverseHeld   bool  // the other direction is held: a writer does not notice that the reader has closed
	err           error // for both ends
	readDeadline  time.Time
	writeDeadline time.Time
}

type chunk struct {
	due   time.Time
	bytes []byte
}

func newBytePipe() *bytePipe {
	p := &bytePipe{}
	p.changed.L = &p.mu
	return p
}

// readArrived reads bytes that have arrived. It waits while there are none or the pipe is held.
func (p *bytePipe) readArrived(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := p.readError(); err != nil {
			return 0, err
		}
		if hasPassed(p.readDeadline) {
			return 0, os.ErrDeadlineExceeded
		}
		if len(b) == 0 {
			return 0, nil
		}
		until := p.readDeadline
		if !p.held {
			if len(p.chunks) == 0 && p.writerClosed {
				return 0, io.EOF
			}
			if n := p.takeArrived(b); n > 0 {
				return n, nil
			}
			if len(p.chunks) > 0 {
				until = earlierTime(until, p.chunks[0].due)
			}
		}
		p.waitForChange(until)
	}
}

func (p *bytePipe) readError() error {
	if p.readerClosed {
		return net.ErrClosed
	}
	return p.err
}

// takeArrived moves bytes that have arrived to b.
func (p *bytePipe) takeArrived(b []byte) (n int) {
	for n < len(b) && len(p.chunks) > 0 && hasPassed(p.chunks[0].due) {
		first := &p.chunks[0]
		moved := copy(b[n:], first.bytes)
		n += moved
		if first.bytes = first.bytes[moved:]; len(first.bytes) == 0 {
			p.chunks[0] = chunk{}
			p.chunks = p.chunks[1:]
		}
	}
	if n > 0 {
		p.buffered -= n
		p.changed.Broadcast() // there is room
	}
	return n
}

// writeAll writes b, and waits while the pipe is full.
func (p *bytePipe) writeAll(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.err != nil:
			return n, p.err
		case p.writerClosed:
			return n, net.ErrClosed
		case hasPassed(p.writeDeadline):
			return n, os.ErrDeadlineExceeded
		case n == len(b):
			return n, nil
		case p.readerClosed && !p.reverseHeld:
			return n, errReset
		case p.discard || p.readerClosed:
			return len(b), nil
		}
		if room := min(pipeLimit-p.buffered, len(b)-n); room > 0 {
			p.putChunk(b[n : n+room])
			n += room
			continue
		}
		p.waitForChange(p.writeDeadline)
	}
}

func (p *bytePipe) putChunk(b []byte) {
	due := time.Now().Add(p.delay)
	if last := len(p.chunks) - 1; last >= 0 && due.Before(p.chunks[last].due) {
		due = p.chunks[last].due
	}
	p.chunks = append(p.chunks, chunk{due, append([]byte(nil), b...)})
	p.buffered += len(b)
	p.changed.Broadcast()
}

// waitForChange waits for a change, or until the time if it is not zero.
func (p *bytePipe) waitForChange(until time.Time) {
	if !until.IsZero() {
		timer := time.AfterFunc(time.Until(until), p.broadcastChange)
		defer timer.Stop()
	}
	p.changed.Wait()
}

func (p *bytePipe) broadcastChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// setFaults sets what the link does to this direction.
func (p *bytePipe) setFaults(held, reverseHeld bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.reverseHeld, p.delay = held, reverseHeld, delay
	p.changed.Broadcast()
}

// failWith fails reads and writes from now on, and drops the buffered bytes.
func (p *bytePipe) failWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.chunks, p.buffered = nil, 0
	}
	p.changed.Broadcast()
}

// endWriting is the writer's close: reads return io.EOF after the buffered bytes.
func (p *bytePipe) endWriting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writerClosed = true
	p.changed.Broadcast()
}

// endReading is the reader's close: it drops the buffered bytes.
func (p *bytePipe) endReading() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readerClosed = true
	p.chunks, p.buffered = nil, 0
	p.changed.Broadcast()
}

func (p *bytePipe) setReadDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readDeadline = t
	p.changed.Broadcast()
}

func (p *bytePipe) setWriteDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeDeadline = t
	p.changed.Broadcast()
}

func hasPassed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// earlierTime returns the earlier of two times. The zero time means no time.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
