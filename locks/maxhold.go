package locks

import (
	"context"
	"sync"
)

// heldTogether delays the time of WithMaxHold for leases that a Multi acquires one after the other:
// the time counts from the moment when all are held, or the Multi has failed.
type heldTogether struct {
	mu      sync.Mutex
	done    bool
	waiting []func() // each starts the time of one lease
}

// heldTogetherKey is the context key of the heldTogether.
type heldTogetherKey struct{}

// acquiringTogether returns a context for the acquisition of several leases. The caller calls
// finish when all are held, or the acquisition has failed.
func acquiringTogether(ctx context.Context) (within context.Context, finish func()) {
	h := new(heldTogether)
	return context.WithValue(ctx, heldTogetherKey{}, h), h.finishOnce
}

// afterAllHeld has start called when the acquisition that ctx belongs to is finished. It reports
// false if ctx belongs to no acquisition, or to a finished one.
func afterAllHeld(ctx context.Context, start func()) bool {
	h, ok := ctx.Value(heldTogetherKey{}).(*heldTogether)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		h.waiting = append(h.waiting, start)
	}
	return !h.done
}

func (h *heldTogether) finishOnce() {
	h.mu.Lock()
	waiting := h.waiting
	h.done, h.waiting = true, nil
	h.mu.Unlock()
	for _, start := range waiting {
		start()
	}
}
