package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// history is what producers and consumers were told of each item. Values begin with their
// producer's name and a dash, and increase with each producer's puts.
type history struct {
	order Order

	mu    sync.Mutex
	items map[string]*itemHistory
	last  map[string]string // of each producer, that has started
	wrong []string

	acked, again             int // items that were acknowledged, and starts after the first
	maybePut, maybeAck, away int // puts and acknowledgements of unknown outcome, and deliveries that were lost
}

// fate is what is known of one item.
type itemHistory struct {
	put     standing
	started bool
	acked   bool
	maybe   bool            // an acknowledgement's outcome is unknown
	holder  context.Context // of who has it, or had it last; nil if that is not known
}

// standing is what its producer knows of an item.
type standing int

const (
	underWay standing = iota
	isPut
	mayBePut
	notPut
)

func newHistory(order Order) *history {
	return &history{order: order, items: map[string]*itemHistory{}, last: map[string]string{}}
}

func (l *history) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(format, args...)
}

// note is fault under the history's mutex.
func (l *history) note(format string, args ...any) {
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// putting notes values that are about to be put.
func (l *history) putting(values ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range values {
		l.items[v] = &itemHistory{}
	}
}

// putEnded notes the outcome of a put, which may end by its context or its client, and in no other
// way.
func (l *history) putEnded(err error, values ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := notPut
	switch {
	case err == nil:
		is = isPut
	case errors.Is(err, errUnknown):
		is = mayBePut
		l.maybePut += len(values)
	case !errors.Is(err, context.DeadlineExceeded):
		l.note("put: %v", err)
	}
	for _, v := range values {
		l.items[v].put = is
	}
}

// takeEnded notes that a Take has failed: it may by its context or its process's end, and in no
// other way.
func (l *history) takeEnded(ctx context.Context, err error) {
	if !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.Is(err, errClosed) &&
		!errors.Is(err, framework.ErrClosed) {
		l.fault("take: %v", err)
	}
}

func (l *history) start(d *Delivery[string]) { l.startOf(d.Value, d.Context()) }

// startOf notes a delivery: no other consumer may have the item, and in a strict queue each
// producer's start in their order. The context of another process's delivery is not known.
func (l *history) startOf(v string, standing context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.items[v]
	switch {
	case f == nil:
		l.note("%s was never put", v)
		return
	case f.acked:
		l.note("%s came after it was acknowledged", v)
	case f.holder != nil && f.holder.Err() == nil:
		l.note("two holders of %s", v)
	}
	f.holder = standing
	if f.started {
		l.again++
		return
	}
	f.started = true
	producer, _, _ := strings.Cut(v, "-")
	if l.order == Strict && l.last[producer] > v {
		l.note("%s started after %s", v, l.last[producer])
	}
	l.last[producer] = v
}

// ackEnded notes the outcome of an acknowledgement, which may come too late, and fail in no other
// way.
func (l *history) ackEnded(v string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.items[v]
	switch {
	case err == nil && f.acked:
		l.note("%s was acknowledged twice", v)
	case err == nil:
		f.acked, f.holder = true, nil
		l.acked++
	case errors.Is(err, errUnknown):
		f.maybe = true
		l.maybeAck++
	case errors.Is(err, ErrLost):
		l.away++
	default:
		l.note("ack: %v", err)
	}
}

// counts are the items that were, or may have been, put, and those of them that were acknowledged,
// or may have been. One that may not have been put counts as both: it may never come.
func (l *history) counts() (put, acked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.items {
		if f.put != notPut {
			put++
		}
		if f.acked || f.maybe || f.put == mayBePut {
			acked++
		}
	}
	return put, acked
}

// check compares the books of an empty queue: all that was put was acknowledged, and nothing else
// was delivered.
func (l *history) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for v, f := range l.items {
		settled := f.acked || f.maybe
		switch {
		case f.put == underWay:
			l.note("the put of %s has not ended", v)
		case f.put == isPut && !settled:
			l.note("%s was lost (started: %t)", v, f.started)
		case f.put == notPut && f.started:
			l.note("%s was delivered though its put had failed", v)
		case f.started && !settled:
			l.note("%s was delivered and is gone without an acknowledgement", v)
		}
	}
	require.Empty(t, l.wrong)
}

func (l *history) String() string {
	return fmt.Sprintf("%d items, %d acknowledged once, %d deliveries repeated, %d lost; outcomes unknown: %d items "+
		"put, %d acknowledgements",
		len(l.items), l.acked, l.again, l.away, l.maybePut, l.maybeAck)
}
