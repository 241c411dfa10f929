package recipe

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Backoff are pauses between attempts of one thing. They double from the client's Config.RetryBase to its Config.RetryMax, and each is between half and one and a half
// of that, at random. It is not safe for concurrent use.
type Backoff struct{ back *backoff.Backoff }

// NewBackoff returns pauses by the client's configuration.
func NewBackoff(client *framework.Client) *Backoff {
	c := client.Config()
	return &Backoff{backoff.New(c.RetryBase, c.RetryMax)}
}

// Pause waits before the next attempt. It returns failure.Ended(ctx) when ctx ends first.
func (b *Backoff) Pause(ctx context.Context) error { return Pause(ctx, b.back.Next()) }

// Reset begins again with the shortest pause.
func (b *Backoff) Reset() { b.back.Reset() }

// Pause waits for d. It returns failure.Ended(ctx) when ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if backoff.Pause(ctx, d) != nil {
		return failure.Ended(ctx)
	}
	return nil
}
