package registry

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Registration is an instance that this process has registered. It lasts until Close, or until the client is closed. It is safe for concurrent use.
type Registration struct {
	registry *Registry
	opts     registerOptions
	tel      registrationTelemetry
	dir, id  string

	mu       sync.Mutex
	instance Instance // as the node has it, or will have it
	changes  []*pendingChange
	closed   bool
	wake     chan struct{} // has room for one: changes wait

	ctx    context.Context
	cancel context.CancelFunc
	tasks  background.Tasks
	first  chan struct{} // closed when the instance is registered, or err is set
	listed sync.Once
	err    error // why the registration has ended; read it after ended
	ended  chan struct{}

	// Of the goroutine alone.
	data    []byte // the node's, or the next node's
	session int64  // the latest one that has created the node
	node    primitives.Created
	on      *framework.Session // that of node, or nil
	counted bool               // as listed, by tel
}

// pendingChange is one change that waits.
type pendingChange struct {
	apply func(*Instance)
	done  chan struct{}
	err   error // valid after done
}

// Register registers an instance and returns once it is listed. The registration survives lost sessions and a deleted node: it registers the instance again in its last state, with the
// changes of others, and replaces its own node of a former session at once. If another session's node has the same id, Register waits a session timeout and a half for its end, and then
// returns ErrTaken.
//
// The error wraps ErrInvalid, ErrOption, ErrTaken, framework.ErrClosed or framework.ErrNoAuth, or is that of ctx. Then the instance does not stay registered.
func (r *Registry) Register(ctx context.Context, i Instance, opts ...RegisterOption) (*Registration, error) {
	i = i.cloneInstance()
	if i.ID == "" {
		i.ID = uuid.NewString()
	}
	if i.Weight == 0 {
		i.Weight = 1
	}
	if i.Registered.IsZero() {
		i.Registered = time.Now()
	}
	o, err := recipe.ApplyOptions(registerOptions{linger: 2 * time.Second}, opts)
	if err == nil {
		err = i.checkFields()
	}
	if r.err != nil {
		err = r.err
	}
	if err != nil {
		return nil, failure.Wrap("register in", r.base, err)
	}
	if o.health != nil {
		i.Disabled = unhealthy + "not checked yet"
	}
	g := &Registration{registry: r, opts: o, tel: newRegistrationTelemetry(r.client), dir: r.serviceDir(i.Service), id: i.ID, instance: i, wake: make(chan struct{}, 1), first: make(chan struct{}), ended: make(chan struct{}), data: encodeInstance(i, nil)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.tasks.Start(g.keepOnSessions)
	if o.health != nil {
		g.tasks.Start(g.checkHealth)
	}
	select {
	case <-g.first:
		return g, nil
	case <-g.ended:
		g.cancel()
		<-g.tasks.Done()
		return nil, failure.Wrap("register", g.nodePath(), g.err)
	case <-ctx.Done():
		g.cancel()
		<-g.tasks.Done()
		return nil, failure.Wrap("register", g.nodePath(), failure.Ended(ctx))
	}
}

func (g *Registration) nodePath() string { return znode.Join(g.dir, g.id) }

// Instance is the instance as it was registered or changed last, by this process or by others.
func (g *Registration) Instance() Instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.instance.cloneInstance()
}

// Done is closed when the registration has ended.
func (g *Registration) Done() <-chan struct{} { return g.ended }

// Err is why the registration has ended, or nil while it lasts.
func (g *Registration) Err() error {
	select {
	case <-g.ended:
		return failure.Wrap("register", g.nodePath(), g.err)
	default:
		return nil
	}
}

// Update changes the instance, but not its service and id, and returns when the servers have the change. When ctx ends before, the change may still be made.
func (g *Registration) Update(ctx context.Context, apply func(*Instance)) error {
	one := &pendingChange{done: make(chan struct{}), apply: func(i *Instance) {
		service, id := i.Service, i.ID
		next := i.cloneInstance()
		apply(&next)
		next.Service, next.ID = service, id
		*i = next
	}}
	g.mu.Lock()
	probe := g.instance.cloneInstance()
	one.apply(&probe)
	err := probe.checkFields()
	if g.closed {
		err = ErrClosed
	}
	if err != nil {
		g.mu.Unlock()
		return failure.Wrap("update", g.nodePath(), err)
	}
	g.changes = append(g.changes, one)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	select {
	case <-one.done:
		return failure.Wrap("update", g.nodePath(), one.err)
	case <-g.ended:
		return failure.Wrap("update", g.nodePath(), g.err)
	case <-ctx.Done():
		return failure.Wrap("update", g.nodePath(), failure.Ended(ctx))
	}
}

// Disable takes the instance out of the pools with a reason. It stays registered.
func (g *Registration) Disable(ctx context.Context, reason string) error {
	if reason == "" {
		reason = "disabled"
	}
	return g.Update(ctx, func(i *Instance) { i.Disabled = reason })
}

// Enable undoes Disable.
func (g *Registration) Enable(ctx context.Context) error {
	return g.Update(ctx, func(i *Instance) { i.Disabled = "" })
}

// Drain ends the registration so that no call fails: it disables the instance, waits for the time of WithLinger, in which pools notice, and closes. Stop serving when it has returned and
// the calls under way have ended.
func (g *Registration) Drain(ctx context.Context) error {
	if err := g.Disable(ctx, "draining"); err != nil {
		return err
	}
	if err := recipe.Pause(ctx, g.opts.linger); err != nil {
		return failure.Wrap("drain", g.nodePath(), err)
	}
	return g.Close(ctx)
}

// Close unregisters the instance, and waits until its node is gone, as long as ctx.
func (g *Registration) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	select {
	case <-g.tasks.Done():
		return nil
	case <-ctx.Done():
		return failure.Wrap("close", g.nodePath(), failure.Ended(ctx))
	}
}

// keepOnSessions keeps the instance registered on session after session.
func (g *Registration) keepOnSessions() {
	defer close(g.ended)
	err := recipe.OnSession(g.ctx, g.registry.client, g.keepRegistered, failure.IsTransient, isUnknown)
	if g.on != nil && g.on.Err() == nil {
		<-g.on.Primitives().DiscardOwn(nil, g.node).Done()
	}
	if g.ctx.Err() != nil {
		err = ErrClosed
	}
	g.err = err
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, one := range g.changes {
		one.err = err
		close(one.done)
	}
	g.changes = nil
}

// keepRegistered registers the instance on a session, makes the waiting changes, reads the changes of others, and registers the instance again after its node was deleted.
func (g *Registration) keepRegistered(s *framework.Session) error {
	defer g.countListed(false)
	for {
		if err := g.createNode(s); err != nil {
			return err
		}
		g.countListed(true)
		data, st, w, err := s.WatchData(g.ctx, g.nodePath())
		if errors.Is(err, framework.ErrNoNode) {
			g.on = nil
			continue
		}
		if err != nil {
			return err
		}
		if st.EphemeralOwner != s.ID() { // the node was deleted, and another process has created one of the same name
			w.Stop()
			g.on = nil
			continue
		}
		g.learnData(data)
		g.listed.Do(func() { close(g.first) })
		err = g.makeChanges(s)
		if err == nil {
			_, _, err = recipe.WaitForFirst(g.ctx, s.Context(), recipe.Sources{Watch: w, Signal: g.wake})
		}
		w.Stop()
		if errors.Is(err, ErrNotFound) || errors.Is(err, recipe.ErrAgain) {
			continue // another client has deleted or changed the node
		}
		if err != nil {
			return err
		}
	}
}

// createNode creates the node, unless this session has done so.
func (g *Registration) createNode(s *framework.Session) error {
	for g.on != s {
		g.countListed(false)
		created, err := s.Primitives().CreateProtected(g.ctx, primitives.ProtectedCreate{Dir: g.dir, Name: g.id, Plain: true, Unnumbered: true, Data: g.data})
		if err == nil {
			g.tel.countCreate(g.session == 0)
			g.on, g.node, g.session = s, created.Nodes[0], s.ID()
			return nil
		}
		if !errors.Is(err, framework.ErrNodeExists) {
			return err
		}
		if err := g.replaceFormer(s); err != nil {
			return err
		}
	}
	return nil
}

// countListed counts the instance in the metrics as listed, or as not listed.
func (g *Registration) countListed(listed bool) {
	if listed == g.counted {
		return
	}
	g.counted = listed
	if listed {
		g.tel.addListed(1)
	} else {
		g.tel.addListed(-1)
	}
}

// replaceFormer deletes the node of this registration's former session, after it has read the changes of others there. If the node belongs to another session, which may be a living process's,
// replaceFormer only waits for its end.
func (g *Registration) replaceFormer(s *framework.Session) error {
	data, st, w, err := s.WatchData(g.ctx, g.nodePath())
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	if g.session != 0 && st.EphemeralOwner == g.session {
		g.learnData(data)
		err := s.Delete(g.ctx, g.nodePath(), st.Version)
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrBadVersion) {
			return nil
		}
		return err
	}
	timer := time.NewTimer(s.Timeout() + s.Timeout()/2)
	defer timer.Stop()
	from, _, err := recipe.WaitForFirst(g.ctx, s.Context(), recipe.Sources{Watch: w, Timer: timer.C})
	if from == recipe.Timer && g.session == 0 {
		return ErrTaken
	}
	return err
}

// learnData takes over the node's data. It ignores data that is no instance.
func (g *Registration) learnData(data []byte) {
	i, err := decodeInstance(g.instance.Service, g.id, data)
	if err != nil {
		g.registry.client.Logger().Warn("the node of a registered instance was overwritten with what is none", "path", g.nodePath(), "error", err)
		return
	}
	g.data = data
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instance = i
}

// makeChanges makes the waiting changes. It repeats a change without an answer on the instance's new state.
func (g *Registration) makeChanges(s *framework.Session) error {
	for {
		g.mu.Lock()
		if len(g.changes) == 0 {
			g.mu.Unlock()
			return nil
		}
		one := g.changes[0]
		g.mu.Unlock()
		i, data, err := writeChange(g.ctx, s, g.dir, g.instance.Service, g.id, s.ID(), one.apply)
		if err != nil && !errors.Is(err, ErrInvalid) {
			return err
		}
		g.mu.Lock()
		if err == nil {
			g.instance, g.data = i, data
		}
		g.changes = g.changes[1:]
		g.mu.Unlock()
		one.err = err
		close(one.done)
	}
}

// checkHealth disables and enables the instance by its check.
func (g *Registration) checkHealth() {
	for {
		ctx, cancel := context.WithTimeout(g.ctx, g.opts.every)
		err := g.opts.health(ctx)
		cancel()
		if g.ctx.Err() != nil {
			return
		}
		g.tel.countCheck(err)
		present := g.Instance().Disabled
		switch {
		case err == nil && strings.HasPrefix(present, unhealthy), err != nil && present == "":
			_ = g.Update(g.ctx, func(i *Instance) {
				switch { // an operator may have disabled it meanwhile
				case err == nil && strings.HasPrefix(i.Disabled, unhealthy):
					i.Disabled = ""
				case err != nil && i.Disabled == "":
					i.Disabled = unhealthy + err.Error()
				}
			})
		}
		if recipe.Pause(g.ctx, g.opts.every) != nil {
			return
		}
	}
}
