package framework

import "context"

// Standing returns ctx, whose Err now calls standing first. That is for a context within a hold: what it was
// derived from ends by a timer, and, in a process that was stopped and continued, at once when it is asked for its error.
// So is ctx then, if standing asks that.
func Standing(ctx context.Context, standing func() error) context.Context {
	return standingContext{ctx, standing}
}

type standingContext struct {
	context.Context
	standing func() error
}

func (c standingContext) Err() error {
	_ = c.standing() // ends ctx if its time is over
	return c.Context.Err()
}
