package main

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// topRequests is how many requests a second lockstep top sends on average. What one step sends comes on top of it, which is some ten.
const topRequests = 40

// requestPace keeps a client's requests to so many a second, whatever they are for.
type requestPace struct {
	client *framework.Client
	paid   int64     // requests that were waited for
	next   time.Time // when the next ones may be sent
}

// wait waits until the requests since the last wait have taken their time.
func (p *requestPace) wait(ctx context.Context) error {
	sent, now := p.client.Status().Requests, time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(sent-p.paid) * time.Second / topRequests)
	p.paid = sent
	return pauseFor(ctx, p.next.Sub(now))
}

// pauseFor waits so long, or until ctx ends.
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
