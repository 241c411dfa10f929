package queue

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// maxKind bounds the bytes of a kind's name.
const maxKind = 255

// UnknownKindPause is how long an item waits whose kind the handler of ByKind does not know.
const UnknownKindPause = time.Minute

// Kind is one of the kinds of items in a queue that holds several: its name, the type of its values
// and their codec. Declare it once, as a variable of a package that producers and consumers share:
//
//	var Mail = queue.NewKind("mail", codec.JSON[MailArgs]())
//
// The queue itself is one of bytes, queue.New(client, path, codec.Bytes()): the items of all kinds
// share its order, capacity, retry policy and dead letters. Producers call Mail.Put; consumers call
// Queue.Work with the handler of ByKind.
type Kind[T any] struct {
	name  string
	codec codec.Codec[T]
	err   error
}

// NewKind returns a kind. It sends no request. If an argument is invalid, Put and ByKind return an
// error that says so.
func NewKind[T any](name string, values codec.Codec[T]) Kind[T] {
	k := Kind[T]{name, values, checkKind("NewKind", name)}
	if values == nil {
		k.err = fmt.Errorf("%w: NewKind: the codec of %q is nil", errOption, name)
	}
	return k
}

// Name is the kind's name.
func (k Kind[T]) Name() string { return k.name }

// Put puts a value of this kind into q, as Queue.Put does and with its guarantee and errors. The
// kind's name is stored with the item.
func (k Kind[T]) Put(ctx context.Context, q *Queue[[]byte], value T, opts ...PutOption) error {
	data, err := k.encode(value)
	if err != nil {
		return failure.Wrap("put", q.Path(), err)
	}
	return q.Put(ctx, data, append(opts[:len(opts):len(opts)], WithKind(k.name))...)
}

func (k Kind[T]) encode(value T) ([]byte, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	return encodeValue(k.codec, value)
}

func (k Kind[T]) check() error {
	if k.err == nil && k.codec == nil {
		return fmt.Errorf("%w: a Kind must be made by NewKind", errOption)
	}
	return k.err
}

// Handler returns the handler of this kind's items, for ByKind. handle is called as Queue.Work
// describes, and its result settles the delivery in the same way. If the codec cannot decode the
// item, that becomes a dead letter and handle is not called.
func (k Kind[T]) Handler(handle Handler[T]) KindHandler {
	err := k.check()
	if err == nil && handle == nil {
		err = fmt.Errorf("%w: the handler of kind %q is nil", errOption, k.name)
	}
	return KindHandler{k.name, err, func(ctx context.Context, d *Delivery[[]byte]) error {
		value, err := decodeValue(k.codec, d.Value)
		if err != nil {
			return Permanent(err)
		}
		return handle(ctx, &Delivery[T]{Value: value, Attempt: d.Attempt, ID: d.ID, Kind: d.Kind, Priority: d.Priority,
			Headers: d.Headers, Enqueued: d.Enqueued, LastError: d.LastError,
			item: d.item, tel: d.tel, span: d.span})
	}}
}

// KindHandler is the handler of one kind of items. Kind.Handler makes it.
type KindHandler struct {
	kind   string
	err    error
	handle Handler[[]byte]
}

// ByKind returns a handler for Queue.Work that calls the handler of each item's kind. It returns an
// error if a kind has two handlers, or an argument is invalid.
//
// An item of a kind without a handler here, or of no kind, is not lost: the attempt has failed with
// framework.ErrNotFound, and the item comes again after UnknownKindPause, for this consumer or
// another one. After the attempts of WithMaxAttempts it is a dead letter; without that option it
// comes again and again, and lockstep queue ls and a monitor show it. So deploy a new kind's
// handlers before its producers, or give WithMaxAttempts enough attempts for the time in which both
// releases run.
func ByKind(handlers ...KindHandler) (Handler[[]byte], error) {
	byName := map[string]Handler[[]byte]{}
	for _, h := range handlers {
		switch {
		case h.err != nil:
			return nil, h.err
		case h.handle == nil:
			return nil, fmt.Errorf("%w: ByKind: a KindHandler must be made by Kind.Handler", errOption)
		case byName[h.kind] != nil:
			return nil, fmt.Errorf("%w: ByKind: kind %q has two handlers", errOption, h.kind)
		}
		byName[h.kind] = h.handle
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("%w: ByKind: there is no handler", errOption)
	}
	return func(ctx context.Context, d *Delivery[[]byte]) error {
		if handle := byName[d.Kind]; handle != nil {
			return handle(ctx, d)
		}
		return RetryAfter(UnknownKindPause, fmt.Errorf("%w: %q", errUnknownKind, d.Kind))
	}, nil
}

// WithKind stores the name of a kind with the item: 1 to 255 bytes of UTF-8 without control
// characters. Kind.Put gives it; use WithKind for a value that is encoded already.
func WithKind(name string) PutOption {
	return func(p *putSettings) error {
		p.header.Kind = name
		return checkKind("WithKind", name)
	}
}

func checkKind(of, name string) error {
	if name == "" || len(name) > maxKind || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%w: %s: %.80q, want 1 to %d bytes of UTF-8 without control characters", errOption, of, name,
			maxKind)
	}
	return nil
}
