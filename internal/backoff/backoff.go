// Package backoff draws the pauses between attempts of one thing.
package backoff

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff draws pauses that double from the first to the longest. Each is between half and one and a half of that, at random. It is not safe for
// concurrent use.
type Backoff struct {
	first, longest time.Duration

	back *backoff.ExponentialBackOff // made at the first pause, since most attempts succeed
}

// New returns pauses from first to longest.
func New(first, longest time.Duration) *Backoff { return &Backoff{first: first, longest: longest} }

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	if b.back == nil {
		b.back = &backoff.ExponentialBackOff{InitialInterval: b.first, MaxInterval: b.longest, Multiplier: 2, RandomizationFactor: 0.5}
		b.back.Reset()
	}
	return b.back.NextBackOff()
}

// Pause waits for the next pause. It returns ctx.Err() when ctx ends first.
func (b *Backoff) Pause(ctx context.Context) error { return Pause(ctx, b.Next()) }

// Reset begins again with the first pause.
func (b *Backoff) Reset() { b.back = nil }

// Pause waits for d. It returns ctx.Err() when ctx ends first.
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
