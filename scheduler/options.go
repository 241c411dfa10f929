package scheduler

import (
	"errors"
	"fmt"
	"time"
)

// Option changes how a scheduler works. Its error is returned by every call.
type Option func(*Scheduler) error

// DefaultDrain is how long runs may go on when the scheduler is stopped.
const DefaultDrain = 10 * time.Second

// WithDrain lets runs go on for d when the scheduler is stopped, before their contexts end. Default 10 s;
// 0 ends them at once.
func WithDrain(d time.Duration) Option {
	return func(s *Scheduler) error {
		if d < 0 {
			return fmt.Errorf("WithDrain: %v is negative", d)
		}
		s.drain = d
		return nil
	}
}

// WithNow makes the scheduler read the time of day from now. Default time.Now. It is for tests of clocks
// that go wrong.
func WithNow(now func() time.Time) Option {
	return func(s *Scheduler) error {
		if now == nil {
			return errors.New("WithNow: the function is nil")
		}
		s.now = now
		return nil
	}
}

// WithObserver calls observe with what happens, from the goroutines in which it happens, several at once.
// It must be quick.
func WithObserver(observe func(Event)) Option {
	return func(s *Scheduler) error {
		if observe == nil {
			return errors.New("WithObserver: the function is nil")
		}
		s.observe = observe
		return nil
	}
}
