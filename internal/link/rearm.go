package link

import (
	"net"
	"sync"
	"time"
)

// rearmPatience bounds the wait for a library that has no watches to set after all.
const rearmPatience = 100 * time.Millisecond

// rearm holds the first answers of a new connection back until the library has set its watches again.
//
// go-zookeeper 1.0.4 tells the server, with its watches, up to which transaction it has seen the world,
// and reads that number while its receiving goroutine may already have moved it on by an answer from
// the new connection: a data race, and a change in between would never be reported.
type rearm struct {
	needed bool // set before the first answer is read, by the reading goroutine
	once   *sync.Once
	sent   chan struct{}
}

func newRearm() rearm { return rearm{once: new(sync.Once), sent: make(chan struct{})} }

// init says whether the library has watches to set.
func (r *rearm) init(needed bool) { r.needed = needed }

// done tells that the watches are on their way.
func (r *rearm) done() { r.once.Do(func() { close(r.sent) }) }

// wait lets an answer through, or returns an error when the connection has ended before.
func (r *rearm) wait(ended <-chan struct{}) error {
	if !r.needed {
		return nil
	}
	r.needed = false
	t := time.NewTimer(rearmPatience)
	defer t.Stop()
	select {
	case <-r.sent:
	case <-t.C:
	case <-ended:
		return net.ErrClosed
	}
	return nil
}
