package zktest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeLimit is how many bytes one direction of a connection holds before its
// writer has to wait, as a socket's buffers do.
const pipeLimit = 256 << 10

// pipe is one direction of a connection: bytes that wait to be read, each run
// with the time of its arrival. It waits on nothing but its condition, so that
// a synctest bubble sees it as idle.
type pipe struct {
	mu      sync.Mutex
	changed sync.Cond

	runs []run
	size int
	held bool
	lag  time.Duration

	swallow       bool  // nobody reads and nobody says so: what is written is gone
	ended         bool  // the writer has closed: EOF after the bytes
	abandoned     bool  // the reader has closed
	backHeld      bool  // the other direction is held, by which a writer would learn that
	err           error // for both ends
	readDeadline  time.Time
	writeDeadline time.Time
}

type run struct {
	due   time.Time
	bytes []byte
}

func newPipe() *pipe {
	p := &pipe{}
	p.changed.L = &p.mu
	return p
}

// read waits for bytes that have arrived and are not held.
func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := p.readable(); err != nil {
			return 0, err
		}
		if past(p.readDeadline) {
			return 0, os.ErrDeadlineExceeded
		}
		if len(b) == 0 {
			return 0, nil
		}
		until := p.readDeadline
		if !p.held {
			if len(p.runs) == 0 && p.ended {
				return 0, io.EOF
			}
			if n := p.take(b); n > 0 {
				return n, nil
			}
			if len(p.runs) > 0 {
				until = earlier(until, p.runs[0].due)
			}
		}
		p.wait(until)
	}
}

func (p *pipe) readable() error {
	if p.abandoned {
		return net.ErrClosed
	}
	return p.err
}

// take moves bytes that have arrived into b.
func (p *pipe) take(b []byte) (n int) {
	for n < len(b) && len(p.runs) > 0 && past(p.runs[0].due) {
		first := &p.runs[0]
		moved := copy(b[n:], first.bytes)
		n += moved
		if first.bytes = first.bytes[moved:]; len(first.bytes) == 0 {
			p.runs[0] = run{}
			p.runs = p.runs[1:]
		}
	}
	if n > 0 {
		p.size -= n
		p.changed.Broadcast() // there is room
	}
	return n
}

// write waits while the pipe is full.
func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.err != nil:
			return n, p.err
		case p.ended:
			return n, net.ErrClosed
		case past(p.writeDeadline):
			return n, os.ErrDeadlineExceeded
		case n == len(b):
			return n, nil
		case p.abandoned && !p.backHeld:
			return n, ErrReset
		case p.swallow || p.abandoned:
			return len(b), nil
		}
		if room := min(pipeLimit-p.size, len(b)-n); room > 0 {
			p.put(b[n : n+room])
			n += room
			continue
		}
		p.wait(p.writeDeadline)
	}
}

func (p *pipe) put(b []byte) {
	due := time.Now().Add(p.lag)
	if last := len(p.runs) - 1; last >= 0 && due.Before(p.runs[last].due) {
		due = p.runs[last].due
	}
	p.runs = append(p.runs, run{due, append([]byte(nil), b...)})
	p.size += len(b)
	p.changed.Broadcast()
}

// wait waits for a change or, unless it is zero, the time.
func (p *pipe) wait(until time.Time) {
	if !until.IsZero() {
		timer := time.AfterFunc(time.Until(until), p.wake)
		defer timer.Stop()
	}
	p.changed.Wait()
}

func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// set changes what the link does to the direction.
func (p *pipe) set(held, backHeld bool, lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.backHeld, p.lag = held, backHeld, lag
	p.changed.Broadcast()
}

// fail ends both ends' use of the pipe, with what is in it.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.runs, p.size = nil, 0
	}
	p.changed.Broadcast()
}

// end is the writer's end of file.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.changed.Broadcast()
}

// abandon is the reader's close.
func (p *pipe) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned = true
	p.runs, p.size = nil, 0
	p.changed.Broadcast()
}

func (p *pipe) setReadDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readDeadline = t
	p.changed.Broadcast()
}

func (p *pipe) setWriteDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeDeadline = t
	p.changed.Broadcast()
}

func past(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// earlier is the earlier time; a zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
