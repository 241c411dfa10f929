//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/queue"
)

// queues are a process's, one for each path.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue.Queue[string]
}

// What is stored with the queue at featuresPath.
const (
	capacity    = 40
	maxAttempts = 3
	dedupWindow = time.Minute
)

// queueOptions are the options of the queue at each path.
var queueOptions = map[string][]queue.Option{
	parallelPath: {queue.WithOrder(queue.Parallel)},
	strictPath:   {queue.WithOrder(queue.Strict)},
	featuresPath: {queue.WithOrder(queue.Parallel), queue.WithCapacity(capacity), queue.WithDedup(dedupWindow), queue.WithMaxAttempts(maxAttempts)},
}

// queue returns the process's queue at a path.
func (p *player) queue(path string) *queue.Queue[string] {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	q, made := p.queues.all[path]
	if !made {
		q = queue.New(p.client, path, queue.Text(), queueOptions[path]...)
		p.queues.all[path] = q
	}
	return q
}

// closeQueues is called when the actors have ended.
func (p *player) closeQueues(ctx context.Context) (err error) {
	for _, q := range p.queues.all {
		err = errors.Join(err, q.Close(ctx))
	}
	return err
}

// producer puts one item after the other into streams of its own: a new one in each segment, and after a put whose
// outcome it does not know. The items of a stream have one priority.
type producer struct {
	*player
	path     string
	queue    *queue.Queue[string]
	rand     *rand.Rand
	segment  int
	streams  int
	priority int
	number   int64 // of the last item in the stream
}

func producing(pause time.Duration) func(*player, scene, *rand.Rand) func(context.Context, turn) {
	return func(p *player, s scene, r *rand.Rand) func(context.Context, turn) {
		x := &producer{player: p, path: s.path, queue: p.queue(s.path), rand: r}
		return func(ctx context.Context, t turn) {
			if t.segment != x.segment {
				x.segment = t.segment
				x.newStream()
			}
			waiting, cancel := impatient(ctx, r)
			defer cancel()
			if x.path == featuresPath {
				x.putWithID(waiting)
			} else {
				x.put(waiting)
			}
			pass(ctx, time.Duration(r.Int64N(int64(pause))), t.enough)
		}
	}
}

func (x *producer) newStream() {
	x.streams, x.number = x.streams+1, 0
	x.priority = max(0, x.rand.IntN(2*queue.MaxPriority)-queue.MaxPriority)
}

func (x *producer) put(ctx context.Context) {
	stream, number := fmt.Sprintf("%s.%d", x.name, x.streams), x.number+1
	op := x.last.Add(1)
	x.write(event{At: now(), Op: op, Step: asked, Kind: putting, Path: x.path, Item: stream, Number: number})
	err := x.queue.Put(ctx, fmt.Sprint(stream, "#", number), queue.WithPriority(x.priority))
	switch {
	case err == nil:
		x.number = number
		x.write(event{At: now(), Op: op, Step: granted})
	case errors.Is(err, queue.ErrUnknown):
		x.newStream()
		x.write(event{At: now(), Op: op, Step: unknown})
	default:
		x.notGranted(ctx, op, err)
	}
}

// putWithID puts an item with an id, a priority and at times a delay. While its context is alive it repeats a put whose
// outcome it does not know: the id protects from a second item. At times it puts the item again, which must be refused.
func (x *producer) putWithID(ctx context.Context) {
	stream, number := fmt.Sprintf("%s.%d", x.name, x.streams), x.number+1
	value := fmt.Sprint(stream, "#", number)
	var delay time.Duration
	if x.rand.IntN(4) == 0 {
		delay = time.Duration(x.rand.Int64N(int64(1500 * time.Millisecond)))
	}
	op := x.last.Add(1)
	x.write(event{At: now(), Op: op, Step: asked, Kind: putting, Path: x.path, Item: stream, Number: number, Delay: int64(delay)})
	put := func() error {
		return x.queue.Put(ctx, value, queue.WithPriority(x.priority), queue.WithDelay(delay), queue.WithID(value))
	}
	err := put()
	repeated := errors.Is(err, queue.ErrUnknown)
	for errors.Is(err, queue.ErrUnknown) && ctx.Err() == nil {
		err = put()
	}
	switch {
	case err == nil, repeated && errors.Is(err, queue.ErrDuplicate):
		x.number = number
		x.write(event{At: now(), Op: op, Step: granted})
	case repeated: // one of its tries may be done, whatever the last one says
		x.newStream()
		x.write(event{At: now(), Op: op, Step: unknown})
		return
	default:
		x.notGranted(ctx, op, err)
		return
	}
	if x.rand.IntN(5) == 0 {
		if err := put(); err == nil {
			op := x.last.Add(1)
			x.write(event{At: now(), Op: op, Step: asked, Kind: putting, Path: x.path, Item: stream, Number: number})
			x.write(event{At: now(), Op: op, Step: failed, Why: "an id was accepted twice: " + value})
		}
	}
}

func consuming(p *player, s scene, r *rand.Rand) func(context.Context, turn) {
	q := p.queue(s.path)
	return func(ctx context.Context, t turn) {
		waiting, cancel := impatient(ctx, r)
		defer cancel()
		go func() {
			select {
			case <-t.enough:
				cancel()
			case <-waiting.Done():
			}
		}()
		op := p.last.Add(1)
		p.write(event{At: now(), Op: op, Step: asked, Kind: taking, Path: s.path})
		d, err := q.Take(waiting)
		if err != nil {
			p.notGranted(waiting, op, err)
			return
		}
		if d.Value == filler {
			p.refuseFiller(ctx, op, d)
			return
		}
		span, enough := s.span(r, t, 10*time.Millisecond)
		p.consume(ctx, op, d, r, span, enough)
	}
}

// refuseFiller gets an item that was claimed ahead while all rested, and was purged since. Its acknowledgement must fail.
func (p *player) refuseFiller(ctx context.Context, op int64, d *queue.Delivery[string]) {
	e := event{At: now(), Op: op, Step: missed}
	if err := d.Ack(ctx); err == nil {
		e.Step, e.Why = failed, "a purged item was acknowledged"
	}
	p.write(e)
}

// consume works on a delivery, and acknowledges it or, at times, gives it back.
func (p *player) consume(ctx context.Context, op int64, d *queue.Delivery[string], r *rand.Rand, span time.Duration, enough <-chan struct{}) {
	stream, number, _ := strings.Cut(d.Value, "#")
	n, _ := strconv.ParseInt(number, 10, 64) // what cannot be read was put by nobody
	p.write(event{At: now(), Op: op, Step: granted, Item: stream, Number: n, Attempt: d.Attempt})
	e := event{Op: op, Step: ended, How: lost}
	var standing bool
	if e.Stood, standing = p.watch(ctx, op, d.Context(), span, enough); standing {
		e.How = p.settle(op, d, r, &e.Why)
	}
	e.At = now()
	p.write(e)
}

func (p *player) settle(op int64, d *queue.Delivery[string], r *rand.Rand, why *string) how {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	defer cancel()
	if r.IntN(12) == 0 {
		_ = d.Nack(ctx, time.Duration(r.IntN(2))*time.Second, nil) // it comes again in any case
		return returned
	}
	p.write(event{At: now(), Op: op, Step: leaving})
	if err := d.Ack(ctx); err != nil {
		*why = err.Error()
		return inDoubt
	}
	return acked
}
