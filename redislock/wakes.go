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

// silence is how long a subscription waits for a message before it asks whether the server is there.
const silence = 3 * time.Second

// listenOnce wakes waiters at each message of one connection, and when the subscription begins,
// since releases before that were missed. It reports whether the subscription has begun.
func (ws *wakes) listenOnce(ctx context.Context) (begun bool) {
	sub := ws.client.Subscribe(ctx, ws.channel)
	closeOnce := sync.OnceFunc(func() { _ = sub.Close() }) // also ends a Receive
	defer context.AfterFunc(ctx, closeOnce)()
	defer closeOnce()
	asked := false
	for {
		event, err := sub.ReceiveTimeout(ctx, silence)
		var network net.Error
		switch {
		case err != nil && errors.As(err, &network) && network.Timeout() && !asked && begun:
			asked = true
			err = sub.Ping(ctx)
		default:
			asked = false
		}
		if err != nil {
			return begun
		}
		switch e := event.(type) {
		case *redis.Subscription:
			begun = true
			ws.wakeFirst(false)
			ws.wakeFirst(true)
		case *redis.Message:
			if e.Payload != "" {
				ws.wakeOwner(e.Payload)
				continue
			}
			ws.wakeFirst(false)
			ws.wakeFirst(true)
		}
	}
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
