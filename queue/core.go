package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// core is a Queue without its type.
type core struct {
	client *framework.Client
	path   string
	err    error // of the arguments
	record record
	base   line
	dead   line
	bound  int64

	window        int
	prefetch      int
	prefetchBytes int
	backlog       int  // bytes
	refuses       bool // when it is full
	linger        time.Duration
	maxAttempts   int
	dropExpired   bool
	deadExpiry    time.Duration // 0: never

	found    atomic.Pointer[record] // nil before the queue was found
	stale    atomic.Bool            // the record has to be read again
	clock    clock
	tel      telemetry
	writer   *writer
	roomLine waitingPuts
	consumer *consumer

	work  context.Context // done when Close begins: nothing more is taken
	stop  context.CancelCauseFunc
	life  context.Context // done when Close ends: nothing more is written
	kill  context.CancelCauseFunc
	tasks tasks

	ending sync.Once
	closed chan struct{}
}

func newCore(client *framework.Client, path string, opts []Option) *core {
	q := &core{client: client, path: path, bound: defaultBound, linger: DefaultLinger, prefetchBytes: DefaultPrefetchBytes, backlog: DefaultBacklog,
		record: record{V: recordVersion, Recipe: recipe}}
	q.work, q.stop = context.WithCancelCause(context.Background())
	q.life, q.kill = context.WithCancelCause(context.Background())
	q.closed = make(chan struct{})
	q.writer, q.consumer = newWriter(q), newConsumer(q)
	q.roomLine.q = q
	if q.err = q.check(); q.err != nil {
		return q
	}
	q.tel = newTelemetry(client, path)
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(q); err != nil && q.err == nil {
			q.err = err
		}
	}
	q.base = line{dir: q.below(itemsDir), tickets: framework.Join(q.below(ticketsDir), itemsDir)}
	q.dead = line{dir: q.below(deadDir)}
	return q
}

func (q *core) check() error {
	if q.client == nil {
		return fmt.Errorf("%w: the client is nil", ErrOption)
	}
	if err := framework.ValidatePath(q.path); err != nil {
		return err
	}
	if q.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a queue", framework.ErrInvalidPath, q.path)
	}
	return nil
}

// below is a node of the queue's.
func (q *core) below(name string) string { return framework.Join(q.path, name) }

// usable refuses what was made with bad arguments, or was closed.
func (q *core) usable() error {
	if q.err != nil {
		return q.err
	}
	return context.Cause(q.work)
}

// close ends the consumer, then what is still to be written.
func (q *core) close(ctx context.Context) error {
	q.stop(ErrClosed)
	q.ending.Do(func() {
		go func() {
			defer close(q.closed)
			<-q.tasks.done()
			q.kill(ErrClosed)
			q.writer.leave()
		}()
	})
	select {
	case <-q.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("queue: close: %w", framework.Ended(ctx))
	}
}

// windowSize is how many deliveries may be open.
func (q *core) windowSize() int {
	switch {
	case q.window > 0:
		return q.window
	case q.stored().Order == Strict:
		return 1
	}
	return DefaultWindow
}

// gone are the operations that count an item that leaves a bounded queue.
func (q *core) gone() []framework.Op {
	if q.stored().Capacity == 0 {
		return nil
	}
	return []framework.Op{framework.SetOp(q.below(outNode), nil, framework.AnyVersion)}
}

// tasks are the goroutines of a Queue.
type tasks struct {
	mu      sync.Mutex
	n       int
	closing bool
	ended   chan struct{}
}

// start runs f in the background, unless all has ended.
func (t *tasks) start(f func()) bool {
	if !t.begin() {
		return false
	}
	go func() {
		defer t.finish()
		f()
	}()
	return true
}

// begin counts something that ends with finish, unless all has ended.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing && t.n == 0 {
		return false
	}
	t.n++
	return true
}

func (t *tasks) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.closing && t.n == 0 {
		close(t.ended)
	}
}

// done returns a channel that is closed when all that runs, and what that still starts, has ended.
func (t *tasks) done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closing {
		t.closing, t.ended = true, make(chan struct{})
		if t.n == 0 {
			close(t.ended)
		}
	}
	return t.ended
}
