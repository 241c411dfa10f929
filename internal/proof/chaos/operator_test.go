//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// startOperator pauses, resumes and purges the queue at featuresPath until stop is called. stop
// resumes the queue.
func (env *testEnv) startOperator(ctx context.Context, rng *rand.Rand) (stop func() error) {
	if env.observer == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q := env.queues[featuresPath]
		for ctx.Err() == nil {
			wait(ctx, 500*time.Millisecond+time.Duration(rng.Int64N(int64(2*time.Second))), nil)
			if rng.IntN(3) > 0 {
				_ = q.Pause(ctx) // the error does not matter: it may be done anyway
				env.history.logHarness("pause " + featuresPath)
				wait(ctx, time.Duration(rng.Int64N(int64(time.Second))), nil)
				_ = q.Resume(ctx) // stop resumes again
				continue
			}
			from := now()
			n, err := q.Purge(ctx)
			to := now()
			if err != nil {
				to = noReturn
			}
			env.history.addPurge(from, to)
			env.history.logHarness(fmt.Sprintf("purge %s: %d items, %v", featuresPath, n, err))
		}
	}()
	return sync.OnceValue(func() error {
		cancel()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit/2)
		defer cancel()
		return env.queues[featuresPath].Resume(ctx)
	})
}

// takeDeadLetters removes the dead letters of a queue and returns their values.
func (env *testEnv) takeDeadLetters(ctx context.Context, path string) (map[string]bool, error) {
	dead := map[string]bool{}
	for letter, err := range env.queues[path].DeadLetters(ctx) {
		if err != nil {
			return nil, err
		}
		if dead[string(letter.Data)] {
			return nil, fmt.Errorf("%s: two dead letters with the value %s", path, letter.Data)
		}
		if letter.Attempts < maxAttempts {
			return nil, fmt.Errorf("%s: %s is a dead letter after %d attempts", path, letter.Data, letter.Attempts)
		}
		dead[string(letter.Data)] = true
	}
	_, err := env.queues[path].PurgeDead(ctx)
	return dead, err
}

// filler is the value of the items of checkCapacity.
const filler = "filler"

// checkCapacity fills an empty queue up to its capacity: no place may be lost or given twice. Then
// it purges the items.
func (env *testEnv) checkCapacity(ctx context.Context, path string) error {
	q := env.queues[path]
	for range queueCapacity {
		if err := q.Put(ctx, filler); err != nil {
			return fmt.Errorf("%s: an empty queue refused an item: %w", path, err)
		}
	}
	full, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch err := q.Put(full, "one too many"); {
	case err == nil:
		return fmt.Errorf("%s: accepted more than %d items", path, queueCapacity)
	case errors.Is(err, framework.ErrOutcomeUnknown):
		return fmt.Errorf("%s: it is not known whether it accepted more than %d items: %w", path, queueCapacity, err)
	case !isEndOf(full, err):
		return fmt.Errorf("%s: a put that waits for room did not end with its context: %w", path, err)
	}
	n, err := q.Purge(ctx)
	if err == nil && n != queueCapacity {
		err = fmt.Errorf("%s: purged %d items of %d", path, n, queueCapacity)
	}
	return err
}
