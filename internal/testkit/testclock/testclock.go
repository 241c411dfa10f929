// Package testclock gives clients clocks of tests, which jump or stand still.
package testclock

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
)

// WithClock makes a client count its leases by c.
func WithClock(c clock.Clock) framework.Option { return clock.ClientOption(c).(framework.Option) }
