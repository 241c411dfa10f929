package main

import (
	"context"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// outageGrace is how long the servers may be away before people are told: a rolling restart of them is no news.
const outageGrace = 2 * time.Second

// tellOutages warns once when the servers have not been reached for a while, with the cause, and says once when that is over. It returns
// when the client is closed or ctx ends.
func tellOutages(ctx context.Context, client *framework.Client) {
	changes := make(chan framework.StateChange)
	go func() {
		defer close(changes)
		for change := range client.States(ctx) {
			changes <- change
		}
	}()
	var began time.Time // of the present outage; zero while there is none
	var cause error
	told := false
	due := time.NewTimer(0)
	<-due.C
	for {
		select {
		case change, open := <-changes:
			switch {
			case !open:
				return
			case change.State == framework.Connected:
				if told {
					say("the servers are reached again, after %v", time.Since(began).Round(time.Second))
				}
				began, told = time.Time{}, false
				due.Stop()
			case began.IsZero() && change.Cause != nil:
				began, cause = time.Now(), change.Cause
				due.Reset(outageGrace)
			}
		case <-due.C:
			told = true
			warn("the servers have not been reached for %v: %v; trying on", outageGrace, cause)
		}
	}
}
