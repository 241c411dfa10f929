package faults

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// band is contenders that pass one lock around.
type band struct {
	name   string
	record *record
	lock   func(*framework.Client, string) locks.Locker
	shared bool // one client for all
	rounds []atomic.Int64
}

// members is how many contenders a band has.
const members = 6

func bands(t *testing.T) []*band {
	mutex := func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path) }
	semaphore := func(c *framework.Client, path string) locks.Locker { return locks.NewSemaphore(c, path, 1) }
	all := []*band{
		{name: "mutex, a session each", lock: mutex},
		{name: "mutex, one session", lock: mutex, shared: true},
		{name: "semaphore, a session each", lock: semaphore},
		{name: "semaphore, one session", lock: semaphore, shared: true},
	}
	for i, b := range all {
		b.record = &record{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)}
		b.rounds = make([]atomic.Int64, members)
	}
	return all
}

// TestQuorum takes two of three servers away from bands, until every session is over, and brings one back.
// Without a quorum nobody holds and nobody is granted; with it, all go on by themselves. The ensemble is its
// own, since two servers less would be a fault too many for other tests.
func TestQuorum(t *testing.T) {
	a := &arena{ensemble.Private(t, ensemble.Config{NoFsync: true, Patience: patience, HeapMB: 256})}
	r := a.roles(t)
	ctx, cancel := context.WithCancel(t.Context())
	playing, failed := make(chan struct{}), error(nil)
	all := bands(t)
	t.Cleanup(func() {
		cancel()
		<-playing
	})
	go func() {
		defer close(playing)
		failed = together(len(all), func(i int) error { return all[i].play(ctx, a) })
	}()
	served(t, all)
	require.NoError(t, a.Kill(r.leader))
	require.NoError(t, a.Kill(r.follower))
	pass(t, timeout) // what the servers had agreed upon before is heard of, and then every session is over
	require.NoError(t, nobody(all))
	stalled := progress(all)
	pass(t, timeout)
	require.NoError(t, nobody(all))
	require.Equal(t, stalled, progress(all), "granted without a quorum")
	require.NoError(t, a.Restart(r.follower))
	served(t, all)
	cancel()
	<-playing
	require.NoError(t, failed)
	for _, b := range all {
		b.record.gaps()
	}
}

// play lets a band's members take turns until ctx ends.
func (b *band) play(ctx context.Context, a *arena) error {
	cfg := a.at(0, 1, 2)
	var one *framework.Client
	if b.shared {
		var err error
		if one, err = connect(b.record.t, cfg); err != nil {
			return err
		}
	}
	return together(members, func(i int) (err error) {
		c := one
		if c == nil {
			if c, err = connect(b.record.t, cfg); err != nil {
				return err
			}
		}
		return b.take(ctx, c, i)
	})
}

// take is one member's turns.
func (b *band) take(ctx context.Context, c *framework.Client, i int) error {
	l := b.lock(c, b.record.path)
	for ctx.Err() == nil {
		lease, err := l.Lock(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		g := b.record.granted(fmt.Sprintf("%s, member %d", b.name, i), lease)
		pass(b.record.t, 20*time.Millisecond)
		g.release(ctx)
		b.rounds[i].Add(1)
	}
	return nil
}

// served waits until each member of each band has had its turn, from now on.
func served(t *testing.T, all []*band) {
	t.Helper()
	for _, b := range all {
		for i := range b.rounds {
			had := b.rounds[i].Load()
			eventually(t, func() error {
				now := b.rounds[i].Load()
				return want(fmt.Sprintf("%s: member %d served", b.name, i), now >= had+2, now-had) // one may be from before
			})
		}
	}
}

// nobody is an error if somebody holds.
func nobody(all []*band) error {
	for _, b := range all {
		b.record.mu.Lock()
		defer b.record.mu.Unlock()
		for _, g := range b.record.grants {
			if !g.over() {
				return fmt.Errorf("%s holds", g.who)
			}
		}
	}
	return nil
}

// progress counts the grants of all.
func progress(all []*band) (grants int) {
	for _, b := range all {
		b.record.mu.Lock()
		grants += len(b.record.grants)
		b.record.mu.Unlock()
	}
	return grants
}
