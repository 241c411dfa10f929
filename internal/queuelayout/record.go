package queuelayout

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// ErrNotQueue is returned when a node is not a queue.
var ErrNotQueue = failure.KindOf(failure.ErrForeign, "path is not a queue")

// The orders of queues; see package queue.
const (
	Parallel = "parallel"
	Strict   = "strict"
)

// IsKnownOrder reports whether a queue can have an order.
func IsKnownOrder(order string) bool { return order == Parallel || order == Strict }

// Record is the data of the queue's node. SetCapacity, SetDedup and SetRetry change it; the order
// stays.
type Record struct {
	Recipe   string `json:"recipe"`
	Order    string `json:"order"`
	Capacity int    `json:"capacity,omitempty"`
	// Dedup is how long ids are remembered, in milliseconds.
	Dedup int64 `json:"dedup,omitempty"`
	// Retry is how long failed items wait, or nil.
	Retry *StoredRetry `json:"retry,omitempty"`
	// Dropped says that the queue is being removed.
	Dropped bool `json:"dropped,omitempty"`

	unknown recipe.Unknown
	// Version is the version of the node.
	Version int32 `json:"-"`
	// Czxid is the transaction that has created the node; 0 if this Queue has created the node and
	// not read it since.
	Czxid int64 `json:"-"`
}

const (
	recordVersion = 2
	Recipe        = "queue"
)

// DecodeRecord is the one reader of queues' records. Its errors wrap ErrNotQueue or
// framework.ErrNewer.
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	var err error
	r.unknown, err = recipe.Decode(data, recordVersion, &r)
	if r.Recipe != Recipe {
		return r, fmt.Errorf("%w: it holds %.40q", ErrNotQueue, data)
	}
	if errors.Is(err, framework.ErrNewer) {
		return r, err
	}
	var stored struct {
		V int `json:"v"`
	}
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil || !IsKnownOrder(r.Order) || r.Capacity < 0 || r.Dedup < 0 || r.Retry != nil && !r.Retry.isValid() {
		return r, fmt.Errorf("%w: its record cannot be read: %.80q", ErrNotQueue, data)
	}
	if stored.V < recordVersion {
		return r, fmt.Errorf("%w: record of version %d, a layout from before the first release; this one reads %d: "+
			"drain the queue with the program that made it, or delete it",
			ErrNotQueue, stored.V, recordVersion)
	}
	return r, nil
}

func (r Record) Encode() ([]byte, error) { return r.unknown.Encode(recordVersion, r) }

// DedupWindow is how long ids are remembered; 0 if the queue does not remember ids.
func (r Record) DedupWindow() time.Duration { return time.Duration(r.Dedup) * time.Millisecond }

// IsStrict reports whether the queue's order is strict.
func (r Record) IsStrict() bool { return r.Order == Strict }

// ReadRecord reads the record in the queue's node.
func ReadRecord(n framework.Node) (Record, error) {
	if n.Err != nil {
		return Record{}, n.Err
	}
	r, err := DecodeRecord(n.Data)
	r.Version, r.Czxid = n.Stat.Version, n.Stat.Czxid
	return r, err
}

// SaysDropped reports whether the data of a queue's node say that the queue is being removed. It
// also reads records of other releases.
func SaysDropped(data []byte) bool {
	var r struct {
		Recipe  string `json:"recipe"`
		Dropped bool   `json:"dropped"`
	}
	return json.Unmarshal(data, &r) == nil && r.Recipe == Recipe && r.Dropped
}

// StoredRetry is a policy as it is stored: times are in milliseconds.
type StoredRetry struct {
	Min    int64   `json:"min"`
	Max    int64   `json:"max"`
	Factor float64 `json:"factor"`
	Jitter float64 `json:"jitter,omitempty"`

	unknown recipe.Unknown
}

// UnmarshalJSON reads a stored policy and keeps the fields that it does not know.
func (s *StoredRetry) UnmarshalJSON(data []byte) (err error) {
	type fields StoredRetry
	s.unknown, err = recipe.DecodeFields(data, (*fields)(s))
	return err
}

// MarshalJSON writes the policy as it is stored.
func (s StoredRetry) MarshalJSON() ([]byte, error) {
	type fields StoredRetry
	return s.unknown.EncodeFields(fields(s))
}

// isValid reports whether a stored policy can be used.
func (s StoredRetry) isValid() bool {
	most := MaxDelay.Milliseconds()
	return s.Min >= 1 && s.Min <= s.Max && s.Max <= most && s.Factor >= 1 && s.Factor <= 100 && s.Jitter >= 0 &&
		s.Jitter <= 1
}

func (s StoredRetry) String() string {
	return fmt.Sprintf("%v to %v, factor %v, jitter %v", time.Duration(s.Min)*time.Millisecond,
		time.Duration(s.Max)*time.Millisecond, s.Factor, s.Jitter)
}

// DelayAfter is how long an item waits after an attempt, counted from 1. chance is from 0 to less
// than 1.
func (s StoredRetry) DelayAfter(attempt int, chance float64) time.Duration {
	ms := math.Min(float64(s.Max), float64(s.Min)*math.Pow(s.Factor, float64(max(0, attempt-1))))
	return time.Duration(ms * (1 - s.Jitter*chance) * float64(time.Millisecond))
}
