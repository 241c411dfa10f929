package faults

import (
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// naiveHolder uses the client library alone: it assumes that it holds until the library reports a
// lost connection or session. If it overlaps with the next holder, the fault is effective.
type naiveHolder struct {
	history *lockHistory
	conn    *zk.Conn
	node    string        // set by hold
	waiter  <-chan *grant // of a waiter that uses Lockstep

	mu        sync.Mutex
	heldUntil time.Time // when it stopped believing that it holds; zero before
}

// startNaiveHolders starts naive holders that connect to the follower, each with a waiter that
// connects to another server.
func startNaiveHolders(t *testing.T, env *testEnv, r serverRoles) []*naiveHolder {
	holders := make([]*naiveHolder, contestsPerPlacement)
	waiter := mustConnect(t, env.clientConfig(r.other))
	require.NoError(t, runConcurrently(len(holders), func(i int) (err error) {
		for try := range 4 {
			holders[i], err = startNaiveHolder(t, env.Addr(r.follower), waiter,
				fmt.Sprintf("/%s/naive-%d-%d", t.Name(), i, try))
			if !errors.Is(err, errNoWait) {
				// the machine stalled, and the holder was lost before the waiter was in line
				return err
			}
		}
		return err
	}))
	return holders
}

func startNaiveHolder(t *testing.T, server string, waiter *framework.Client, path string) (*naiveHolder, error) {
	h := &naiveHolder{history: &lockHistory{t: t, path: path}}
	if err := waiter.MakeDirs(t.Context(), path); err != nil {
		return nil, err
	}
	if err := h.connect(t, server); err != nil {
		return nil, err
	}
	if err := h.hold(); err != nil {
		return nil, err
	}
	var err error
	h.waiter, err = h.history.startWaiter("the waiter", waiter)
	return h, err
}

// hold acquires the lock, which must be free.
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
	conn, events, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogInfo(false),
		zk.WithLogger(log.New(io.Discard, "", 0)))
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

// overlap returns how long the naive holder has assumed that it holds while the next holder held.
func (h *naiveHolder) overlap(next *grant) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heldUntil.IsZero() {
		return time.Since(next.at)
	}
	return h.heldUntil.Sub(next.at)
}

// countOverlaps waits for the next holders and returns how many naive holders overlapped with
// theirs.
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
