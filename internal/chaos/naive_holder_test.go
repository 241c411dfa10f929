//go:build linux

package chaos

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	naivePath = "/mutex-0"
	// naiveHoldTime is longer than a session lives without its server.
	naiveHoldTime = 3 * sessionTimeout
)

// runNaiveHolder locks with the client library alone: an ephemeral sequential node, and a hold that ends when the library reports a
// lost connection or session.
func (p *clientProcess) runNaiveHolder(ctx context.Context, servers []string) error {
	conn, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	h := &naiveHolder{clientProcess: p, conn: conn}
	go h.followConnection(events)
	p.write(event{At: now(), Step: stepConnected})
	for {
		t, ok := p.load.begin(ctx, loadNormal)
		if !ok {
			return nil
		}
		h.lockOnce(ctx, t.stop)
		p.load.finish(loadNormal)
	}
}

type naiveHolder struct {
	*clientProcess
	conn *zk.Conn

	mu      sync.Mutex
	endHold context.CancelFunc // of the current hold; may be nil
}

func (h *naiveHolder) followConnection(events <-chan zk.Event) {
	for e := range events {
		if e.State == zk.StateDisconnected || e.State == zk.StateExpired {
			h.mu.Lock()
			if h.endHold != nil {
				h.endHold()
			}
			h.mu.Unlock()
		}
	}
}

// lockOnce waits for the lock, holds it and releases it.
func (h *naiveHolder) lockOnce(ctx context.Context, stop <-chan struct{}) {
	op := h.lastOp.Add(1)
	h.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindLock, Path: naivePath})
	node, token, err := h.lock(ctx, stop)
	if err != nil {
		h.write(event{At: now(), Op: op, Step: stepAbandoned})
		wait(ctx, 100*time.Millisecond, stop)
		return
	}
	hold, cancel := context.WithCancel(context.Background())
	defer cancel()
	h.mu.Lock()
	h.endHold = cancel
	h.mu.Unlock()
	h.write(event{At: now(), Op: op, Step: stepGranted, Token: token})
	given := make(chan struct{})
	go func() {
		defer close(given)
		h.giveIDs(hold)
	}()
	defer func() { cancel(); <-given }()
	h.holdAndRelease(ctx, op, heldLock{ctx: hold, release: func(context.Context) error { return h.conn.Delete(node, -1) }}, naiveHoldTime, stop)
}

// giveIDs gives ids of the local time while the hold lasts, as if it were that of a slot: the ids of two holders are the same.
func (h *naiveHolder) giveIDs(hold context.Context) {
	for hold.Err() == nil {
		_ = call{request: event{Kind: kindIDs, Path: slotsPath}}.run(hold, h.clientProcess, func(_ int64, answer *event) error {
			first := now() / int64(time.Millisecond) << 12
			answer.Numbers = []int64{first, first + idBatch}
			return nil
		})
		wait(hold, checkInterval, nil)
	}
}

var errGaveUp = errors.New("gave up")

// lock polls until its node is the first of the line.
func (h *naiveHolder) lock(ctx context.Context, stop <-chan struct{}) (node string, token int64, err error) {
	if _, err := h.conn.Create(naivePath, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", 0, err
	}
	if node, err = h.conn.CreateProtectedEphemeralSequential(naivePath+"/lock-", nil, zk.WorldACL(zk.PermAll)); err != nil {
		return "", 0, err
	}
	_, stat, err := h.conn.Exists(node)
	for err == nil {
		var first bool
		if first, err = h.isFirst(node); first || err != nil {
			return node, stat.Czxid, err
		}
		select {
		case <-stop:
			return "", 0, errors.Join(errGaveUp, h.conn.Delete(node, -1))
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return "", 0, err
}

// isFirst reports whether a node has the lowest number.
func (h *naiveHolder) isFirst(node string) (bool, error) {
	names, _, err := h.conn.Children(naivePath)
	number := func(name string) string { return name[max(0, len(name)-10):] }
	for _, name := range names {
		if number(name) < number(node) {
			return false, err
		}
	}
	return true, err
}
