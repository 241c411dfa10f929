package queuelayout

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// envelopeVersion begins every stored item.
const envelopeVersion = 1

// MaxItem is how many bytes an item may have when it is put. Its header may grow later, by attempts
// and errors, and the item must still fit into a transaction.
const MaxItem = 500_000

// MaxDelay is the longest time that an item may be delayed, or may take to expire.
const MaxDelay time.Duration = 10 * 365 * 24 * time.Hour

// Envelope is an item as it is stored: one byte of version, the length of the header as a varint,
// the header as JSON, or no bytes if all its fields are zero, and the payload.
type Envelope struct {
	Header  Header
	Payload []byte
}

// Header describes an item beside its payload.
type Header struct {
	// ID is the producer's name of the item (WithID).
	ID string `json:"id,omitempty"`
	// Kind is the kind of the item (WithKind), or "".
	Kind string `json:"kind,omitempty"`
	// Priority is the lane, 0 to 9.
	Priority int `json:"prio,omitempty"`
	// Attempts were made before the item was stored here; the node's version counts those since.
	Attempts int `json:"tries,omitempty"`
	// Unseen is the number of changes of the node's version that were no attempts.
	Unseen int `json:"unseen,omitempty"`
	// Error is why the last attempt failed.
	Error string `json:"err,omitempty"`
	// Raw says that the payload of a dead letter is all that was stored, since that could not be
	// decoded as an item.
	Raw bool `json:"raw,omitempty"`
	// Trace is the producer's trace context.
	Trace map[string]string `json:"trace,omitempty"`
	// Put is the time of the item's put in milliseconds, or 0: then it is the time of its node. See
	// DecodeItem.
	Put int64 `json:"put,omitempty"`
	// Headers are the producer's own headers.
	Headers map[string]string `json:"headers,omitempty"`
	// TTL is the time from the put until the item expires, in milliseconds, or 0.
	TTL int64 `json:"ttl,omitempty"`

	unknown recipe.Unknown
}

// errEnvelope is wrapped by the errors of bytes that are no item.
var errEnvelope = errors.New("not an item")

func (e Envelope) Encode() ([]byte, error) {
	head, err := e.Header.encode()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 1+binary.MaxVarintLen64+len(head)+len(e.Payload))
	out = append(out, envelopeVersion)
	out = binary.AppendUvarint(out, uint64(len(head)))
	out = append(append(out, head...), e.Payload...)
	return out, nil
}

// EncodeNew is encode for an item that is put.
func (e Envelope) EncodeNew() ([]byte, error) {
	out, err := e.Encode()
	if len(out) > MaxItem {
		return nil, fmt.Errorf("%w: the item has %d bytes, at most %d", framework.ErrTooLarge, len(out), MaxItem)
	}
	return out, err
}

func (h Header) encode() ([]byte, error) {
	data, err := h.unknown.EncodeFields(h)
	if string(data) == "{}" {
		return nil, nil
	}
	return data, err
}

// DecodeEnvelope reads an item. Its errors wrap errEnvelope or framework.ErrNewer.
func DecodeEnvelope(data []byte) (Envelope, error) {
	if len(data) == 0 {
		return Envelope{}, fmt.Errorf("%w: it is empty", errEnvelope)
	}
	if data[0] == 0 {
		return Envelope{}, fmt.Errorf("%w: it begins with 0", errEnvelope)
	}
	if data[0] != envelopeVersion {
		return Envelope{}, fmt.Errorf("%w: item of version %d, this release reads %d", framework.ErrNewer, data[0],
			envelopeVersion)
	}
	length, n := binary.Uvarint(data[1:])
	if n <= 0 || length > uint64(len(data)-1-n) {
		return Envelope{}, fmt.Errorf("%w: its header is cut off", errEnvelope)
	}
	head, payload := data[1+n:][:length], data[1+n+int(length):]
	h, err := decodeHeader(head)
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: header: %w", errEnvelope, err)
	}
	return Envelope{h, payload}, nil
}

func decodeHeader(head []byte) (h Header, err error) {
	if len(head) == 0 {
		return h, nil
	}
	if h.unknown, err = recipe.DecodeFields(head, &h); err != nil {
		return h, err
	}
	if h.Priority < 0 || h.Priority > math.MaxInt32 { // a later release may have more than MaxPriority
		return h, fmt.Errorf("prio %d is not between 0 and %d", h.Priority, math.MaxInt32)
	}
	if h.Attempts < 0 || h.Unseen < 0 || h.Put < 0 || h.TTL < 0 || h.TTL > int64(MaxDelay/time.Millisecond) {
		return h, fmt.Errorf("tries %d, unseen %d, put %d or ttl %d cannot be", h.Attempts, h.Unseen, h.Put, h.TTL)
	}
	return h, nil
}

// DecodeItem is DecodeEnvelope for an item that was read with its node's state. It sets the time of
// the put in the header, since a node that the item is moved to later has another time.
func DecodeItem(data []byte, stat framework.Stat) (Envelope, error) {
	e, err := DecodeEnvelope(data)
	if err == nil && e.Header.Put == 0 {
		e.Header.Put = max(0, stat.Ctime.UnixMilli())
	}
	return e, err
}

// EnqueuedAt is the time of the item's put, by the ensemble's clock.
func (h Header) EnqueuedAt() time.Time { return time.UnixMilli(h.Put) }

// maxReason bounds what is kept of an error's text.
const maxReason = 1024

// AfterFailure is the envelope after a number of attempts. The last one has failed for a reason,
// which may be nil.
func (e Envelope) AfterFailure(attempts int, reason error) Envelope {
	e.Header.Attempts, e.Header.Unseen, e.Header.Error = attempts, 0, ""
	if reason != nil {
		text := reason.Error()
		e.Header.Error = text[:min(len(text), maxReason)]
	}
	return e
}

// Attempt is the attempt that a claimed item is at, with the version of its node.
func (e Envelope) Attempt(version int32) int {
	return e.Header.Attempts + int(version) + 1 - e.Header.Unseen
}

// HasExpired reports whether the item must not be handed out any more.
func (h Header) HasExpired(now time.Time) bool {
	return h.TTL > 0 && !now.Before(h.EnqueuedAt().Add(time.Duration(h.TTL)*time.Millisecond))
}

// HeadersSize is the number of bytes that the producer's headers take when they are stored.
func (h Header) HeadersSize() (int, error) {
	if len(h.Headers) == 0 {
		return 0, nil
	}
	data, err := json.Marshal(h.Headers)
	return len(data), err
}
