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

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// queues are a process's queues by path.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue.Queue[string]
}

// Options that are stored with the queue at featuresPath.
const (
	queueCapacity = 40
	maxAttempts   = 3
	dedupWindow   = time.Minute
)

// queueOptions are the options of the queue at each path.
var queueOptions = map[string][]queue.Option{
	parallelPath: {queue.WithOrder(queue.Parallel)},
	strictPath:   {queue.WithOrder(queue.Strict)},
	featuresPath: {queue.WithOrder(queue.Parallel), queue.WithCapacity(queueCapacity), queue.WithDedup(dedupWindow),
		queue.WithMaxAttempts(maxAttempts)},
}

// openQueue returns the process's queue at a path.
func (p *clientProcess) openQueue(path string) *queue.Queue[string] {
	p.queues.mu.Lock()
	defer p.queues.mu.Unlock()
	q, made := p.queues.all[path]
	if !made {
		q = queue.New(p.client, path, codec.Text(), queueOptions[path]...)
		p.queues.all[path] = q
	}
	return q
}

// closeQueues closes all queues. The actors must have ended.
func (p *clientProcess) closeQueues(ctx context.Context) (err error) {
	for _, q := range p.queues.all {
		err = errors.Join(err, closeAll(ctx, q.Close))
	}
	return err
}

// producer puts items into streams of its own. It starts a new stream in each segment, and after a
// put with an unknown outcome. All items of a stream have the same priority.
type producer struct {
	*clientProcess
	path     string
	queue    *queue.Queue[string]
	rand     *rand.Rand
	segment  int
	streams  int
	priority int
	number   int64 // of the last item in the stream
	recent   []putItemName
}

// putItemName is an item that a producer may cancel.
type putItemName struct {
	stream string
	number int64
	put    time.Time // when its put was known to be done; zero if its outcome is unknown
}

func (i putItemName) String() string { return fmt.Sprint(i.stream, "#", i.number) }

// mostRecent is how many of the latest items a producer remembers.
const mostRecent = 6

func producerActor(pause time.Duration) func(*clientProcess, workload, *rand.Rand) func(context.Context, iteration) {
	return func(c *clientProcess, w workload, rng *rand.Rand) func(context.Context, iteration) {
		p := &producer{clientProcess: c, path: w.path, queue: c.openQueue(w.path), rand: rng}
		return func(ctx context.Context, t iteration) {
			if t.segment != p.segment {
				p.segment = t.segment
				p.newStream()
			}
			callCtx, cancel := sometimesTimeout(ctx, rng)
			defer cancel()
			if p.path == featuresPath {
				p.putWithID(callCtx)
				p.cancelSometimes(ctx)
			} else {
				p.put(callCtx)
			}
			wait(ctx, time.Duration(rng.Int64N(int64(pause))), t.stop)
		}
	}
}

func (p *producer) newStream() {
	p.streams, p.number = p.streams+1, 0
	p.priority = max(0, p.rand.IntN(2*queue.MaxPriority)-queue.MaxPriority)
}

func (p *producer) put(ctx context.Context) {
	stream, number := fmt.Sprintf("%s.%d", p.name, p.streams), p.number+1
	op := p.lastOp.Add(1)
	p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindPut, Path: p.path, Item: stream, Number: number})
	err := p.queue.Put(ctx, fmt.Sprint(stream, "#", number), queue.WithPriority(p.priority))
	switch {
	case err == nil:
		p.number = number
		p.write(event{At: now(), Op: op, Step: stepGranted})
	case errors.Is(err, framework.ErrOutcomeUnknown):
		p.newStream()
		p.write(event{At: now(), Op: op, Step: stepUnknown})
	default:
		p.writeNotGranted(ctx, op, err)
	}
}

// putWithID puts an item with an id, a priority and sometimes a delay. It repeats a put with an
// unknown outcome until its context ends: the id prevents a second item. Sometimes it puts the item
// again, which must be refused.
func (p *producer) putWithID(ctx context.Context) {
	stream, number := fmt.Sprintf("%s.%d", p.name, p.streams), p.number+1
	value := fmt.Sprint(stream, "#", number)
	var delay time.Duration
	if p.rand.IntN(4) == 0 {
		delay = time.Duration(p.rand.Int64N(int64(1500 * time.Millisecond)))
	}
	op := p.lastOp.Add(1)
	p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindPut, Path: p.path, Item: stream, Number: number,
		Delay: int64(delay)})
	put := func() error {
		return p.queue.Put(ctx, value, queue.WithPriority(p.priority), queue.WithDelay(delay), queue.WithID(value))
	}
	err := put()
	repeated := errors.Is(err, framework.ErrOutcomeUnknown)
	for errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil {
		err = put()
	}
	switch {
	case err == nil, repeated && errors.Is(err, queue.ErrDuplicate):
		p.number = number
		p.remember(putItemName{stream, number, time.Now()})
		p.write(event{At: now(), Op: op, Step: stepGranted})
	case repeated: // one of its tries may be done
		p.remember(putItemName{stream: stream, number: number})
		p.newStream()
		p.write(event{At: now(), Op: op, Step: stepUnknown})
		return
	default:
		p.writeNotGranted(ctx, op, err)
		return
	}
	if p.rand.IntN(5) == 0 {
		if err := put(); err == nil {
			op := p.lastOp.Add(1)
			p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindPut, Path: p.path, Item: stream,
				Number: number})
			p.write(event{At: now(), Op: op, Step: stepFailed, Error: "an id was accepted twice: " + value})
		}
	}
}

func (p *producer) remember(i putItemName) {
	p.recent = append(p.recent, i)
	p.recent = p.recent[max(0, len(p.recent)-mostRecent):]
}

// cancelSometimes cancels one of the latest items by its id. The item may be queued, delivered or
// acknowledged by then.
func (p *producer) cancelSometimes(ctx context.Context) {
	if len(p.recent) == 0 || p.rand.IntN(4) > 0 {
		return
	}
	ctx, cancel := sometimesTimeout(ctx, p.rand)
	defer cancel()
	item := p.recent[len(p.recent)-1-min(p.rand.IntN(len(p.recent)), p.rand.IntN(len(p.recent)))] // rather a new one
	op := p.lastOp.Add(1)
	p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindCancel, Path: p.path, Item: item.stream,
		Number: item.number})
	err := p.queue.Cancel(ctx, item.String())
	e := event{At: now(), Op: op, Step: stepAbandoned}
	switch {
	case err == nil:
		e.Step = stepGranted
	case errors.Is(err, framework.ErrOutcomeUnknown):
		e.Step = stepUnknown
	case errors.Is(err, queue.ErrTaken), errors.Is(err, queue.ErrDone):
	case errors.Is(err, framework.ErrNotFound) && (item.put.IsZero() || time.Since(item.put) > dedupWindow/2):
	default:
		p.writeNotGranted(ctx, op, err)
		return
	}
	p.write(e)
}

func consumerActor(p *clientProcess, w workload, rng *rand.Rand) func(context.Context, iteration) {
	q := p.openQueue(w.path)
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		go func() {
			select {
			case <-t.stop:
				cancel()
			case <-callCtx.Done():
			}
		}()
		op := p.lastOp.Add(1)
		p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindDelivery, Path: w.path})
		d, err := q.Take(callCtx)
		if err != nil {
			p.writeNotGranted(callCtx, op, err)
			return
		}
		if d.Value == filler {
			p.expectStaleFiller(ctx, op, d)
			return
		}
		duration, stop := w.holdTime(rng, t, 10*time.Millisecond)
		p.handleDelivery(ctx, op, d, rng, duration, stop)
	}
}

// expectStaleFiller handles an item of checkCapacity that was prefetched before it was purged. Its
// acknowledgement must fail.
func (p *clientProcess) expectStaleFiller(ctx context.Context, op int64, d *queue.Delivery[string]) {
	e := event{At: now(), Op: op, Step: stepAbandoned}
	err := d.Ack(ctx)
	p.expectSettled(ctx, "Ack", d, err)
	if err == nil {
		e.Step, e.Error = stepFailed, "a purged item was acknowledged"
	}
	p.write(e)
}

// handleDelivery holds a delivery for a time, and acknowledges it or, sometimes, returns it.
func (p *clientProcess) handleDelivery(ctx context.Context, op int64, d *queue.Delivery[string], rng *rand.Rand,
	duration time.Duration, stop <-chan struct{}) {
	stream, number, _ := strings.Cut(d.Value, "#")
	n, _ := strconv.ParseInt(number, 10, 64) // an unreadable number matches no put
	p.write(event{At: now(), Op: op, Step: stepGranted, Item: stream, Number: n, Attempt: d.Attempt})
	e := event{Op: op, Step: stepEnded, End: endLost}
	var alive bool
	if e.LastHeld, alive = p.watchHold(ctx, op, d.Context(), duration, stop); alive {
		e.End = p.ackOrNack(op, d, rng, &e.Error)
	}
	e.At = now()
	p.write(e)
}

func (p *clientProcess) ackOrNack(op int64, d *queue.Delivery[string], rng *rand.Rand, why *string) endReason {
	ctx, cancel := context.WithTimeout(context.Background(), 2*sessionTimeout)
	defer cancel()
	if rng.IntN(12) == 0 {
		err := d.Nack(ctx, time.Duration(rng.IntN(2))*time.Second, nil) // it is redelivered in any case
		p.expectSettled(ctx, "Nack", d, err)
		return endNacked
	}
	p.write(event{At: now(), Op: op, Step: stepAcking})
	err := d.Ack(ctx)
	p.expectSettled(ctx, "Ack", d, err)
	if err == nil {
		return endAcked
	}
	*why = err.Error()
	if errors.Is(err, queue.ErrLost) && !errors.Is(err, framework.ErrOutcomeUnknown) {
		return endLost // the item was not acknowledged, so it must come again
	}
	return endUncertain
}

// expectSettled writes a violation if a settlement has failed with an error that the documentation
// of Ack does not name. ErrSettled is none that may come: nothing else settles the delivery.
func (p *clientProcess) expectSettled(ctx context.Context, call string, d *queue.Delivery[string], err error) {
	p.expect(ctx, call, d.Node(), err, queue.ErrLost, framework.ErrOutcomeUnknown)
}
