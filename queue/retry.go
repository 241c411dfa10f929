package queue

import (
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// RetryPolicy is how long an item waits after a failed attempt. It is stored with the queue, so it
// is the same for all consumers. After attempt k the item waits Min × Factor^(k-1), at most Max,
// made shorter at random by up to the share Jitter.
type RetryPolicy struct {
	// Min is the time after the first attempt, from 1 ms to 10 years.
	Min time.Duration
	// Max is the longest time that an item waits, from Min to 10 years. Default Min × 1,000, at
	// most an hour, at least Min.
	Max time.Duration
	// Factor is how much longer each wait is than the one before, from 1 to 100. Default 2.
	Factor float64
	// Jitter is the random share of a wait, from 0 to 1: items that failed together do not all come
	// again together. Default 0.
	Jitter float64
}

// retryPolicy converts a stored policy to the application's type.
func retryPolicy(s queuelayout.StoredRetry) RetryPolicy {
	return RetryPolicy{Min: time.Duration(s.Min) * time.Millisecond, Max: time.Duration(s.Max) * time.Millisecond,
		Factor: s.Factor, Jitter: s.Jitter}
}

// stored converts the policy to what is stored. The fields of before that this release does not
// know stay.
func (p RetryPolicy) stored(before queuelayout.StoredRetry) *queuelayout.StoredRetry {
	before.Min, before.Max = p.Min.Milliseconds(), p.Max.Milliseconds()
	before.Factor, before.Jitter = p.Factor, p.Jitter
	return &before
}

// sameRetry reports whether two stored policies, of which each may be nil, are the same.
func sameRetry(a, b *queuelayout.StoredRetry) bool {
	return a == nil && b == nil || a != nil && b != nil && retryPolicy(*a) == retryPolicy(*b)
}

// withDefaults fills in the defaults, or refuses a value.
func (p RetryPolicy) withDefaults() (RetryPolicy, error) {
	if p.Factor == 0 {
		p.Factor = 2
	}
	if p.Max == 0 {
		p.Max = max(p.Min, min(time.Hour, 1000*p.Min))
	}
	switch {
	case p.Min < time.Millisecond || p.Min > queuelayout.MaxDelay:
		return p, fmt.Errorf("%w: retry policy: Min %v is not between 1ms and %v", errOption, p.Min,
			queuelayout.MaxDelay)
	case p.Max < p.Min || p.Max > queuelayout.MaxDelay:
		return p, fmt.Errorf("%w: retry policy: Max %v is not between Min, %v, and %v", errOption, p.Max, p.Min,
			queuelayout.MaxDelay)
	case !(p.Factor >= 1 && p.Factor <= 100):
		return p, fmt.Errorf("%w: retry policy: Factor %v is not between 1 and 100", errOption, p.Factor)
	case !(p.Jitter >= 0 && p.Jitter <= 1):
		return p, fmt.Errorf("%w: retry policy: Jitter %v is not between 0 and 1", errOption, p.Jitter)
	}
	return p, nil
}

// defaultPauses are how long an item waits after a failed attempt in Work, if neither the queue nor
// the call of Work says how long.
var defaultPauses = queuelayout.StoredRetry{Min: 1000, Max: 60_000, Factor: 2}

// DefaultPause is how long an item waits after a failed attempt in Work, counted from 1, if the
// queue has no retry policy: 1 s after the first, twice as long after each further one, up to a
// minute. WithPauses changes it.
func DefaultPause(attempt int) time.Duration { return defaultPauses.DelayAfter(attempt, 0) }
