package framework

import (
	"context"
	"log/slog"
	"sync"

	"github.com/lockstep-go/lockstep/internal/background"
)

// maxWaitingRecords bounds the records that wait for a log's handler. Later ones are dropped and
// counted.
const maxWaitingRecords = 1000

// backgroundLog hands a client's log records to the handler of the user's log on a goroutine of its
// own. The goroutines that connect, prove the session's life and read answers log, too: a handler
// that blocks, or that waits for the client, must not stop them.
type backgroundLog struct {
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

// newLogger returns a log whose records are handed to the handler of another one.
func (b *backgroundLog) newLogger(to *slog.Logger) *slog.Logger {
	return slog.New(backgroundHandler{b, to.Handler()})
}

// add queues a record. It drops records after the client is closed.
func (b *backgroundLog) add(r waitingRecord) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= maxWaitingRecords {
		b.dropped++
		return
	}
	b.waiting = append(b.waiting, r)
	if b.running {
		return
	}
	if b.running = b.tasks.Start(b.handOver); !b.running {
		b.waiting = nil
	}
}

// handOver hands records over until none waits.
func (b *backgroundLog) handOver() {
	for {
		records, dropped := b.takeWaiting()
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
			const text = "records of the client's log were dropped, since the log's handler is too slow"
			slog.New(last.to).Warn(text, "dropped", dropped)
		}
	}
}

func (b *backgroundLog) takeWaiting() (records []waitingRecord, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	records, dropped = b.waiting, b.dropped
	b.waiting, b.dropped, b.running = nil, 0, len(records) > 0
	return records, dropped
}

// backgroundHandler is a handler that passes records on to another one in the background. That one
// decides there which records it wants.
type backgroundHandler struct {
	log *backgroundLog
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
