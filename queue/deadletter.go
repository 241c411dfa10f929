package queue

import (
	"encoding/json"
	"time"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// DeadLetter is an item that was given up: its attempts were used up, it could not be decoded, or
// it has expired (WithExpiry).
type DeadLetter struct {
	// Node is the dead letter's node.
	Node string `json:"node"`
	// ID is the id that the producer gave the item, or "".
	ID string `json:"id,omitempty"`
	// Kind is the kind of the item (WithKind), or "".
	Kind string `json:"kind,omitempty"`
	// Attempts is how often the item was claimed.
	Attempts int `json:"attempts,omitempty"`
	// LastError is the reason of the last failed attempt, or why the item was given up without one.
	LastError string `json:"last_error,omitempty"`
	// Data is the codec's bytes, or all that was stored if the item could not be read.
	Data []byte `json:"-"`
	// Headers are the producer's headers (WithHeaders), or nil.
	Headers map[string]string `json:"headers,omitempty"`
	// Enqueued is the time of the put, by the ensemble's clock, or zero if the item could not be
	// read.
	Enqueued time.Time `json:"enqueued,omitzero"`
	// Buried is the time at which the item became a dead letter, by the ensemble's clock.
	Buried time.Time `json:"buried,omitzero"`
}

// MarshalJSON returns Data as the text "item", and also as "item_base64" if it is not UTF-8.
func (l DeadLetter) MarshalJSON() ([]byte, error) {
	type fields DeadLetter
	l.Enqueued, l.Buried = reportjson.Time(l.Enqueued), reportjson.Time(l.Buried)
	return json.Marshal(reportjson.Joined{reportjson.NewItem(l.Data), fields(l)})
}

// newDeadLetter is the dead letter of an item as it is stored, without its node.
func newDeadLetter(e queuelayout.Envelope) DeadLetter {
	l := DeadLetter{ID: e.Header.ID, Kind: e.Header.Kind, Attempts: e.Header.Attempts, LastError: e.Header.Error,
		Data: e.Payload, Headers: e.Header.Headers}
	if e.Header.Put > 0 {
		l.Enqueued = e.Header.EnqueuedAt()
	}
	return l
}
