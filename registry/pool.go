package registry

import (
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
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
// Guarantee: while the servers are away, the pool keeps the last list, until a read behind a sync shows another one. It does not call the service empty meanwhile.
//
// A pool counts the calls of its own process only.
type Pool struct {
	registry *Registry
	service  string
	opts     poolOptions
	tel      *poolTelemetry
	err      error // of the arguments

	list atomic.Pointer[instanceList] // nil before the first answer
	turn atomic.Uint64                // of RoundRobin

	begin  sync.Once
	mu     sync.Mutex
	heard  chan struct{} // closed and replaced at each list
	failed error         // why no other list comes
	ctx    context.Context
	cancel context.CancelFunc
	tasks  background.Tasks

	stored []byte // the file's content; used only by the goroutine that follows the lists
}

// instanceList is a service's instances at one moment.
type instanceList struct {
	at       time.Time
	all      map[string]*listMember
	ready    []*listMember // those that are enabled, ordered by id
	total    int           // of the weights of ready
	weighted bool          // the weights of ready differ
	fromFile bool          // the servers have not answered yet
}

// copyInstances are copies of all, ordered by id.
func (l *instanceList) copyInstances() (all []Instance) {
	for _, id := range slices.Sorted(maps.Keys(l.all)) {
		all = append(all, l.all[id].instance.cloneInstance())
	}
	return all
}

// NewPool returns a pool of the instances of a service. It reads the file of WithFile, and sends no request before the first call. If an argument is invalid, every call returns an error that says so.
func NewPool(client *framework.Client, base, service string, opts ...PoolOption) *Pool {
	p := &Pool{registry: New(client, base), service: service, heard: make(chan struct{})}
	p.opts, p.err = recipe.ApplyOptions(poolDefaults(), opts)
	if err := (Instance{Service: service, ID: "x", Address: "x", Port: 1, Weight: 1}).checkFields(); err != nil {
		p.err = err
	}
	if p.registry.err != nil {
		p.err = p.registry.err
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if p.err == nil {
		p.tel = newPoolTelemetry(client, service)
	}
	p.readFile()
	return p
}

// Picked is an instance that was picked for one call.
type Picked struct {
	// Instance must not be changed.
	Instance *Instance

	pool   *Pool
	member *listMember
	began  int64
}

// Pick picks an instance for one call. Call Done at the end of that call. Pick waits for the first list until ctx ends; with a list it does not wait. The error is that of ctx or wraps
// ErrNoInstance, ErrInvalid, ErrOption, ErrClosed, framework.ErrClosed or framework.ErrNoAuth.
func (p *Pool) Pick(ctx context.Context) (Picked, error) { return p.pickMember(ctx, "") }

// PickFor is Pick with a key. The balancer Rendezvous takes the same instance for the same key while that instance is registered; other balancers ignore the key.
func (p *Pool) PickFor(ctx context.Context, key string) (Picked, error) {
	return p.pickMember(ctx, key)
}

func (p *Pool) pickMember(ctx context.Context, key string) (Picked, error) {
	l := p.list.Load()
	if l == nil || l.fromFile {
		var err error
		if l, err = p.waitForList(ctx); err != nil {
			return Picked{}, p.notPicked(err)
		}
	}
	if len(l.ready) == 0 {
		return Picked{}, p.notPicked(p.noInstance())
	}
	now := monotonicNow()
	m := l.chooseMember(p, key, now)
	m.calls.Add(1)
	return Picked{&m.instance, p, m, now}, nil
}

// noInstance returns the error of a list without enabled instances: why no newer list comes, or ErrNoInstance.
func (p *Pool) noInstance() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return ErrNoInstance
}

func (p *Pool) notPicked(err error) error {
	if p.tel != nil {
		p.tel.notPicked(err)
	}
	return failure.Wrap("pick an instance of", p.registry.serviceDir(p.service), err)
}

// Done ends a call. An error counts as a failure of the instance: do not pass errors that the caller has caused, such as the end of its context. Call Done once.
func (c Picked) Done(err error) {
	took, ejected := c.member.callEnded(&c.pool.opts, c.began, err)
	c.pool.tel.recordCall(took, err, ejected)
}

// Instances returns all instances of the last list, also disabled ones, ordered by id, and when the list was read. It waits for the first list until ctx ends.
func (p *Pool) Instances(ctx context.Context) (all []Instance, at time.Time, err error) {
	l, err := p.waitForList(ctx)
	if err != nil {
		return nil, time.Time{}, failure.Wrap("list instances of", p.registry.serviceDir(p.service), err)
	}
	return l.copyInstances(), l.at, nil
}

// Changes yields all instances, also disabled ones, now and after each change; a slow reader skips to the latest. Before the first list, it yields the errors that keep the pool from
// reading one, such as a missing permission. It ends with the error of ctx, or when the pool is closed.
func (p *Pool) Changes(ctx context.Context) iter.Seq2[[]Instance, error] {
	return func(yield func([]Instance, error) bool) {
		if p.err != nil {
			yield(nil, failure.Wrap("list instances of", p.registry.serviceDir(p.service), p.err))
			return
		}
		p.startOnce()
		var shown []Instance
		var told error
		yielded := false
		for {
			p.mu.Lock()
			l, heard, err := p.list.Load(), p.heard, p.failed
			p.mu.Unlock()
			closed := errors.Is(err, ErrClosed) || errors.Is(err, framework.ErrClosed)
			switch {
			case l != nil:
				if all := l.copyInstances(); !yielded || !reflect.DeepEqual(all, shown) {
					yielded, shown = true, all
					if !yield(slices.Clone(all), nil) {
						return
					}
				}
			case err != nil && (closed || !errors.Is(err, told)):
				told = err
				if !yield(nil, failure.Wrap("list instances of", p.registry.serviceDir(p.service), err)) || closed {
					return
				}
			}
			select {
			case <-heard:
			case <-ctx.Done():
				yield(nil, failure.Wrap("list instances of", p.registry.serviceDir(p.service), failure.Ended(ctx)))
				return
			}
		}
	}
}

func (p *Pool) startOnce() { p.begin.Do(func() { p.tasks.Start(p.followLists) }) }

// Close ends the pool, as long as ctx.
func (p *Pool) Close(ctx context.Context) error {
	p.begin.Do(func() { p.failFirstList(ErrClosed) })
	p.cancel()
	select {
	case <-p.tasks.Done():
		return nil
	case <-ctx.Done():
		return failure.Wrap("close the pool of", p.registry.serviceDir(p.service), failure.Ended(ctx))
	}
}

// waitForList returns the last list, and waits for the first one.
func (p *Pool) waitForList(ctx context.Context) (*instanceList, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.startOnce()
	for {
		p.mu.Lock()
		l, heard, err := p.list.Load(), p.heard, p.failed
		p.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return nil, failure.Ended(ctx)
		}
	}
}

// followLists follows the service until the pool is closed. It goes on after a refusal, such as a missing permission, which may be mended.
func (p *Pool) followLists() {
	defer p.tel.showSize(listSize{})
	pauses := recipe.RetryPauses{Client: p.registry.client}
	for {
		began := time.Now()
		err := p.registry.followService(p.ctx, p.service, p.opts.refresh, p.takeList)
		if p.ctx.Err() != nil {
			err = ErrClosed
		}
		p.failFirstList(err)
		if errors.Is(err, framework.ErrClosed) || pauses.Wait(p.ctx, began) != nil {
			return
		}
	}
}

// failFirstList fails the callers that wait for the first list.
func (p *Pool) failFirstList(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = err
	if errors.Is(err, ErrClosed) || errors.Is(err, framework.ErrClosed) {
		p.list.Store(nil)
	}
	close(p.heard)
	p.heard = make(chan struct{})
}

// takeList makes a new list the present one, and wakes the callers that wait for a list.
func (p *Pool) takeList(all []Instance, refused []refusedInstance) {
	for _, one := range refused {
		p.registry.client.Logger().Warn("a registered instance cannot be used", "path", one.node, "error", one.err)
	}
	next := newList(time.Now(), all, p.list.Load())
	p.mu.Lock()
	p.failed = nil
	p.list.Store(next)
	close(p.heard)
	p.heard = make(chan struct{})
	p.mu.Unlock()
	p.tel.countList(listSize{enabled: int64(len(next.ready)), disabled: int64(len(next.all) - len(next.ready)), unusable: int64(len(refused))})
	p.writeFile(next.at, all)
}

// newList makes a list. Instances that were there before keep their counts.
func newList(at time.Time, all []Instance, before *instanceList) *instanceList {
	next := &instanceList{at: at, all: make(map[string]*listMember, len(all))}
	for _, i := range all {
		m := &listMember{instance: i, hash: hashText(i.ID), instanceLoad: new(instanceLoad)}
		if before != nil && before.all[i.ID] != nil {
			m.instanceLoad = before.all[i.ID].instanceLoad
		}
		next.all[i.ID] = m
		if i.Disabled == "" {
			next.ready = append(next.ready, m)
			next.weighted = next.weighted || i.Weight != next.ready[0].instance.Weight
			next.total += i.Weight
			m.upTo = next.total
		}
	}
	return next
}
