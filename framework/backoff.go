package framework

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff are the pauses between tries of one thing: they double from Config.RetryBase to
// Config.RetryMax, and each is drawn between half and one and a half of that. They are not safe for
// concurrent use.
type Backoff struct {
	cfg  Config
	back *backoff.ExponentialBackOff // made when it is needed: most things succeed at once
}

// Backoff returns pauses by the client's configuration.
func (c *Client) Backoff() *Backoff { return newBackoff(c.cfg) }

// Retries returns pauses by the configuration of the session's client.
func (s *Session) Retries() *Backoff { return newBackoff(s.client.cfg) }

func newBackoff(cfg Config) *Backoff { return &Backoff{cfg: cfg} }

// Pause waits before the next try. It returns an error when ctx ends first.
func (r *Backoff) Pause(ctx context.Context) error { return Pause(ctx, r.nextPause()) }

// Reset begins again with the shortest pause.
func (r *Backoff) Reset() { r.back = nil }

func (r *Backoff) nextPause() time.Duration {
	if r.back == nil {
		r.back = &backoff.ExponentialBackOff{
			InitialInterval: r.cfg.RetryBase, MaxInterval: r.cfg.RetryMax, Multiplier: 2, RandomizationFactor: 0.5,
		}
		r.back.Reset()
	}
	return r.back.NextBackOff()
}

// Pause waits for d. It returns an error when ctx ends first.
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
		return Ended(ctx)
	}
}
