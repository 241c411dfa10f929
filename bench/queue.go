package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	fifo "github.com/lockstep-go/lockstep/queue"
)

// queues is W6: items of 100 bytes.
func queues(s settings) error {
	for _, step := range []func(settings) error{putOneByOne, putBackground, takeStrict, takeStrictMany, takeParallel,
		takeAndGiveBack, takeAtDepths} {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

var item = make([]byte, 100)

// newItems returns a queue at a new path.
func newItems(c *framework.Client, opts ...fifo.Option) *fifo.Queue[[]byte] {
	return fifo.New(c, fmt.Sprintf("%s/w6/%d", root, time.Now().UnixNano()), codec.Bytes(), opts...)
}

// fill puts n items, a thousand at a time.
func fill(ctx context.Context, q *fifo.Queue[[]byte], n int) error {
	batch := make([][]byte, 1000)
	for i := range batch {
		batch[i] = item
	}
	for ; n > 0; n -= len(batch) {
		if err := q.PutBatch(ctx, batch[:min(n, len(batch))]); err != nil {
			return err
		}
	}
	return nil
}

func putOneByOne(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	ctx, q := context.Background(), newItems(c)
	defer q.Close(ctx) //nolint:errcheck // the client is closed, too
	return series(s, "lockstep", s.params(map[string]any{"op": "put"}), orDefault(s.n, 3000),
		func() error { return q.Put(ctx, item) })
}

func putBackground(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	ctx, q, n := context.Background(), newItems(c), orDefault(s.n, 20_000)
	defer q.Close(ctx) //nolint:errcheck // the client is closed, too
	if err := q.Put(ctx, item); err != nil {
		return err
	}
	before, start := s.traffic(), time.Now()
	pending, laps := make([]*fifo.Pending, n), make([]time.Duration, n)
	for i := range pending {
		pending[i] = q.PutAsync(ctx, item)
	}
	for i, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		laps[i] = time.Since(start)
	}
	took := time.Since(start)
	return newResult(s, "lockstep", s.params(map[string]any{"op": "put background"}), n, took,
		laps).requests(s.traffic().since(before)).print()
}

// takeStrict takes and acknowledges one item after the other. The acknowledgement claims the next
// item.
func takeStrict(s settings) error {
	n := orDefault(s.n, 3000)
	return consume(s, map[string]any{"op": "take", "order": "strict", "window": 2}, n, 1,
		[]fifo.Option{fifo.WithOrder(fifo.Strict), fifo.WithMaxInFlight(2), fifo.WithPrefetch(1)}, false)
}

// takeStrictMany takes items and acknowledges them without waiting for the answer.
func takeStrictMany(s settings) error {
	for _, window := range []int{10, 100, 500} {
		err := consume(s, map[string]any{"op": "take", "order": "strict", "window": window}, orDefault(s.n, 20_000), 1,
			[]fifo.Option{fifo.WithOrder(fifo.Strict), fifo.WithMaxInFlight(window), fifo.WithPrefetch(window)}, true)
		if err != nil {
			return err
		}
	}
	return nil
}

func takeParallel(s settings) error {
	for _, window := range []int{1, 4, 16} {
		err := consume(s, map[string]any{"op": "take", "order": "parallel", "c": orDefault(s.c, 8), "window": window},
			orDefault(s.n, 20_000), orDefault(s.c, 8),
			[]fifo.Option{fifo.WithMaxInFlight(window), fifo.WithPrefetch(window - 1)}, window > 1)
		if err != nil {
			return err
		}
	}
	return nil
}

// takeAndGiveBack takes items, by turns with none of them given back and with a fifth of them given
// back once.
func takeAndGiveBack(s settings) error {
	const window, turns, share = 8, 2, 5
	for range turns {
		for _, giveBack := range []int{0, share} {
			params := map[string]any{"op": "take", "order": "parallel", "c": orDefault(s.c, 8), "window": window,
				"given back": 0.0}
			if giveBack > 0 {
				params["given back"] = 1 / float64(giveBack)
			}
			err := consumeAndGiveBack(s, params, orDefault(s.n, 20_000), orDefault(s.c, 8), giveBack,
				[]fifo.Option{fifo.WithMaxInFlight(window), fifo.WithPrefetch(window - 1)}, true)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// consume lets consumers with a session each take all items of a queue of n items.
func consume(s settings, params map[string]any, n, consumers int, opts []fifo.Option, async bool) error {
	return consumeAndGiveBack(s, params, n, consumers, 0, opts, async)
}

// consumeAndGiveBack does what consume does, and each consumer gives one of giveBack items back
// once. It gives none back if giveBack is 0.
func consumeAndGiveBack(s settings, params map[string]any, n, consumers, giveBack int, opts []fifo.Option,
	async bool) error {
	clients, err := openAll(s, consumers)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	ctx := context.Background()
	first := newItems(clients[0], opts...)
	if err := fill(ctx, first, n); err != nil {
		return err
	}
	qs := []*fifo.Queue[[]byte]{first}
	for _, c := range clients[1:] {
		qs = append(qs, fifo.New(c, first.Path(), codec.Bytes(), opts...))
	}
	before, start := s.traffic(), time.Now()
	laps, err := drain(ctx, qs, n, giveBack, async)
	if err != nil {
		return err
	}
	took := time.Since(start)
	sent := s.traffic().since(before)
	if left, err := first.Len(ctx); err != nil || left > 0 {
		return errors.Join(err, fmt.Errorf("%w: the queue has %d items", errCountedWrong, left))
	}
	for _, q := range qs {
		if err := q.Close(ctx); err != nil {
			return err
		}
	}
	return newResult(s, "lockstep", s.params(params), n, took, laps).requests(sent).print()
}

var errCountedWrong = errors.New("items were lost or delivered twice")

// drain takes n items in total with all queues, and returns the times from one item of a consumer
// to its next.
func drain(ctx context.Context, qs []*fifo.Queue[[]byte], n, giveBack int, async bool) ([]time.Duration, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	drains := make([]consumer, len(qs))
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for i, q := range qs {
		drains[i] = consumer{q: q, left: &left, done: done, async: async, giveBack: giveBack}
		wg.Go(func() { drains[i].run(ctx) })
	}
	wg.Wait()
	var laps []time.Duration
	for i := range drains {
		d := &drains[i]
		if d.err != nil {
			return nil, d.err
		}
		laps = append(laps, d.laps...)
	}
	if left.Load() != 0 {
		return nil, fmt.Errorf("%w: %d are left", errCountedWrong, left.Load())
	}
	return laps, nil
}

// consumer is one consumer of drain.
type consumer struct {
	q     *fifo.Queue[[]byte]
	left  *atomic.Int64
	done  func()
	async bool
	laps  []time.Duration
	err   error

	giveBack int // of so many items one is given back at its first attempt; 0 for none
	taken    int // items at their first attempt
	returns  sync.WaitGroup
	refused  atomic.Pointer[error] // why an item could not be given back, or nil
}

func (c *consumer) run(ctx context.Context) {
	defer c.done() // the first to end has taken the last item, or failed
	var acks []*fifo.Pending
	last := time.Now()
	for item, err := range c.q.Deliveries(ctx) {
		if err != nil {
			c.err = err
			return
		}
		if item.Attempt > c.maxAttempt() {
			c.err = fmt.Errorf("%w: attempt %d of an item", errCountedWrong, item.Attempt)
			return
		}
		if item.Attempt == 1 {
			if c.taken++; c.giveBack > 0 && c.taken%c.giveBack == 0 {
				c.returns.Go(func() { c.returnItem(item) })
				continue
			}
		}
		acks = append(acks, item.AckAsync())
		if !c.async {
			<-acks[len(acks)-1].Done()
		}
		c.laps = append(c.laps, time.Since(last))
		last = time.Now()
		if c.left.Add(-1) == 0 {
			break
		}
	}
	c.returns.Wait()
	if err := c.refused.Load(); err != nil {
		c.err = *err
	}
	for _, a := range acks {
		if err := a.Wait(context.Background()); err != nil {
			c.err = err
		}
	}
}

// maxAttempt returns the highest attempt that a queue may count here: one for each delivery of an
// item, and one more for each time that the item was put or given back, because a claim that was
// made ahead may have been given up at that time (docs/guarantees.md).
func (c *consumer) maxAttempt() int {
	if c.giveBack > 0 {
		return 4
	}
	return 2
}

// returnItem gives an item back.
func (c *consumer) returnItem(item *fifo.Delivery[[]byte]) {
	if err := item.Nack(context.Background(), 0, nil); err != nil {
		c.refused.Store(&err)
	}
}

// takeAtDepths puts and takes at a depth of 10, and at that of -depth.
func takeAtDepths(s settings) error {
	for _, depth := range []int{10, s.depth} {
		if err := atDepth(s, depth); err != nil {
			return err
		}
	}
	return nil
}

func atDepth(s settings, depth int) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	ctx, q := context.Background(), newItems(c)
	defer q.Close(ctx) //nolint:errcheck // the client is closed, too
	if err := fill(ctx, q, depth); err != nil {
		return err
	}
	settle(s)
	params := s.params(map[string]any{"op": "put and take", "depth": depth})
	return series(s, "lockstep", params, orDefault(s.n, 1500), func() error {
		if err := q.Put(ctx, item); err != nil {
			return err
		}
		d, err := q.Take(ctx)
		if err != nil {
			return err
		}
		return d.Ack(ctx)
	})
}
