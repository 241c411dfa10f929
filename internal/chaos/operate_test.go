//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/queue"
)

// operate pauses, resumes and purges the queue at featuresPath until stop is called. stop resumes the queue.
func (a *arena) operate(ctx context.Context, r *rand.Rand) (stop func() error) {
	if a.watcher == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q := a.queues[featuresPath]
		for ctx.Err() == nil {
			pass(ctx, 500*time.Millisecond+time.Duration(r.Int64N(int64(2*time.Second))), nil)
			if r.IntN(3) > 0 {
				_ = q.Pause(ctx) // it may be done whatever it returns
				a.record.remark("pause " + featuresPath)
				pass(ctx, time.Duration(r.Int64N(int64(time.Second))), nil)
				_ = q.Resume(ctx) // stop does it again
				continue
			}
			from := now()
			n, err := q.Purge(ctx)
			to := now()
			if err != nil {
				to = unfinished
			}
			a.record.purged(from, to)
			a.record.remark(fmt.Sprintf("purge %s: %d items, %v", featuresPath, n, err))
		}
	}()
	return sync.OnceValue(func() error {
		cancel()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), patience/2)
		defer cancel()
		return a.queues[featuresPath].Resume(ctx)
	})
}

// takeDeadLetters removes the dead letters of a queue and returns their values.
func (a *arena) takeDeadLetters(ctx context.Context, path string) (map[string]bool, error) {
	dead := map[string]bool{}
	for letter, err := range a.queues[path].DeadLetters(ctx) {
		if err != nil {
			return nil, err
		}
		if dead[string(letter.Data)] {
			return nil, fmt.Errorf("%s: %s is a dead letter twice", path, letter.Data)
		}
		if letter.Attempts < maxAttempts {
			return nil, fmt.Errorf("%s: %s is a dead letter after %d attempts", path, letter.Data, letter.Attempts)
		}
		dead[string(letter.Data)] = true
	}
	_, err := a.queues[path].PurgeDead(ctx)
	return dead, err
}

// filler is the value of the items of fillAndEmpty.
const filler = "filler"

// fillAndEmpty puts as many items as an empty queue takes by its capacity: no place may have got lost, and none may be
// given twice. Then it removes them.
func (a *arena) fillAndEmpty(ctx context.Context, path string) error {
	q := a.queues[path]
	for range capacity {
		if err := q.Put(ctx, filler); err != nil {
			return fmt.Errorf("%s: a queue without items has no room: %w", path, err)
		}
	}
	full, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := q.Put(full, "one too many"); err == nil || errors.Is(err, queue.ErrUnknown) {
		return fmt.Errorf("%s: more than %d items: %w", path, capacity, err)
	}
	n, err := q.Purge(ctx)
	if err == nil && n != capacity {
		err = fmt.Errorf("%s: %d items removed of %d", path, n, capacity)
	}
	return err
}
