package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long an item that was given back waits until it comes again. It is stored with the queue, and so
// all consumers keep to it. After attempt k the item waits Min × Factor^(k-1), at most Max, made shorter at random by up to the share Jitter.
type RetryPolicy struct {
	// Min is the time after the first attempt, from 1ms.
	Min time.Duration
	// Max is the most that an item waits, from Min to 10 years. Default Min × 1,000, at most an hour, at least Min.
	Max time.Duration
	// Factor is how much longer each wait is than the one before, from 1 to 100. Default 2.
	Factor float64
	// Jitter is the share of a wait that is left to chance, from 0 to 1, so that items that failed together do not come again together. Default 0.
	Jitter float64
}

// storedRetry is a policy as it is stored: times are in milliseconds.
type storedRetry struct {
	Min    int64   `json:"min"`
	Max    int64   `json:"max"`
	Factor float64 `json:"factor"`
	Jitter float64 `json:"jitter,omitempty"`
}

// WithRetry says how long an item waits after an attempt that has failed: in Work, and in Nack without a delay. Times are
// kept in milliseconds, and rounded up to seconds where items wait in a parallel queue. The items of a lost consumer come again at once.
// Default: as it is stored; no wait if the queue is made now. Another policy than the stored one is refused with ErrMismatch.
func WithRetry(p RetryPolicy) Option {
	return func(q *engine) error {
		p, err := p.complete()
		if err != nil {
			return err
		}
		q.record.Retry = &storedRetry{p.Min.Milliseconds(), p.Max.Milliseconds(), p.Factor, p.Jitter}
		return nil
	}
}

// RetryPolicy returns the policy that is stored with the queue, as this Queue has read it with its last put or take; false if
// there is none.
func (q *Queue[T]) RetryPolicy() (RetryPolicy, bool) {
	r := q.core.found.Load()
	if r == nil || r.Retry == nil {
		return RetryPolicy{}, false
	}
	return RetryPolicy{Min: time.Duration(r.Retry.Min) * time.Millisecond, Max: time.Duration(r.Retry.Max) * time.Millisecond,
		Factor: r.Retry.Factor, Jitter: r.Retry.Jitter}, true
}

// complete fills in the defaults, or refuses a value.
func (p RetryPolicy) complete() (RetryPolicy, error) {
	if p.Factor == 0 {
		p.Factor = 2
	}
	if p.Max == 0 {
		p.Max = max(p.Min, min(time.Hour, 1000*p.Min))
	}
	switch {
	case p.Min < time.Millisecond || p.Min > maxDelay:
		return p, fmt.Errorf("%w: WithRetry: Min %v is not between 1ms and %v", ErrOption, p.Min, maxDelay)
	case p.Max < p.Min || p.Max > maxDelay:
		return p, fmt.Errorf("%w: WithRetry: Max %v is not between Min, %v, and %v", ErrOption, p.Max, p.Min, maxDelay)
	case !(p.Factor >= 1 && p.Factor <= 100):
		return p, fmt.Errorf("%w: WithRetry: Factor %v is not between 1 and 100", ErrOption, p.Factor)
	case !(p.Jitter >= 0 && p.Jitter <= 1):
		return p, fmt.Errorf("%w: WithRetry: Jitter %v is not between 0 and 1", ErrOption, p.Jitter)
	}
	return p, nil
}

// usable reports whether a stored policy can be used.
func (s storedRetry) usable() bool {
	most := maxDelay.Milliseconds()
	return s.Min >= 1 && s.Min <= s.Max && s.Max <= most && s.Factor >= 1 && s.Factor <= 100 && s.Jitter >= 0 && s.Jitter <= 1
}

func (s storedRetry) String() string {
	return fmt.Sprintf("%v to %v, factor %v, jitter %v", time.Duration(s.Min)*time.Millisecond, time.Duration(s.Max)*time.Millisecond, s.Factor, s.Jitter)
}

// wait is how long an item waits after an attempt, counted from 1. chance is from 0 to less than 1.
func (s storedRetry) wait(attempt int, chance float64) time.Duration {
	ms := math.Min(float64(s.Max), float64(s.Min)*math.Pow(s.Factor, float64(max(0, attempt-1))))
	return time.Duration(ms * (1 - s.Jitter*chance) * float64(time.Millisecond))
}

// retryDelay is how long an item is to wait after an attempt.
func (q *engine) retryDelay(attempt int) time.Duration {
	retry := q.storedRecord().Retry
	if retry == nil {
		return 0
	}
	return retry.wait(attempt, rand.Float64())
}
