package redislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/locks"
)

func TestGrantsExcludeEachOtherAndTokensRise(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, _ := s.newClient(t)
		first, err := NewMutex(a, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, first.Token())
		require.Equal(t, "orders", first.Path())
		require.Zero(t, first.Session())
		require.InDelta(t, DefaultExpiry.Seconds(), first.Remaining().Seconds(), 1)

		m := NewMutex(b, "orders").virtual()
		_, err = m.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)

		granted := make(chan *locks.Lease)
		go func() {
			second, err := m.Lock(t.Context())
			require.NoError(t, err)
			granted <- second
		}()
		synctest.Wait()
		time.Sleep(5 * time.Minute) // many expiries: the first holder renews
		require.NoError(t, first.Err())
		began := time.Now()
		require.NoError(t, first.Release(t.Context()))
		require.ErrorIs(t, first.Err(), locks.ErrReleased)
		require.Zero(t, first.Remaining())
		second := <-granted
		require.Zero(t, time.Since(began), "the release is published")
		require.EqualValues(t, 2, second.Token())
		require.NoError(t, second.Release(t.Context()))
		require.NoError(t, second.Release(t.Context()))
		require.Equal(t, []string{"{orders}:token"}, s.Keys())
	})
}

func TestALeaseEndsBeforeTheNextHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, toA := s.newClient(t)
		b, _ := s.newClient(t)
		var mu sync.Mutex
		var told []error
		lease, err := NewMutex(a, "orders", WithOnRenewalError(func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		})).virtual().Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		toA.set(func(l *link) { l.cut = true })
		second, err := NewMutex(b, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, lease.Err(), ErrExpired)
		require.ErrorIs(t, context.Cause(lease.Context()), ErrExpired)
		require.EqualValues(t, 2, second.Token())
		mu.Lock()
		require.NotEmpty(t, told)
		require.ErrorContains(t, told[0], "renew orders")
		mu.Unlock()
		toA.set(func(l *link) { l.cut = false })
		err = lease.Release(t.Context())
		require.ErrorIs(t, err, framework.ErrUnconfirmed, "the release has begun with the end")
		require.ErrorIs(t, err, ErrExpired)
		require.NoError(t, second.Err())
		time.Sleep(time.Minute)
		require.NoError(t, second.Err())
		require.NoError(t, second.Release(t.Context()))
	})
}

// A renewal's answer that comes late counts from the moment at which the renewal was sent.
func TestAnAnswerCountsFromItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		m := NewMutex(client, "orders", WithExpiry(9*time.Second), WithoutRenewal()).virtual()
		lease, err := m.Lock(t.Context()) // loads the scripts
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		to.set(func(l *link) { l.delay = 900 * time.Millisecond })
		lease, err = m.Lock(t.Context())
		require.NoError(t, err)
		began := time.Now()
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), ErrExpired)
		require.Equal(t, 9*time.Second-900*time.Millisecond-185*time.Millisecond, time.Since(began))
	})
}

func TestARenewalCountsFromItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		began := time.Now()
		lease, err := NewMutex(client, "orders", WithExpiry(9*time.Second)).virtual().Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(5 * time.Second) // the renewal after three seconds loads the script
		to.set(func(l *link) { l.delay = 900 * time.Millisecond })
		time.Sleep(2500 * time.Millisecond) // the one after six seconds has its answer
		to.set(func(l *link) { l.cut = true })
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), ErrExpired)
		require.Equal(t, 6*time.Second+9*time.Second-185*time.Millisecond, time.Since(began))
		to.set(func(l *link) { l.cut, l.delay = false, 0 })
	})
}

func TestALostAnswerIsNoSecondGrant(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		m := NewMutex(client, "orders").virtual()
		for n := range 3 {
			lease, err := m.Lock(t.Context()) // loads the scripts, and makes a connection
			require.NoError(t, err)
			require.EqualValues(t, n+1, lease.Token())
			to.set(func(l *link) { l.loseNext = true })
			require.NoError(t, lease.Release(t.Context()))
			require.False(t, s.Exists("orders"))
			to.set(func(l *link) { l.loseNext = true })
		}
	})
}

// The answer that grants the lock comes too late, and the next attempt finds it granted: its lease
// counts from then, and so does the key's expiry.
func TestALeaseOfALaterAttemptEndsBeforeItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, toB := s.newClient(t, func(o *redis.Options) { o.MaxRetries = -1 })
		holder, err := NewMutex(a, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			lease, _ := NewMutex(b, "orders", WithoutRenewal()).virtual().Lock(t.Context())
			granted <- lease
		}()
		synctest.Wait()
		toB.set(func(l *link) { l.cut = true })
		s.Del("orders")
		toB.set(func(l *link) { l.cut, l.delay = false, 2*time.Second })
		time.Sleep(DefaultExpiry/3 + 2*time.Second) // the waiter tries again
		toB.set(func(l *link) { l.delay = 0 })
		lease := <-granted
		require.NotNil(t, lease)
		require.Greater(t, s.TTL("orders"), lease.Remaining())
		require.NoError(t, lease.Release(t.Context()))
		_ = holder.Release(t.Context())
	})
}

// TestAnyAnswerMayBeLost, with its connection: those of each script, with and without go-redis' own
// retries.
func TestAnyAnswerMayBeLost(t *testing.T) {
	kinds := map[string]func(client *redis.Client) locks.Locker{
		"mutex":    func(c *redis.Client) locks.Locker { return NewMutex(c, "orders").virtual() },
		"in order": func(c *redis.Client) locks.Locker { return NewMutex(c, "orders", WithArrivalOrder()).virtual() },
		"write":    func(c *redis.Client) locks.Locker { return NewRWLock(c, "orders").virtual() },
		"read":     func(c *redis.Client) locks.Locker { return NewRWLock(c, "orders").virtual().RLocker() },
	}
	for kind, newLocker := range kinds {
		for _, retries := range []int{-1, 3} {
			t.Run(fmt.Sprint(kind, retries), func(t *testing.T) {
				inBubble(t, func(t *testing.T, s *memoryServer) {
					setRetries := func(o *redis.Options) { o.MaxRetries = retries }
					a, toA := s.newClient(t, setRetries)
					b, toB := s.newClient(t, setRetries)
					lose := func(to *link) { to.set(func(l *link) { l.loseNext = true }) }
					requireLost := func(to *link, what string) {
						to.set(func(l *link) { require.False(t, l.loseNext, what) })
					}
					holder, waiter := newLocker(a), newLocker(b)
					for _, l := range []locks.Locker{holder, waiter} { // loads the scripts, and makes a connection
						lease, err := l.Lock(t.Context())
						require.NoError(t, err)
						require.NoError(t, lease.Release(t.Context()))
					}
					lose(toA)
					began := time.Now()
					lease, err := holder.Lock(t.Context())
					require.Less(t, time.Since(began), time.Second, "an attempt that is sent again succeeds")
					requireLost(toA, "acquisition")
					if retries < 0 { // the first attempt tells
						require.ErrorIs(t, err, io.EOF)
						time.Sleep(time.Second)
						for _, key := range s.Keys() {
							require.Contains(t, []string{"{orders}:token", "{orders}:arrivals"}, key)
						}
						lease, err = holder.Lock(t.Context())
					}
					require.NoError(t, err)
					time.Sleep(DefaultExpiry / 2) // the first renewal loads the script
					lose(toA)
					time.Sleep(DefaultExpiry)
					requireLost(toA, "renewal")
					require.NoError(t, lease.Err())

					if kind == "read" {
						waiter = NewRWLock(b, "orders").virtual()
					}
					granted := make(chan *locks.Lease)
					go func() {
						next, err := waiter.Lock(t.Context())
						require.NoError(t, err)
						granted <- next
					}()
					synctest.Wait()
					lose(toB)
					time.Sleep(DefaultExpiry / 2)
					requireLost(toB, "refusal of a waiter")
					lose(toA)
					require.NoError(t, lease.Release(t.Context()))
					requireLost(toA, "release")
					next := <-granted
					require.NoError(t, next.Err())
					lose(toB)
					require.NoError(t, next.Release(t.Context()))
					requireLost(toB, "release")
					for _, key := range s.Keys() {
						require.Contains(t, []string{"{orders}:token", "{orders}:arrivals"}, key)
					}
				})
			})
		}
	}
}

func TestACallThatEndsLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, toB := s.newClient(t)
		holder, err := NewMutex(a, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		for name, opt := range map[string]Option{"plain": nil, "in order": WithArrivalOrder()} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no patience"))
			_, err = NewMutex(b, "orders", opt).virtual().Lock(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorContains(t, err, "acquire orders")
			require.ErrorContains(t, err, "no patience")
		}
		synctest.Wait()
		require.False(t, s.Exists("{orders}:line"))
		require.NoError(t, holder.Release(t.Context()))

		toB.set(func(l *link) { l.delay = 500 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = NewMutex(b, "orders").virtual().Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		time.Sleep(3 * time.Second)
		require.False(t, s.Exists("orders"), "what was granted is given back")
	})
}

// go-redis asks again on another connection, where a release may overtake the first request.
func TestALateRequestHasTheLockForItsExpiry(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		m := NewMutex(client, "orders").virtual()
		lockAndRelease := func() {
			lease, err := m.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		}
		lockAndRelease() // from now on the server knows the scripts
		to.set(func(l *link) { l.late = 2 * time.Second })
		done := make(chan struct{})
		go func() {
			lockAndRelease()
			close(done)
		}()
		synctest.Wait()
		to.set(func(l *link) { l.late = 0 })
		<-done
		require.False(t, s.Exists("orders"))
		time.Sleep(2 * time.Second)
		require.True(t, s.Exists("orders"))
		began := time.Now()
		lockAndRelease()
		require.LessOrEqual(t, time.Since(began), DefaultExpiry)
	})
}

func TestAReleaseWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		lease, err := NewMutex(client, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		to.set(func(l *link) { l.cut = true })
		began := time.Now()
		done, cancel := context.WithCancel(t.Context())
		cancel()
		err = lease.Release(done)
		require.ErrorIs(t, err, framework.ErrUnconfirmed)
		require.ErrorContains(t, err, "no answer within 10s")
		require.Equal(t, 10*time.Second, time.Since(began), "a third of the expiry")
		to.set(func(l *link) { l.cut = false })
		time.Sleep(3 * time.Second)
		require.False(t, s.Exists("orders"), "the release goes on in the background")
		require.NoError(t, lease.Release(t.Context()))

		lease, err = NewMutex(client, "orders", WithoutRenewal()).virtual().Lock(t.Context())
		require.NoError(t, err)
		to.set(func(l *link) { l.cut = true })
		until := time.Now().Add(DefaultExpiry)
		require.ErrorIs(t, lease.Release(t.Context()), framework.ErrUnconfirmed)
		time.Sleep(time.Until(until) - 5*time.Second)
		err = lease.Release(done)
		require.ErrorIs(t, err, ErrExpired, "the key is gone, whatever go-redis waits for")
		require.Equal(t, until, time.Now())
		to.set(func(l *link) { l.cut = false })
	})
}

// A call whose context can end asks in another goroutine, since go-redis does not end with the
// context. One whose context cannot end asks by itself, which is faster.
func TestACallWithoutAnEndAsksByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		by := &askers{}
		client.AddHook(by)
		m := NewMutex(client, "orders").virtual()
		for _, lock := range []func(context.Context) (*locks.Lease, error){m.Lock, m.TryLock} {
			lease, err := lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
			require.NotContains(t, by.stacks(), t.Name())
			lease, err = lock(context.Background())
			require.NoError(t, err)
			require.Contains(t, by.stacks(), t.Name())
			require.NoError(t, lease.Release(context.Background()))
			require.Contains(t, by.stacks(), t.Name())
		}

		lease, err := m.Lock(context.Background())
		require.NoError(t, err)
		time.AfterFunc(8*time.Second, func() { to.set(func(l *link) { l.cut = false }) })
		to.set(func(l *link) { l.cut = true })
		require.NoError(t, lease.Release(context.Background()), "what fails is tried again")
		require.False(t, s.Exists("orders"))
	})
}

// A lease does not open and close the timer of the operating system: an alarm is kept for the next.
func TestAnAlarmIsKeptForTheNextLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, _ := s.newClient(t)
		m := NewMutex(client, "orders")
		alarms := &countingClock{Clock: clock.Time()}
		m.lock.clock = alarms
		for _, ctx := range []context.Context{t.Context(), context.Background()} {
			lease, err := m.Lock(ctx)
			require.NoError(t, err)
			require.NoError(t, lease.Release(ctx))
			synctest.Wait()
			require.EqualValues(t, 1, alarms.notStopped.Load())
			time.Sleep(3 * linger)
			require.Zero(t, alarms.notStopped.Load())
		}
	})
}

// countingClock counts the alarms that are not stopped.
type countingClock struct {
	clock.Clock
	notStopped atomic.Int32
}

func (c *countingClock) NewAlarm(ring func()) clock.Alarm {
	c.notStopped.Add(1)
	return &countedAlarm{Alarm: c.Clock.NewAlarm(ring), clock: c}
}

type countedAlarm struct {
	clock.Alarm
	clock *countingClock
	once  sync.Once
}

func (a *countedAlarm) Stop() {
	a.Alarm.Stop()
	a.once.Do(func() { a.clock.notStopped.Add(-1) })
}

// askers remembers from where requests are sent.
type askers struct {
	mu  sync.Mutex
	all strings.Builder
}

func (a *askers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *askers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *askers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		a.mu.Lock()
		a.all.Write(debug.Stack())
		a.mu.Unlock()
		return next(ctx, command)
	}
}

// stacks returns those since the last call.
func (a *askers) stacks() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.all.Reset()
	return a.all.String()
}

func TestALockThatIsGoneEndsItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, _ := s.newClient(t)
		lease, err := NewMutex(client, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		s.Del("orders")
		began := time.Now()
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), ErrLost)
		require.Equal(t, 10*time.Second, time.Since(began), "at the next renewal")

		lease, err = NewMutex(client, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Set("orders", "another owner"))
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), ErrLost)
		require.NoError(t, lease.Release(t.Context()))
		require.True(t, s.Exists("orders"), "another owner's lock stays")
	})
}

// A release wakes one waiter of all processes, and passes over one whose process is gone.
func TestAReleaseCallsOneWaiter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		holder, err := NewMutex(a, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		gone, _ := s.connect()
		go func() {
			_, err := NewMutex(gone, "orders").virtual().Lock(t.Context())
			require.ErrorIs(t, err, redis.ErrClosed)
		}()
		time.Sleep(time.Second)
		require.NoError(t, gone.Close())
		time.Sleep(DefaultExpiry / 3) // it tries, which fails
		granted := make(chan *locks.Lease)
		for range 5 {
			client, _ := s.newClient(t)
			go func() {
				lease, err := NewMutex(client, "orders").virtual().Lock(t.Context())
				require.NoError(t, err)
				granted <- lease
			}()
		}
		time.Sleep(time.Second)
		waiting, err := s.ZMembers("{orders}:waiting")
		require.NoError(t, err)
		require.Len(t, waiting, 6)
		for left := 4; left > 0; left-- {
			began := time.Now()
			require.NoError(t, holder.Release(t.Context()))
			holder = <-granted
			require.Zero(t, time.Since(began))
			synctest.Wait()
			waiting, err = s.ZMembers("{orders}:waiting")
			require.NoError(t, err)
			require.Len(t, waiting, left)
		}
		require.NoError(t, holder.Release(t.Context()))
		require.NoError(t, (<-granted).Release(t.Context()))
		require.Equal(t, []string{"{orders}:token"}, s.Keys())
	})
}

func TestACalledWaiterThatFindsANewcomerTriesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, toB := s.newClient(t)
		m := NewMutex(a, "orders").virtual()
		lease, err := m.Lock(t.Context())
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			lease, err := NewMutex(b, "orders").virtual().Lock(t.Context())
			require.NoError(t, err)
			granted <- lease
		}()
		time.Sleep(time.Second)
		toB.set(func(l *link) { l.delay = time.Millisecond })
		require.NoError(t, lease.Release(t.Context()))
		lease, err = m.Lock(t.Context()) // the waiter gets its call in a millisecond
		require.NoError(t, err)
		time.Sleep(3 * time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))
		began := time.Now()
		lease = <-granted
		require.Less(t, time.Since(began), 10*time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))

		// one that is called and cannot answer keeps the lock from the others no longer than a lost
		// message
		toB.set(func(l *link) { l.delay = 0 })
		lease, err = m.Lock(t.Context())
		require.NoError(t, err)
		go func() {
			lease, err := NewMutex(b, "orders").virtual().Lock(t.Context())
			require.NoError(t, err)
			granted <- lease
		}()
		time.Sleep(time.Second)
		c, _ := s.newClient(t)
		other := make(chan *locks.Lease)
		go func() {
			lease, err := NewMutex(c, "orders").virtual().Lock(t.Context())
			require.NoError(t, err)
			other <- lease
		}()
		time.Sleep(time.Second)
		toB.set(func(l *link) { l.cut = true })
		began = time.Now()
		require.NoError(t, lease.Release(t.Context()))
		lease = <-other
		require.LessOrEqual(t, time.Since(began), DefaultExpiry/3)
		toB.set(func(l *link) { l.cut = false })
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, (<-granted).Release(t.Context()))
	})
}

func TestLimitsOfALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, _ := s.newClient(t)
		began := time.Now()
		lease, err := NewMutex(client, "orders", WithMaxHold(time.Minute)).virtual().Lock(t.Context())
		require.NoError(t, err)
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), locks.ErrMaxHold)
		require.Equal(t, time.Minute, time.Since(began))
		synctest.Wait()
		require.False(t, s.Exists("orders"))
	})
}

func TestReentry(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, _ := s.newClient(t)
		plain, nests := NewMutex(client, "orders").virtual(), NewMutex(client, "orders", WithReentry()).virtual()
		outer, err := plain.Lock(t.Context())
		require.NoError(t, err)
		_, err = plain.Lock(outer.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		nested, err := nests.Lock(outer.Context())
		require.NoError(t, err)
		require.Equal(t, outer.Token(), nested.Token())
		require.NoError(t, nested.Release(t.Context()))
		require.NoError(t, outer.Err())
		nested, err = nests.TryLock(outer.Context())
		require.NoError(t, err)
		require.NoError(t, outer.Release(t.Context()))
		require.ErrorIs(t, nested.Err(), locks.ErrReleased)
		again, err := plain.Lock(context.WithoutCancel(nested.Context()))
		require.NoError(t, err, "the lease is over")
		require.NoError(t, again.Release(t.Context()))
	})
}

func TestGrantsInArrivalOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		holder, err := NewMutex(a, "orders", WithArrivalOrder()).virtual().Lock(t.Context())
		require.NoError(t, err)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		var dead *link
		for n := range 5 {
			client, to := s.newClient(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if n == 2 {
				dead = to
			}
			all.Go(func() {
				lease, err := NewMutex(client, "orders", WithArrivalOrder()).virtual().Lock(ctx)
				require.NoError(t, err)
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
				require.NoError(t, lease.Release(ctx))
			})
			time.Sleep(time.Second)
		}
		_, err = NewMutex(a, "orders", WithArrivalOrder()).virtual().TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		dead.set(func(l *link) { l.cut = true })
		began := time.Now()
		require.NoError(t, holder.Release(t.Context()))
		for {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			mu.Lock()
			n := len(order)
			mu.Unlock()
			if n == 4 {
				break
			}
		}
		require.Less(t, time.Since(began), 7*time.Second)
		dead.set(func(l *link) { l.cut = false })
		all.Wait()
		require.Equal(t, []int{0, 1, 3, 4, 2}, order)
	})
}

func TestBadInput(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		var none *redis.Client
		for says, m := range map[string]*Mutex{
			"the client is nil":             NewMutex(none, "orders"),
			"the client is nil ":            NewMutex(nil, "orders"),
			"the name is empty":             NewMutex(client, ""),
			"1025 bytes":                    NewMutex(client, strings.Repeat("n", 1025)),
			`"a\nb" has characters`:         NewMutex(client, "a\nb"),
			`"a\xff" has characters`:        NewMutex(client, "a\xff"),
			`"a\u202eb" has characters`:     NewMutex(client, "a\u202eb"),
			`"{a}b" has braces`:             NewMutex(client, "{a}b"),
			"WithExpiry: 99ms":              NewMutex(client, "orders", WithExpiry(99*time.Millisecond)),
			"WithExpiry: 25h0m0s":           NewMutex(client, "orders", WithExpiry(25*time.Hour)),
			"WithMaxHold: 0s":               NewMutex(client, "orders", WithMaxHold(0)),
			"WithOnRenewalError: the funct": NewMutex(client, "orders", WithOnRenewalError(nil)),
			"WithLogger: the logger is nil": NewMutex(client, "orders", WithLogger(nil)),
		} {
			_, err := m.Lock(t.Context())
			require.ErrorIs(t, err, errInvalid, says)
			require.ErrorContains(t, err, strings.TrimSpace(says))
			_, err = m.TryLock(t.Context())
			require.ErrorIs(t, err, errInvalid, says)
		}
		_, err := NewRWLock(client, "orders", WithArrivalOrder()).virtual().RLock(t.Context())
		require.ErrorIs(t, err, errInvalid)
		ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
		err = NewMutex(ring, "orders").Validate()
		require.ErrorIs(t, err, errInvalid)
		require.ErrorContains(t, err, "ring")
		require.NoError(t, ring.Close())

		_, err = s.Lpush("list", "element")
		require.NoError(t, err)
		_, err = NewMutex(client, "list").virtual().Lock(t.Context())
		require.ErrorIs(t, err, errForeign)
		require.NoError(t, s.Set("{orders}:token", "many"))
		_, err = NewMutex(client, "orders").virtual().Lock(t.Context())
		require.ErrorContains(t, err, "not an integer")
		require.False(t, s.Exists("orders"))

		s.SetError("READONLY You can't write against a read only replica.")
		_, err = NewMutex(client, "replica").virtual().Lock(t.Context())
		require.ErrorIs(t, err, errReplica)
		s.SetError("OOM command not allowed when used memory > 'maxmemory'.")
		_, err = NewMutex(client, "full").virtual().Lock(t.Context())
		require.ErrorContains(t, err, "OOM")
		s.SetError("NOAUTH Authentication required.")
		_, err = NewMutex(client, "secret").virtual().Lock(t.Context())
		require.ErrorContains(t, err, "NOAUTH")
		s.SetError("")
		require.Equal(t, []string{"list", "{orders}:token"}, s.Keys())

		to.set(func(l *link) { l.delay = 150 * time.Millisecond })
		_, err = NewMutex(client, "far", WithExpiry(MinExpiry)).virtual().Lock(t.Context())
		require.ErrorIs(t, err, ErrExpired)
		require.ErrorContains(t, err, "of 100ms")
		to.set(func(l *link) { l.delay, l.cut = 0, true })
		_, err = NewMutex(client, "down").virtual().Lock(t.Context())
		require.ErrorContains(t, err, "acquire down")
	})
}

func TestAWaiterOutlivesAFailover(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, toB := s.newClient(t)
		holder, err := NewMutex(a, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			lease, err := NewMutex(b, "orders").virtual().Lock(t.Context())
			require.NoError(t, err)
			granted <- lease
		}()
		time.Sleep(time.Second)
		toB.set(func(l *link) { l.cut = true })
		time.Sleep(time.Minute)
		toB.set(func(l *link) { l.cut = false })
		s.SetError("READONLY You can't write against a read only replica.")
		time.Sleep(15 * time.Second) // shorter than the holder's lease
		s.SetError("")
		time.Sleep(15 * time.Second)
		require.NoError(t, holder.Release(t.Context()))
		require.NoError(t, (<-granted).Release(t.Context()))
	})
}

// The alarm of the first renewal has rung as the lease is released, and its goroutine runs later:
// the time of the release is not over.
func TestAReleaseBesideTheFirstRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		m, alarms := NewMutex(client, "orders"), &heldUpClock{Clock: clock.Time(), goOn: make(chan struct{})}
		m.lock.clock = alarms
		lease, err := m.Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(DefaultExpiry / 3)
		synctest.Wait()
		require.EqualValues(t, 1, alarms.rung.Load())
		to.set(func(l *link) { l.delay = 100 * time.Millisecond })
		released := make(chan error)
		go func() { released <- lease.Release(t.Context()) }()
		synctest.Wait()
		close(alarms.goOn)
		require.NoError(t, <-released)
		require.False(t, s.Exists("orders"))
	})
}

// go-redis waits for its ReadTimeout beyond the end of the lease.
func TestALongReleaseRingsNoAlarmAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		alarms := &heldUpClock{Clock: clock.Time(), goOn: make(chan struct{})}
		close(alarms.goOn)
		m := NewMutex(client, "orders", WithoutRenewal())
		m.lock.clock = alarms
		lease, err := m.Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(lease.Remaining() - time.Millisecond)
		to.set(func(l *link) { l.cut = true })
		require.ErrorIs(t, lease.Release(context.Background()), ErrExpired)
		require.LessOrEqual(t, alarms.rung.Load(), int32(2))
	})
}

// heldUpClock has alarms whose goroutines are held up, and that ring a hundred times at most.
type heldUpClock struct {
	clock.Clock
	rung atomic.Int32
	goOn chan struct{} // closed to let them go on
}

func (c *heldUpClock) NewAlarm(ring func()) clock.Alarm {
	return c.Clock.NewAlarm(func() {
		if c.rung.Add(1) <= 100 {
			<-c.goOn
			ring()
		}
	})
}

// A process that was paused may read the answer to a renewal after it has seen that the lease is
// over.
func TestAnEndIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e expiry
		var life lifetime.Lifetime
		life.Init(&e, t.Context())
		e.begin(clock.Time(), time.Second, &life)
		time.Sleep(time.Second)
		require.ErrorIs(t, e.Err(), ErrExpired)
		e.mu.Lock()
		e.until = time.Hour // as by a renewal that has looked at the clock before
		e.mu.Unlock()
		require.ErrorIs(t, e.Err(), ErrExpired)
		require.Zero(t, e.remaining())
		e.stop()
	})
}
