package queue

import (
	"fmt"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Order is what a queue promises about the order of deliveries. It is stored with the queue.
type Order string

const (
	// Parallel: any number of consumers claim items at once, in the order of the puts. Each claim
	// is read and handed out on its own, so handlers may start a few items out of order.
	Parallel Order = "parallel"
	// Strict: one consumer at a time, under the queue's lock. Deliveries start in the order of the
	// puts, and the next consumer continues after the last acknowledged item.
	Strict Order = "strict"
)

// orderTexts stay as they are when the texts that applications see change.
var orderTexts = stored.Texts[Order]{Parallel: queuelayout.Parallel, Strict: queuelayout.Strict}

// checkOptions returns a *MismatchError if the stored record differs from the options of a Queue.
// Options that were not given agree with any record.
func checkOptions(stored, given queuelayout.Record) error {
	switch {
	case given.Order != "" && stored.Order != given.Order:
		return &MismatchError{"order", string(orderTexts.ValueOf(stored.Order)),
			string(orderTexts.ValueOf(given.Order))}
	case given.Capacity != 0 && stored.Capacity != given.Capacity:
		return &MismatchError{mismatchCapacity, orNone(stored.Capacity != 0, stored.Capacity),
			orNone(true, given.Capacity)}
	case given.Dedup != 0 && stored.Dedup != given.Dedup:
		return &MismatchError{mismatchDedup, orNone(stored.Dedup != 0, stored.DedupWindow()),
			orNone(true, given.DedupWindow())}
	case given.Retry != nil && !sameRetry(stored.Retry, given.Retry):
		return &MismatchError{mismatchRetry, orNone(stored.Retry != nil, stored.Retry), orNone(true, given.Retry)}
	}
	return nil
}

func orNone(given bool, value any) string {
	if !given {
		return "none"
	}
	return fmt.Sprint(value)
}
