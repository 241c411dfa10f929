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

// naiveHolder uses the client library alone: it believes that it holds until the library reports a lost connection or session. It
// shows that a fault is effective.
type naiveHolder struct {
	history *lockHistory
	conn    *zk.Conn
	node    string        // set by hold
	waiter  <-chan *grant // of a waiter that uses Lockstep

	mu        sync.Mutex
	heldUntil time.Time // when it stopped believing that it holds; zero before
}

// startNaiveHolders starts naive holders on the follower, each with a waiter on another server.
func startNaiveHolders(t *testing.T, env *testEnv, r serverRoles) []*naiveHolder {
	holders := make([]*naiveHolder, contestsPerPlacement)
	waiter := mustConnect(t, env.clientConfig(r.other))
	require.NoError(t, runConcurrently(len(holders), func(i int) (err error) {
		h := &naiveHolder{history: &lockHistory{t: t, path: fmt.Sprintf("/%s/naive-%d", t.Name(), i)}}
		holders[i] = h
		if err := waiter.MakeDirs(t.Context(), h.history.path); err != nil {
			return err
		}
		if err := h.connect(t, env.Addr(r.follower)); err != nil {
			return err
		}
		if err := h.hold(); err != nil {
			return err
		}
		h.waiter, err = h.history.startWaiter("the waiter", waiter)
		return err
	}))
	return holders
}

// hold takes the lock, which is free.
func (h *naiveHolder) hold() (err error) {
	h.node, err = h.conn.CreateProtectedEphemeralSequential(h.history.path+"/lock-", nil, zk.WorldACL(zk.PermAll))
	return err
}

// isBefore reports whether the holder's node is before another one in line.
func (h *naiveHolder) isBefore(node string) bool {
	const digits = 10
	return h.node[len(h.node)-digits:] < node[len(node)-digits:]
}

func (h *naiveHolder) connect(t *testing.T, addr string) error {
	conn, events, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	h.conn = conn
	stopped := make(chan struct{})
	go h.followConnection(events, stopped)
	t.Cleanup(func() { conn.Close(); <-stopped })
	return nil
}

func (h *naiveHolder) followConnection(events <-chan zk.Event, stopped chan<- struct{}) {
	defer close(stopped)
	for e := range events {
		if e.State == zk.StateDisconnected || e.State == zk.StateExpired {
			h.mu.Lock()
			if h.heldUntil.IsZero() {
				h.heldUntil = time.Now()
			}
			h.mu.Unlock()
		}
	}
}

// overlap is how long the naive holder has believed to hold beside the next holder.
func (h *naiveHolder) overlap(next *grant) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heldUntil.IsZero() {
		return time.Since(next.at)
	}
	return h.heldUntil.Sub(next.at)
}

// countOverlaps waits for the next holders and returns how many naive holders overlapped with theirs.
func countOverlaps(t *testing.T, holders []*naiveHolder) (overlapping int) {
	t.Helper()
	for _, h := range holders {
		next := awaitGrant(t, h.waiter)
		if h.overlap(next) > 0 {
			overlapping++
		}
	}
	if len(holders) > 0 {
		t.Logf("naive holders: %d of %d overlapped with the next holder", overlapping, len(holders))
	}
	return overlapping
}
