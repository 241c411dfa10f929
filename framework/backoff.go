package framework

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
)

// Backoff are the pauses between tries of one thing: they double from Config.RetryBase to
// Config.RetryMax, and each is drawn between half and one and a half of that. They are not safe for
// concurrent use.
type Backoff struct{ back *backoff.Backoff }

// Backoff returns pauses by the client's configuration.
func (c *Client) Backoff() *Backoff { return &Backoff{backoff.New(c.cfg.RetryBase, c.cfg.RetryMax)} }

// Retries returns pauses by the configuration of the session's client.
func (s *Session) Retries() *Backoff {
	return &Backoff{backoff.New(s.setup.cfg.RetryBase, s.setup.cfg.RetryMax)}
}

// Pause waits before the next try. It returns an error when ctx ends first.
func (r *Backoff) Pause(ctx context.Context) error { return Pause(ctx, r.back.Next()) }

// Reset begins again with the shortest pause.
func (r *Backoff) Reset() { r.back.Reset() }

// Pause waits for d. It returns an error when ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if backoff.Pause(ctx, d) != nil {
		return Ended(ctx)
	}
	return nil
}
