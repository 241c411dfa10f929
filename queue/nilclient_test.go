package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
)

func TestEachCallRefusesAnInvalidArgument(t *testing.T) {
	q := New(nil, "/q", codec.Text())
	calls := map[string]func(context.Context) error{
		"Pause": q.Pause, "Resume": q.Resume, "Drop": q.Drop,
		"SetCapacity":    func(ctx context.Context) error { return q.SetCapacity(ctx, 3) },
		"SetDedup":       func(ctx context.Context) error { return q.SetDedup(ctx, time.Hour) },
		"Cancel":         func(ctx context.Context) error { return q.Cancel(ctx, "id") },
		"Put":            func(ctx context.Context) error { return q.Put(ctx, "x") },
		"PutAsync":       func(ctx context.Context) error { return q.PutAsync(ctx, "x").Wait(ctx) },
		"Take":           func(ctx context.Context) error { _, err := q.Take(ctx); return err },
		"TryTake":        func(ctx context.Context) error { _, err := q.TryTake(ctx); return err },
		"Len":            func(ctx context.Context) error { _, err := q.Len(ctx); return err },
		"Paused":         func(ctx context.Context) error { _, err := q.Paused(ctx); return err },
		"Purge":          func(ctx context.Context) error { _, err := q.Purge(ctx); return err },
		"PurgeDead":      func(ctx context.Context) error { _, err := q.PurgeDead(ctx); return err },
		"PurgeLetters":   func(ctx context.Context) error { _, err := q.PurgeLetters(ctx, "/x"); return err },
		"RequeueLetters": func(ctx context.Context) error { _, err := q.RequeueLetters(ctx, "/x"); return err },
		"Requeue":        func(ctx context.Context) error { _, err := q.Requeue(ctx); return err },
		"InFlight":       func(ctx context.Context) error { _, err := q.InFlight(ctx); return err },
		"Oldest":         func(ctx context.Context) error { _, err := q.Oldest(ctx); return err },
		"Work": func(ctx context.Context) error {
			return q.Work(ctx, 1, func(context.Context, *Delivery[string]) error { return nil })
		},
	}
	for name, call := range calls {
		require.ErrorIs(t, call(t.Context()), errOption, name)
	}
	require.NoError(t, q.Close(t.Context()))
}
