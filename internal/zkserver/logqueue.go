package zkserver

import (
	"context"
	"log/slog"
	"sync"
)

// logQueue hands records to the user's handler in their order, from a goroutine of its own: the
// server logs while it holds its mutex, and a handler may call the server or block.
type logQueue struct {
	handler slog.Handler
	start   func(task func()) // starts a goroutine of the server

	mu      sync.Mutex
	pending []slog.Record
	handing bool // a goroutine hands records over
}

// queueLog returns a logger whose records a logQueue hands to the given one.
func queueLog(logger *slog.Logger, start func(task func())) *slog.Logger {
	if logger.Handler() == slog.DiscardHandler {
		return logger
	}
	return slog.New(&logQueue{handler: logger.Handler(), start: start})
}

// Enabled is slog.Handler's. The user's handler is asked later.
func (q *logQueue) Enabled(context.Context, slog.Level) bool { return true }

// Handle is slog.Handler's.
func (q *logQueue) Handle(_ context.Context, r slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(q.pending, r)
	if !q.handing {
		q.handing = true
		q.start(q.handOver)
	}
	return nil
}

func (q *logQueue) handOver() {
	for {
		q.mu.Lock()
		some := q.pending
		q.pending, q.handing = nil, len(some) > 0
		q.mu.Unlock()
		if len(some) == 0 {
			return
		}
		for _, r := range some {
			if ctx := context.Background(); q.handler.Enabled(ctx, r.Level) {
				_ = q.handler.Handle(ctx, r) // as slog.Logger does
			}
		}
	}
}

// WithAttrs and WithGroup are slog.Handler's. The server uses neither.
func (q *logQueue) WithAttrs([]slog.Attr) slog.Handler { return q }
func (q *logQueue) WithGroup(string) slog.Handler      { return q }
