package redislock

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/backoff"
)

// wakes wakes the waiters of one lock in this process when they are called. It subscribes while
// there are waiters, and for a moment after.
type wakes struct {
	client  redis.UniversalClient
	process string // names this process's channel, and begins its owners
	calls   any    // callsOf the lock, for releases
	channel string

	mu      sync.Mutex
	waiters map[string]*waiter // by owner
	end     func()             // ends the subscription; nil without one
	idle    *time.Timer
}

// waiter is a waiting call.
type waiter struct {
	owner string
	woken chan struct{} // has room for one
}

func (ws *wakes) begin(client redis.UniversalClient, name string) {
	ws.client, ws.process, ws.waiters = client, randomHex(8), map[string]*waiter{}
	ws.calls, ws.channel = callsOf(name), callsOf(name)+ws.process
}

// newOwner returns a name that no other contender has, from which a release knows how to call it:
// the process's part of the channel, and whether it reads.
func (ws *wakes) newOwner(shared bool) string {
	kind := "w"
	if shared {
		kind = "r"
	}
	return ws.process + ":" + kind + randomHex(16)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// subscriptionLinger is how long a subscription without waiters stays for the next one.
const subscriptionLinger = time.Second

// join adds a waiter. It is woken once the subscription has begun, since calls before that were
// missed.
func (ws *wakes) join(owner string) *waiter {
	w := &waiter{owner: owner, woken: make(chan struct{}, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.waiters[owner] = w
	switch {
	case ws.end == nil:
		ctx, cancel := context.WithCancel(context.Background())
		ws.end = cancel
		go ws.listen(ctx)
	default:
		if ws.idle != nil {
			ws.idle.Stop()
			ws.idle = nil
		}
		w.wake() // between its attempt and now it may have been called
	}
	return w
}

// leave removes a waiter. One that was called and holds nothing gives back what it has, which calls
// the next.
func (ws *wakes) leave(w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.waiters, w.owner)
	if len(ws.waiters) > 0 || ws.idle != nil {
		return
	}
	var idle *time.Timer
	idle = time.AfterFunc(subscriptionLinger, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if ws.idle == idle {
			ws.end()
			ws.end, ws.idle = nil, nil
		}
	})
	ws.idle = idle
}

// listen subscribes until ctx ends, again whenever the connection fails.
func (ws *wakes) listen(ctx context.Context) {
	pauses := backoff.New(10*time.Millisecond, time.Second)
	for ctx.Err() == nil {
		if ws.listenOnce(ctx) {
			pauses.Reset()
		}
		_ = pauses.Pause(ctx) // the loop ends with ctx
	}
}

const (
	// lookUp is how often a subscription without messages looks whether it is still wanted. A
	// subscription of go-redis must not be closed while it may be connecting: Close waits for that.
	lookUp = time.Second
	// silence is after how many of these it asks whether the server is there. It gives up after one
	// more.
	silence = 3
)

// listenOnce wakes waiters at each call on one connection, and all when the subscription begins,
// since calls before that were missed. It reports whether the subscription has begun.
func (ws *wakes) listenOnce(ctx context.Context) (begun bool) {
	sub := ws.client.Subscribe(ctx)
	defer func() { _ = sub.Close() }()
	err := sub.Subscribe(ctx, ws.channel)
	for silent := 0; err == nil && ctx.Err() == nil; {
		var event any
		event, err = sub.ReceiveTimeout(ctx, lookUp)
		var network net.Error
		if errors.As(err, &network) && network.Timeout() && silent <= silence {
			err = nil
			if silent++; silent == silence {
				err = sub.Ping(ctx)
			}
			continue
		}
		silent = 0
		switch e := event.(type) {
		case *redis.Subscription:
			begun = true
			ws.wakeAll()
		case *redis.Message:
			ws.wake(e.Payload)
		}
	}
	return begun
}

func (ws *wakes) wakeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.waiters {
		w.wake()
	}
}

func (ws *wakes) wake(owner string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.waiters[owner]; w != nil {
		w.wake()
	}
}

func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// wait waits for a wake, for d at most. It returns ctx.Err() if ctx ends first.
func (w *waiter) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
