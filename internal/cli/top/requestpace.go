package top

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// topRequests is how many requests a second lockstep top sends on average. One step sends some ten
// at once, in addition, or twice as many for queues whose items have come back.
const topRequests = 33

// requestPace limits how many requests a client sends per second.
type requestPace struct {
	client *framework.Client
	waited int64     // requests whose time was waited for
	next   time.Time // when the next ones may be sent
}

// wait waits until the requests since the last wait have taken their time.
func (p *requestPace) wait(ctx context.Context) error {
	sent, now := p.client.Status().Requests, time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(timeFor(sent - p.waited))
	p.waited = sent
	return pauseFor(ctx, p.next.Sub(now))
}

// timeFor returns how long this many requests take at that pace.
func timeFor(requests int64) time.Duration {
	return time.Duration(requests) * time.Second / topRequests
}

// pauseFor waits for a time, or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
