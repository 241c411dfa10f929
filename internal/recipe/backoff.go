package recipe

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Backoff pauses between the attempts of one thing. The pauses double from the client's
// Config.RetryBase to its Config.RetryMax; each is multiplied by a random factor between 0.5 and
// 1.5. Backoff is not safe for concurrent use.
type Backoff struct{ back *backoff.Backoff }

// NewBackoff returns a Backoff with the client's configuration, or with the defaults if client is
// nil.
func NewBackoff(client *framework.Client) *Backoff {
	c := framework.Config{}.WithDefaults()
	if client != nil {
		c = client.Config()
	}
	return &Backoff{backoff.New(c.RetryBase, c.RetryMax)}
}

// Pause waits before the next attempt. It returns failure.Ended(ctx) if ctx ends first.
func (b *Backoff) Pause(ctx context.Context) error { return Pause(ctx, b.back.Next()) }

// Reset makes the next pause the shortest again.
func (b *Backoff) Reset() { b.back.Reset() }

// Spread returns d multiplied by a random factor between 0.5 and 1.5.
func Spread(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// Pause waits for d. It returns failure.Ended(ctx) if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if backoff.Pause(ctx, d) != nil {
		return failure.Ended(ctx)
	}
	return nil
}
