// Package backgroundlog hands log records to a handler of the user's on a goroutine of its own, so
// that a handler which blocks, or which calls what has logged, stops nothing.
package backgroundlog

import (
	"context"
	"log/slog"
	"sync"

	"github.com/lockstep-go/lockstep/internal/background"
)

// maxWaitingRecords bounds the records that wait for a log's handler. Later ones are dropped and
// counted.
const maxWaitingRecords = 1000

// Log hands records over in their order. The zero value is ready to use.
type Log struct {
	tasks background.Tasks // the goroutine, while records wait

	mu      sync.Mutex
	waiting []waitingRecord
	running bool
	dropped int
}

type waitingRecord struct {
	to     slog.Handler
	ctx    context.Context
	record slog.Record
}

// NewLogger returns a logger whose records are handed to the handler of another one.
func (l *Log) NewLogger(to *slog.Logger) *slog.Logger {
	if to.Handler() == slog.DiscardHandler {
		return to
	}
	return slog.New(backgroundHandler{l, to.Handler()})
}

// Done returns a channel that is closed when the handler has all records. Later ones are dropped.
func (l *Log) Done() <-chan struct{} { return l.tasks.Done() }

// add queues a record.
func (l *Log) add(r waitingRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaitingRecords {
		l.dropped++
		return
	}
	l.waiting = append(l.waiting, r)
	if l.running {
		return
	}
	if l.running = l.tasks.Start(l.handOver); !l.running {
		l.waiting = nil
	}
}

// handOver hands records over until none waits.
func (l *Log) handOver() {
	for {
		records, dropped := l.takeWaiting()
		if len(records) == 0 {
			return
		}
		for _, r := range records {
			if r.to.Enabled(r.ctx, r.record.Level) {
				_ = r.to.Handle(r.ctx, r.record) // as slog.Logger does
			}
		}
		if dropped > 0 {
			last := records[len(records)-1]
			const text = "log records were dropped, since the handler is too slow"
			slog.New(last.to).Warn(text, "dropped", dropped)
		}
	}
}

func (l *Log) takeWaiting() (records []waitingRecord, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records, dropped = l.waiting, l.dropped
	l.waiting, l.dropped, l.running = nil, 0, len(records) > 0
	return records, dropped
}

// backgroundHandler is a handler that passes records on to another one in the background. That one
// decides there which records it wants.
type backgroundHandler struct {
	log *Log
	to  slog.Handler
}

func (h backgroundHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h backgroundHandler) Handle(ctx context.Context, r slog.Record) error {
	h.log.add(waitingRecord{h.to, ctx, r.Clone()})
	return nil
}

func (h backgroundHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return backgroundHandler{h.log, h.to.WithAttrs(attrs)}
}

func (h backgroundHandler) WithGroup(name string) slog.Handler {
	return backgroundHandler{h.log, h.to.WithGroup(name)}
}
