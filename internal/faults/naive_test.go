package faults

import (
	"fmt"
	"io"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// fool is a holder as the client library alone would have it: it holds until the library reports that
// the connection is lost or the session has expired. It shows that a fault bites.
type fool struct {
	record *record
	conn   *zk.Conn
	next   <-chan *grant // of a waiter that keeps the rule

	mu    sync.Mutex
	until time.Time // when it stopped believing; zero while it believes
}

// naiveHolders are some fools on the follower, each with a waiter on the other server.
func naiveHolders(t *testing.T, a *arena, r roles) []*fool {
	fools := make([]*fool, perCorner)
	waiter := client(t, a.at(r.other))
	require.NoError(t, together(len(fools), func(i int) (err error) {
		f := &fool{record: &record{t: t, path: fmt.Sprintf("/%s/naive-%d", t.Name(), i)}}
		fools[i] = f
		if err := waiter.MakeDirs(t.Context(), f.record.path); err != nil {
			return err
		}
		if err := f.hold(t, a.Addr(r.follower)); err != nil {
			return err
		}
		f.next, err = f.record.queue("the waiter", waiter)
		return err
	}))
	return fools
}

// hold connects and takes the lock, which nobody has.
func (f *fool) hold(t *testing.T, addr string) error {
	conn, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	f.conn = conn
	stopped := make(chan struct{})
	go f.listen(events, stopped)
	t.Cleanup(func() { conn.Close(); <-stopped })
	_, err = conn.CreateProtectedEphemeralSequential(f.record.path+"/lock-", nil, zk.WorldACL(zk.PermAll))
	return err
}

func (f *fool) listen(events <-chan zk.Event, stopped chan<- struct{}) {
	defer close(stopped)
	for e := range events {
		if e.State == zk.StateDisconnected || e.State == zk.StateExpired {
			f.mu.Lock()
			if f.until.IsZero() {
				f.until = time.Now()
			}
			f.mu.Unlock()
		}
	}
}

// overlap is how long the fool has held beside the next holder, so far.
func (f *fool) overlap(next *grant) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until.IsZero() {
		return time.Since(next.at)
	}
	return f.until.Sub(next.at)
}

// wantOverlap fails unless the fault gave some fool's lock away while the fool still held it.
func wantOverlap(t *testing.T, fools []*fool) {
	t.Helper()
	if len(fools) == 0 {
		return
	}
	deceived := 0
	for _, f := range fools {
		next := await(t, f.next)
		if f.overlap(next) > 0 {
			deceived++
		}
	}
	require.Positive(t, deceived, "the fault deceived no naive holder, so it proves nothing of the others")
	t.Logf("naive: %d of %d held beside the next holder", deceived, len(fools))
}
