//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	naivePath = "/mutex-0"
	// naiveHoldDuration is longer than a session lives without its server.
	naiveHoldDuration = 3 * sessionTimeout
)

// runNaiveHolder locks with the client library alone: an ephemeral sequential node, and a hold that
// ends when the library reports a lost connection or session.
func (p *clientProcess) runNaiveHolder(ctx context.Context, servers []string) error {
	conn, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogInfo(false),
		zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	records, _, err := zk.Connect(servers, sessionTimeout, zk.WithLogInfo(false),
		zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer records.Close()
	h := &naiveHolder{clientProcess: p, conn: conn, records: records}
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
	conn    *zk.Conn
	records *zk.Conn // to write records, so that a write that waits delays no ping of the hold's session

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
	var working sync.WaitGroup
	working.Go(func() { h.giveIDs(hold) })
	working.Go(func() { h.executeRun(hold) })
	finish := func() { cancel(); working.Wait() }
	defer finish()
	h.holdAndRelease(ctx, op, heldLock{ctx: hold, release: func(context.Context) error {
		finish()
		return h.conn.Delete(node, -1)
	}}, naiveHoldDuration, stop)
}

// executeRun takes steps of a run while the hold lasts. It records each without a guard, and does
// not wait for the answer.
func (h *naiveHolder) executeRun(hold context.Context) {
	const run = "naive"
	op := h.lastOp.Add(1)
	h.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindExecution, Path: runsPath, Item: run})
	h.write(event{At: now(), Op: op, Step: stepGranted})
	var lastHeld int64
	var recording sync.WaitGroup
	defer func() {
		recording.Wait()
		h.write(event{At: now(), Op: op, Step: stepEnded, End: endReleased, LastHeld: lastHeld})
	}()
	if _, err := h.records.Create(runsPath, nil, 0, zk.WorldACL(zk.PermAll)); err != nil &&
		!errors.Is(err, zk.ErrNodeExists) {
		return
	}
	if _, err := h.records.Sync(runsPath); err != nil {
		return
	}
	recorded, _, err := h.records.Children(runsPath)
	if err != nil {
		return
	}
	for i := len(recorded); hold.Err() == nil; i++ {
		seen, _ := h.watchHold(hold, op, hold, 20*checkInterval, nil)
		lastHeld = max(lastHeld, seen)
		name := fmt.Sprint("step", i)
		result := fmt.Sprintf("%s.%d", h.name, h.lastOp.Add(1)) // the effect
		h.writeShown(hold, runsPath, event{Kind: kindStep, Item: run, Order: name, Source: result}, nil)
		recording.Go(func() {
			// it trusts that this succeeds
			_, _ = h.records.Create(runsPath+"/"+name, []byte(result), 0, zk.WorldACL(zk.PermAll))
		})
	}
}

// giveIDs gives ids that it derives from the local time while the hold lasts, as if the hold were
// that of a slot. Two holders give the same ids.
func (h *naiveHolder) giveIDs(hold context.Context) {
	for hold.Err() == nil {
		_ = call{request: event{Kind: kindIDs, Path: slotsPath}}.run(hold, h.clientProcess,
			func(_ int64, answer *event) error {
				first := now() / int64(time.Millisecond) << 12
				answer.Numbers = []int64{first, first + idBatch}
				return nil
			})
		wait(hold, checkInterval, nil)
	}
}

var errGaveUp = errors.New("gave up")

// lock creates a node, and polls until it is the first of the line.
func (h *naiveHolder) lock(ctx context.Context, stop <-chan struct{}) (node string, token int64, err error) {
	if _, err := h.conn.Create(naivePath, nil, 0, zk.WorldACL(zk.PermAll)); err != nil &&
		!errors.Is(err, zk.ErrNodeExists) {
		return "", 0, err
	}
	if node, err = h.conn.CreateProtectedEphemeralSequential(naivePath+"/lock-", nil,
		zk.WorldACL(zk.PermAll)); err != nil {
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
