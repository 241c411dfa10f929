package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/recipe"
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

func (o Order) isKnown() bool { return o == Parallel || o == Strict }

// queueRecord is the data of the queue's node. SetCapacity and SetDedup change it; the order and
// the retry policy stay.
type queueRecord struct {
	Recipe   string `json:"recipe"`
	Order    Order  `json:"order"`
	Capacity int    `json:"capacity,omitempty"`
	// Dedup is how long ids are remembered, in milliseconds.
	Dedup int64 `json:"dedup,omitempty"`
	// Retry is how long failed items wait, or nil.
	Retry *storedRetry `json:"retry,omitempty"`
	// Dropped says that the queue is being removed.
	Dropped bool `json:"dropped,omitempty"`

	unknown recipe.Unknown
	version int32 // the node's
	// the transaction that has created the node; 0 if this Queue has created the node and not read
	// it since
	czxid int64
}

const (
	recordVersion = 2
	recordRecipe  = "queue"
)

// decodeRecord is the one reader of queues' records. Its errors wrap ErrNotQueue or ErrNewer.
func decodeRecord(data []byte) (queueRecord, error) {
	var r queueRecord
	var err error
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if r.Recipe != recordRecipe {
		return r, fmt.Errorf("%w: it holds %.40q", ErrNotQueue, data)
	}
	if errors.Is(err, ErrNewer) {
		return r, err
	}
	var stored struct {
		V int `json:"v"`
	}
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil || !r.Order.isKnown() || r.Capacity < 0 || r.Dedup < 0 || r.Retry != nil && !r.Retry.isValid() {
		return r, fmt.Errorf("%w: its record cannot be read: %.80q", ErrNotQueue, data)
	}
	if stored.V < recordVersion {
		return r, fmt.Errorf("%w: record of version %d, a layout from before the first release; this one reads %d: "+
			"drain the queue with the program that made it, or delete it",
			ErrNotQueue, stored.V, recordVersion)
	}
	return r, nil
}

func (r queueRecord) encode() ([]byte, error) { return r.unknown.Encode(recordVersion, r) }

// checkOptions returns a *MismatchError if the stored record differs from the options of a Queue.
// Options that were not given agree with any record.
func (r queueRecord) checkOptions(given queueRecord) error {
	switch {
	case given.Order != "" && r.Order != given.Order:
		return &MismatchError{"order", string(r.Order), string(given.Order)}
	case given.Capacity != 0 && r.Capacity != given.Capacity:
		return &MismatchError{mismatchCapacity, orNone(r.Capacity != 0, r.Capacity), orNone(true, given.Capacity)}
	case given.Dedup != 0 && r.Dedup != given.Dedup:
		return &MismatchError{mismatchDedup, orNone(r.Dedup != 0, r.dedupWindow()), orNone(true, given.dedupWindow())}
	case given.Retry != nil && (r.Retry == nil || r.Retry.policy() != given.Retry.policy()):
		return &MismatchError{"retry policy", orNone(r.Retry != nil, r.Retry), orNone(true, given.Retry)}
	}
	return nil
}

// dedupWindow is how long ids are remembered; 0 if the queue does not remember ids.
func (r queueRecord) dedupWindow() time.Duration { return time.Duration(r.Dedup) * time.Millisecond }

func orNone(given bool, value any) string {
	if !given {
		return "none"
	}
	return fmt.Sprint(value)
}
