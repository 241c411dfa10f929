package redislock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/backoff"
)

// wakes wakes the waiters of one lock in this process when releases are published. It subscribes
// while there are waiters, and for a moment after.
type wakes struct {
	client  redis.UniversalClient
	channel string

	mu      sync.Mutex
	waiters []*waiter // in the order of their calls
	end     func()    // ends the subscription; nil without one
	idle    *time.Timer
}

// waiter is a waiting call.
type waiter struct {
	owner  string
	shared bool
	woken  chan struct{} // has room for one
}

// subscriptionLinger is how long a subscription without waiters stays for the next one.
const subscriptionLinger = time.Second

// join adds a waiter. It is woken once the subscription has begun, since releases before that were
// missed.
func (ws *wakes) join(owner string, shared bool) *waiter {
	w := &waiter{owner: owner, shared: shared, woken: make(chan struct{}, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.waiters = append(ws.waiters, w)
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
		w.wake() // between its attempt and now a release may have been published
	}
	return w
}

// leave removes a waiter, and passes a wake on that it has not used.
func (ws *wakes) leave(w *waiter) {
	ws.mu.Lock()
	ws.waiters = slices.DeleteFunc(ws.waiters, func(other *waiter) bool { return other == w })
	if len(ws.waiters) == 0 && ws.idle == nil {
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
	ws.mu.Unlock()
	select {
	case <-w.woken:
		ws.wakeFirst(w.shared)
	default:
	}
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

// listenOnce wakes waiters at each message of one connection, and when the subscription begins,
// since releases before that were missed. It reports whether the subscription has begun.
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
			ws.wakeAny()
		case *redis.Message:
			if e.Payload == "" {
				ws.wakeAny()
			} else {
				ws.wakeOwner(e.Payload)
			}
		}
	}
	return begun
}

// wakeAny wakes the first waiter of each kind.
func (ws *wakes) wakeAny() {
	ws.wakeFirst(false)
	ws.wakeFirst(true)
}

// wakeFirst wakes the first waiter of a kind. If it acquires the lock for reading, it wakes the next.
func (ws *wakes) wakeFirst(shared bool) {
	ws.wakeWhere(func(w *waiter) bool { return w.shared == shared })
}

func (ws *wakes) wakeOwner(owner string) {
	ws.wakeWhere(func(w *waiter) bool { return w.owner == owner })
}

func (ws *wakes) wakeWhere(is func(*waiter) bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i := slices.IndexFunc(ws.waiters, is); i >= 0 {
		ws.waiters[i].wake()
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
