package registry

import (
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Pool picks an instance of a service for each call. It is safe for concurrent use.
//
// Guarantee: while the servers cannot be reached, the pool keeps its last list. It lists no
// instance only after a read that finds none, on a connection that has synced. Pick returns
// ErrNoInstance also while all instances of the list are disabled.
//
// Not guaranteed: that a picked instance still runs. A pool measures the calls of its own process
// only.
//
// A pool follows the service from the first call on, until Close or until the client is closed.
type Pool struct {
	registry *Registry
	service  string
	opts     poolOptions
	tel      *poolTelemetry
	err      error // of the arguments of NewPool; every call returns it

	list  atomic.Pointer[instanceList] // nil before the first list, and after the end of the pool
	picks atomic.Uint64                // of RoundRobin: how many there were

	begin   sync.Once // starts followLists
	mu      sync.Mutex
	updated chan struct{} // closed and replaced at each list and at each failure
	failed  error         // why the latest read has failed, or nil
	ctx     context.Context
	cancel  context.CancelFunc
	tasks   background.Tasks

	stored []byte // the file's content; used only by NewPool and the goroutine of followLists
}

// instanceList is a service's instances at one moment.
type instanceList struct {
	at          time.Time // when it was read
	all         map[string]*listedInstance
	enabled     []*listedInstance // ordered by id
	totalWeight int               // of the enabled instances
	weighted    bool              // the weights of the enabled instances differ
	fromFile    bool              // the list is that of WithFile: the pool has read none from the servers
}

// copyInstances returns copies of all instances, ordered by id.
func (l *instanceList) copyInstances() (all []Instance) {
	for _, id := range slices.Sorted(maps.Keys(l.all)) {
		all = append(all, l.all[id].instance.cloneInstance())
	}
	return all
}

// NewPool returns a pool of the instances of a service. It reads the file of WithFile. A pool sends
// no request before its first call. If an argument is invalid, every call returns an error that
// says so.
func NewPool(client *framework.Client, base, service string, opts ...PoolOption) *Pool {
	p := &Pool{registry: New(client, base), service: service, updated: make(chan struct{})}
	p.opts, p.err = recipe.ApplyOptions(poolDefaults(), opts)
	p.opts.file = strings.ReplaceAll(p.opts.file, "{service}", service)
	if err := (Instance{Service: service, ID: "x", Address: "x", Port: 1, Weight: 1}).checkFields(); err != nil {
		p.err = err
	}
	if p.registry.err != nil {
		p.err = p.registry.err
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.err == nil {
		p.tel = newPoolTelemetry(client, p.registry.serviceDir(service))
	}
	p.readFile()
	return p
}

// Validate returns what is wrong with the arguments of NewPool, as every call does, or nil. It
// sends no request.
func (p *Pool) Validate() error { return p.err }

// Picked is an instance that was picked for one call.
type Picked struct {
	// Instance must not be changed.
	Instance *Instance

	pool   *Pool
	listed *listedInstance
	began  int64 // by monotonicNow
}

// Pick picks an instance for one call. Call Done at the end of that call. Pick waits for the first
// list until ctx ends; with a list it does not wait. The error is that of ctx or wraps
// ErrNoInstance, framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth.
func (p *Pool) Pick(ctx context.Context) (Picked, error) { return p.pickInstance(ctx, "") }

// PickFor is Pick with a key, which only the balancer Rendezvous uses: it gives calls with one key
// to one instance, as far as that is possible; see Rendezvous.
func (p *Pool) PickFor(ctx context.Context, key string) (Picked, error) {
	return p.pickInstance(ctx, key)
}

func (p *Pool) pickInstance(ctx context.Context, key string) (Picked, error) {
	l := p.list.Load()
	if l == nil || l.fromFile {
		var err error
		if l, err = p.waitForList(ctx); err != nil {
			return Picked{}, p.notPicked(err)
		}
	}
	if len(l.enabled) == 0 {
		return Picked{}, p.notPicked(p.noInstance())
	}
	now := monotonicNow()
	m := l.chooseInstance(p, key, now)
	m.calls.Add(1)
	return Picked{&m.instance, p, m, now}, nil
}

// noInstance returns the error of a pick from a list without enabled instances: why the latest read
// has failed, or ErrNoInstance.
func (p *Pool) noInstance() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return ErrNoInstance
}

// notPicked counts a pick without an instance, and returns its error.
func (p *Pool) notPicked(err error) error {
	if p.tel != nil {
		p.tel.notPicked(err)
	}
	return failure.Wrap("pick an instance of", p.registry.serviceDir(p.service), err)
}

// Done ends a call. An error counts as a failure of the instance, nil as a success. An error that
// wraps context.Canceled counts as neither, since the caller has given up: it does not change the
// failures in a row and is not measured, and it changes the average latency only if it has lasted
// longer than that. The error of an expired deadline counts as a failure: the instance has not
// answered in time. Do not pass other errors that the caller has caused, such as an invalid
// request. Call Done once.
func (c Picked) Done(err error) {
	if errors.Is(err, context.Canceled) {
		c.listed.callCanceled(c.began)
		return
	}
	took, ejected := c.listed.callEnded(&c.pool.opts, c.began, err)
	c.pool.tel.recordCall(took, err, ejected)
}

// Instances returns all instances of the last list, also disabled ones, ordered by id, and when the
// list was read, by this machine's clock. It waits for the first list until ctx ends. Its error is
// as that of Pick, without ErrNoInstance.
func (p *Pool) Instances(ctx context.Context) (all []Instance, at time.Time, err error) {
	l, err := p.waitForList(ctx)
	if err != nil {
		return nil, time.Time{}, failure.Wrap("list instances of", p.registry.serviceDir(p.service), err)
	}
	return l.copyInstances(), l.at, nil
}

// Follow yields all instances, also disabled ones, ordered by id, now and after each change. A slow
// reader skips to the latest list. Before the first list, it yields the errors of reads, such as a
// missing permission, and goes on. It ends silently when ctx ends, and otherwise yields the error
// last that ends it: framework.ErrClosed, or that of NewPool's arguments.
func (p *Pool) Follow(ctx context.Context) iter.Seq2[[]Instance, error] {
	return func(yield func([]Instance, error) bool) {
		if p.err != nil {
			yield(nil, failure.Wrap("list instances of", p.registry.serviceDir(p.service), p.err))
			return
		}
		p.startOnce()
		var shown []Instance
		told := "" // the text of the error that was yielded last: each read returns an error of its own
		yielded := false
		for {
			p.mu.Lock()
			l, updated, err := p.list.Load(), p.updated, p.failed
			p.mu.Unlock()
			closed := errors.Is(err, framework.ErrClosed)
			switch {
			case l != nil:
				if all := l.copyInstances(); !yielded || !reflect.DeepEqual(all, shown) {
					yielded, shown = true, all
					if !yield(slices.Clone(all), nil) {
						return
					}
				}
			case err != nil && (closed || err.Error() != told):
				told = err.Error()
				if !yield(nil, failure.Wrap("list instances of", p.registry.serviceDir(p.service), err)) || closed {
					return
				}
			}
			select {
			case <-updated:
			case <-ctx.Done():
				return
			}
		}
	}
}

// startOnce starts followLists at the first call.
func (p *Pool) startOnce() { p.begin.Do(func() { p.tasks.Start(p.followLists) }) }

// Close ends the pool, and waits until its goroutine has ended. It is a cleanup
// (framework.Client.CleanupContext): it also waits if ctx has ended. If that lasts longer, the
// error wraps framework.ErrUnconfirmed. Later calls return framework.ErrClosed. Picked instances
// stay usable.
func (p *Pool) Close(ctx context.Context) error {
	p.begin.Do(func() { p.storeFailure(errClosed) })
	p.cancel()
	return failure.Wrap("close the pool of", p.registry.serviceDir(p.service),
		recipe.FinishCleanup(ctx, p.registry.client, p.tasks.Done(), nil))
}

// waitForList returns the last list. It waits for the first one until ctx ends or a read fails.
func (p *Pool) waitForList(ctx context.Context) (*instanceList, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.startOnce()
	for {
		p.mu.Lock()
		l, updated, err := p.list.Load(), p.updated, p.failed
		p.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return nil, failure.Ended(ctx)
		}
	}
}

// followLists follows the service until the pool or the client is closed. It goes on, after a
// pause, when the servers have refused a read: somebody may grant the missing permission.
func (p *Pool) followLists() {
	defer p.tel.showSize(listSize{})
	pauses := recipe.RetryPauses{Client: p.registry.client}
	for {
		began := time.Now()
		err := p.registry.followService(p.ctx, p.service, p.opts.refresh, p.takeList)
		if p.ctx.Err() != nil {
			err = errClosed
		}
		p.storeFailure(err)
		if errors.Is(err, framework.ErrClosed) || pauses.Wait(p.ctx, began) != nil {
			return
		}
	}
}

// storeFailure stores why a read has failed, and wakes the callers that wait for a list. When the
// pool or the client was closed, it drops the list.
func (p *Pool) storeFailure(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = err
	if errors.Is(err, framework.ErrClosed) {
		p.list.Store(nil)
	}
	close(p.updated)
	p.updated = make(chan struct{})
}

// takeList makes a new list the present one, logs the nodes that are not valid instances, and
// stores the list in the file. It wakes the callers that wait for a list when the metrics show it.
func (p *Pool) takeList(all []Instance, refused []refusedInstance) {
	for _, one := range refused {
		p.registry.client.Logger().Warn("a registered instance cannot be used", "path", one.node, "error", one.err)
	}
	next := newList(time.Now(), all, p.list.Load())
	p.tel.countList(listSize{enabled: int64(len(next.enabled)), disabled: int64(len(next.all) - len(next.enabled)),
		unusable: int64(len(refused))})
	p.mu.Lock()
	p.failed = nil
	p.list.Store(next)
	close(p.updated)
	p.updated = make(chan struct{})
	p.mu.Unlock()
	p.writeFile(next.at, all)
}

// newList returns a list of these instances, which are ordered by id. Instances of the list before,
// which may be nil, keep their loads.
func newList(at time.Time, all []Instance, before *instanceList) *instanceList {
	next := &instanceList{at: at, all: make(map[string]*listedInstance, len(all))}
	for _, i := range all {
		m := &listedInstance{instance: i, hash: hashText(i.ID), instanceLoad: newInstanceLoad()}
		if before != nil && before.all[i.ID] != nil {
			m.instanceLoad = before.all[i.ID].instanceLoad
		}
		next.all[i.ID] = m
		if i.Disabled == "" {
			next.enabled = append(next.enabled, m)
			next.weighted = next.weighted || i.Weight != next.enabled[0].instance.Weight
			next.totalWeight += i.Weight
			m.weightsUpTo = next.totalWeight
		}
	}
	return next
}
