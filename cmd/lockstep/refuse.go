package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// refuse says who has the locks instead, if that can be found out quickly.
func (l *lock) refuse(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reason := fmt.Errorf("lock %s: %w", l.path, locks.ErrNotAcquired)
	hint := "wait for it with -w DURATION, or without -n and -w as long as it takes"
	if l.wait > 0 {
		reason = fmt.Errorf("%w within %v, the time that -w gives", reason, l.wait.time())
		hint = "without -w lockstep waits as long as it takes"
	}
	for _, path := range l.inTheWay(err) {
		who := l.holder(ctx, path)
		switch {
		case who == "":
		case len(l.paths) == 1:
			reason = fmt.Errorf("%w: %s", reason, who)
		default:
			reason = fmt.Errorf("%w\n  %s: %s", reason, path, who)
		}
	}
	return &exit{l.conflict, reason, hint}
}

// inTheWay is the lock that was not obtained, or all if it is not known which.
func (l *lock) inTheWay(err error) []string {
	var at *framework.OpError
	if errors.As(err, &at) && slices.Contains(l.paths, at.Path) {
		return []string{at.Path}
	}
	return l.paths
}

// holder says who holds a lock, or nothing.
func (l *lock) holder(ctx context.Context, path string) string {
	r, err := locks.Inspect(ctx, l.client, path)
	if err != nil || len(r.Holders) == 0 {
		return ""
	}
	first := r.Holders[0]
	text := fmt.Sprintf("%s asked for it at %s", who(first), first.Since.Local().Format(time.DateTime))
	if more := len(r.Holders) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	if n := len(r.Waiters); n > 0 {
		text += fmt.Sprintf("; %d waiting", n)
	}
	return text
}
