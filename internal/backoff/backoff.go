// Package backoff has the pauses between the attempts of one thing.
package backoff

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff returns pauses that double from the first to the longest. Each is multiplied by a random
// factor between 0.5 and 1.5. It is not safe for concurrent use.
type Backoff struct {
	first, longest time.Duration

	back *backoff.ExponentialBackOff // nil before the first pause: most attempts succeed and need none
}

// New returns a Backoff with pauses from first to longest.
func New(first, longest time.Duration) *Backoff { return &Backoff{first: first, longest: longest} }

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	if b.back == nil {
		b.back = &backoff.ExponentialBackOff{InitialInterval: b.first, MaxInterval: b.longest, Multiplier: 2,
			RandomizationFactor: 0.5}
		b.back.Reset()
	}
	return b.back.NextBackOff()
}

// Pause waits for the time that Next returns. It returns ctx.Err() if ctx ends first.
func (b *Backoff) Pause(ctx context.Context) error { return Pause(ctx, b.Next()) }

// Reset makes the next pause the first one again.
func (b *Backoff) Reset() { b.back = nil }

// Pause waits for d. It returns ctx.Err() if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
