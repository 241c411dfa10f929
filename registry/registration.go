package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Registration is an instance that this process has registered. It lasts until Close, until the
// client is closed, or until the servers refuse the client's credentials; see Done and Err. While
// the servers refuse to register the instance again, because permission is missing or a quota is
// used up, the registration tries again with pauses and logs a warning each time. It is safe for
// concurrent use.
type Registration struct {
	registry *Registry
	opts     registerOptions
	tel      registrationTelemetry
	dir, id  string

	mu       sync.Mutex
	instance Instance         // as the node has it, or the next node will have it
	changes  []*pendingChange // in the order of the calls of Update
	closed   bool
	wake     chan struct{} // holds one value while changes may wait

	ctx        context.Context
	cancel     context.CancelFunc
	tasks      background.Tasks
	listed     chan struct{} // closed when the instance is registered for the first time
	listedOnce sync.Once     // closes listed
	err        error         // why the registration has ended; read it after ended
	ended      chan struct{}

	deletion recipe.LastDeletion // of the node, once the registration has ended

	// Used only by the goroutine of keepOnSessions.
	data            []byte              // of the node, or for the next node
	lastOwner       framework.SessionID // the id of the session that last created the node
	node            primitives.Created  // the node that nodeSession has created
	nodeSession     *framework.Session  // nil if the node was deleted or not created yet
	countedAsListed bool
}

// pendingChange is a call of Update that waits for the servers.
type pendingChange struct {
	apply func(*Instance)
	done  chan struct{}
	err   error // valid after done is closed
}

// Register registers an instance and returns once it is listed. The registration survives lost
// sessions and a deleted node: it registers the instance again in its last known state, with the
// changes of other clients, and replaces its own node of a former session at once. If a node of
// another registration has the same id, Register waits one and a half session timeouts for its end,
// and then returns ErrIDInUse. Register an id once with a client: a second registration with the
// same id and client may take the first one's node for its own when a reply is lost.
//
// The error wraps framework.ErrInvalid, ErrIDInUse, framework.ErrClosed, framework.ErrAuthFailed,
// framework.ErrNoAuth, framework.ErrQuotaExceeded or framework.ErrTooLarge, or is that of ctx. Then
// the instance does not stay registered: if a create is under way or has created the node, the node
// is deleted in the background. While the connection is lost, that may last until the session ends.
func (r *Registry) Register(ctx context.Context, i Instance, opts ...RegisterOption) (*Registration, error) {
	i = i.prepare()
	o, err := recipe.ApplyOptions(registerOptions{linger: 2 * time.Second}, opts)
	if err == nil {
		err = i.checkOwn()
	}
	if r.err != nil {
		err = r.err
	}
	if err != nil {
		return nil, failure.Wrap("register in", r.base, err)
	}
	disabledByCheck := ""
	if o.health != nil && i.Disabled == "" {
		disabledByCheck = unhealthy + "not checked yet"
		i.Disabled = disabledByCheck
	}
	g := &Registration{registry: r, opts: o, tel: newRegistrationTelemetry(r.client), dir: r.serviceDir(i.Service),
		id: i.ID, instance: i, wake: make(chan struct{}, 1), listed: make(chan struct{}), ended: make(chan struct{}),
		data: encodeInstance(i, nil)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.tasks.Start(g.keepOnSessions)
	if o.health != nil {
		g.tasks.Start(func() { g.checkHealth(disabledByCheck) })
	}
	select {
	case <-g.listed:
		return g, nil
	case <-g.ended:
		err = g.err
	case <-ctx.Done():
		err = failure.Ended(ctx)
	}
	g.cancel()
	return nil, failure.Wrap("register", g.nodePath(), err)
}

func (g *Registration) nodePath() string { return znode.Join(g.dir, g.id) }

// Instance returns the instance in its last known state: as it was registered, with the changes of
// Update and those of other clients that this process has read.
func (g *Registration) Instance() Instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.instance.cloneInstance()
}

// Done returns a channel that is closed when the registration has ended: after Close, when the
// client is closed, or after an error that Err returns.
func (g *Registration) Done() <-chan struct{} { return g.ended }

// Err returns why the registration has ended, or nil while it lasts.
func (g *Registration) Err() error {
	select {
	case <-g.ended:
		return failure.Wrap("register", g.nodePath(), g.err)
	default:
		return nil
	}
}

// Update applies a change to the instance, except to its service and id, and returns when the
// servers have the changed instance. apply may be called several times, each time with the
// instance's present state, also after a reply to a write was lost: set values in it, do not add to
// them. It may call Instance, Done and Err, and no other methods of the registration. If the first
// call of apply panics, there is no change.
//
// The error wraps framework.ErrInvalid, framework.ErrTooLarge, framework.ErrQuotaExceeded or
// framework.ErrNoAuth if the change is refused, or if the instance cannot be registered again at
// present: the registration goes on without the change. Otherwise it wraps framework.ErrClosed or
// the error that ended the registration, or is that of ctx; then the change may still be made.
func (g *Registration) Update(ctx context.Context, apply func(*Instance)) error {
	one := &pendingChange{done: make(chan struct{}), apply: func(i *Instance) {
		service, id := i.Service, i.ID
		next := i.cloneInstance()
		apply(&next)
		next.Service, next.ID = service, id
		*i = next
	}}
	probe := g.Instance()
	one.apply(&probe) // without the mutex: it may panic
	err := probe.checkOwn()
	g.mu.Lock()
	if g.closed {
		err = errClosed
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

// Disable makes pools stop picking the instance, and stores the reason, by default "disabled". The
// instance stays registered. A health check does not enable it again; WithHealth names the
// exception. The error is as that of Update.
func (g *Registration) Disable(ctx context.Context, reason string) error {
	if reason == "" {
		reason = "disabled"
	}
	return g.Update(ctx, func(i *Instance) { i.Disabled = reason })
}

// Enable enables the instance. The reason for which it was disabled does not matter. A failing
// health check disables it again. The error is as that of Update.
func (g *Registration) Enable(ctx context.Context) error {
	return g.Update(ctx, func(i *Instance) { i.Disabled = "" })
}

// Drain disables the instance, waits for the time of WithLinger, in which pools notice that, and
// closes the registration. Stop serving when Drain has returned and the calls under way have ended:
// then no call fails of pools that have noticed in time.
//
// Drain is a cleanup (framework.Client.CleanupContext): it does all that also if ctx has ended. A
// deadline of ctx that still lies ahead ends the wait, and the registration is closed then. If the
// instance cannot be disabled in time, or because the servers refuse the change or another client
// has overwritten the node with data that is not an instance, Drain closes the registration at
// once, and returns the error of Disable, too. Other errors are as those of Close.
func (g *Registration) Drain(ctx context.Context) error {
	disabling, cancel := g.registry.client.CleanupContext(ctx)
	defer cancel()
	err := g.Disable(disabling, "draining")
	if err == nil {
		linger := g.opts.linger
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > 0 {
			linger = min(linger, time.Until(deadline))
		}
		_ = recipe.Pause(g.ctx, linger) // ends early with the registration
	}
	return errors.Join(err, g.Close(ctx))
}

// Close unregisters the instance. It returns nil when the servers have confirmed that its node is
// gone; else the error wraps framework.ErrUnconfirmed and the reason. It is a cleanup
// (framework.Client.CleanupContext): it also waits if ctx has ended. After that the deletion goes
// on in the background, and Client.Close waits for it. If the session that has created the node is
// lost at that moment, Close does not wait: the servers delete the node when they end the session.
func (g *Registration) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	return failure.Wrap("close", g.nodePath(),
		recipe.FinishCleanup(ctx, g.registry.client, g.tasks.Done(), g.deletion.Err))
}

// keepOnSessions keeps the instance registered, on session after session, until the registration
// ends, and deletes the node then.
func (g *Registration) keepOnSessions() {
	defer close(g.ended)
	err := recipe.OnSession(g.ctx, g.registry.client, g.keepRegistered, failure.IsTransient, isUnknown,
		g.registersAgain)
	if errors.Is(err, framework.ErrAuthFailed) && g.wasListed() { // otherwise Register returns it
		g.registry.client.Logger().Error("the registration of an instance has ended", "path", g.nodePath(), "error",
			err)
	}
	if g.ctx.Err() != nil {
		err = errClosed
	}
	g.err = err
	g.cancel() // ends the health checks, too
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.failChanges(err) // before the deletion, which may last as long as the session
	if g.nodeSession != nil {
		g.deletion.Await(primitives.Of(g.nodeSession).DiscardOwn(nil, g.node))
	}
}

// failChanges ends the waiting changes with an error.
func (g *Registration) failChanges(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.changes {
		one.err = err
		close(one.done)
	}
	g.changes = nil
}

// registersAgain reports whether the registration goes on after an error: the instance was
// registered before, and somebody may grant a missing permission or raise a quota. The waiting
// changes fail with the error, so that their callers need not wait for that.
func (g *Registration) registersAgain(err error) bool {
	if errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) || !g.wasListed() {
		return false
	}
	g.registry.client.Logger().Warn("an instance cannot be kept registered; its process tries again", "path",
		g.nodePath(), "error", err)
	g.failChanges(err)
	return true
}

func (g *Registration) wasListed() bool {
	select {
	case <-g.listed:
		return true
	default:
		return false
	}
}

// keepRegistered registers the instance on a session, makes the waiting changes, reads the changes
// of other clients, and registers the instance again after its node was deleted.
func (g *Registration) keepRegistered(s *framework.Session) error {
	defer g.countListed(false)
	for {
		if err := g.createNode(s); err != nil {
			return err
		}
		g.countListed(true)
		data, stat, w, err := s.WatchData(g.ctx, g.nodePath())
		if errors.Is(err, framework.ErrNoNode) {
			g.nodeSession = nil
			continue
		}
		if err != nil {
			return err
		}
		if stat.EphemeralOwner != s.ID() { // the node was deleted, and another session has created one of the same name
			w.Stop()
			g.nodeSession = nil
			continue
		}
		g.learnData(data)
		g.listedOnce.Do(func() { close(g.listed) })
		err = g.makeChanges(s)
		if err == nil {
			_, _, err = recipe.WaitForFirst(g.ctx, s.Context(), recipe.Sources{Watch: w, Signal: g.wake})
		}
		w.Stop()
		if errors.Is(err, errNotFound) || errors.Is(err, recipe.ErrAgain) {
			continue // another client has deleted or changed the node
		}
		if err != nil {
			return err
		}
	}
}

// createNode creates the node, unless this session has created it and the node was not seen to be
// gone.
func (g *Registration) createNode(s *framework.Session) error {
	for g.nodeSession != s {
		g.countListed(false)
		created, err := primitives.Of(s).CreateProtected(g.ctx,
			primitives.ProtectedCreate{Dir: g.dir, Name: g.id, Plain: true, Unnumbered: true, Data: g.data})
		if err == nil {
			g.tel.countCreate(g.lastOwner == 0)
			g.nodeSession, g.node, g.lastOwner = s, created.Nodes[0], s.ID()
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
	if listed == g.countedAsListed {
		return
	}
	g.countedAsListed = listed
	if listed {
		g.tel.addListed(1)
	} else {
		g.tel.addListed(-1)
	}
}

// replaceFormer deletes the node of this registration's former session, after it has read the
// changes of other clients there. If the node belongs to another session, which may be that of a
// living process, replaceFormer waits one and a half session timeouts for the node's end. It
// returns ErrIDInUse after that time if this registration has never created the node.
func (g *Registration) replaceFormer(s *framework.Session) error {
	data, stat, w, err := s.WatchData(g.ctx, g.nodePath())
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	if g.lastOwner != 0 && stat.EphemeralOwner == g.lastOwner {
		g.learnData(data)
		err := s.Delete(g.ctx, g.nodePath(), stat.Version)
		if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrBadVersion) {
			return nil
		}
		return err
	}
	timer := time.NewTimer(s.Timeout() + s.Timeout()/2)
	defer timer.Stop()
	from, _, err := recipe.WaitForFirst(g.ctx, s.Context(), recipe.Sources{Watch: w, Timer: timer.C})
	if from == recipe.FromTimer && g.lastOwner == 0 {
		return ErrIDInUse
	}
	return err
}

// learnData makes the node's data the registration's latest state. It ignores data that is not a
// valid instance.
func (g *Registration) learnData(data []byte) {
	i, err := decodeInstance(g.instance.Service, g.id, data)
	if err != nil {
		g.registry.client.Logger().Warn(
			"the node of a registered instance was overwritten with data that is not an instance", "path",
			g.nodePath(), "error", err)
		return
	}
	g.data = data
	g.mu.Lock()
	defer g.mu.Unlock()
	g.instance = i
}

// makeChanges makes the waiting changes, one after the other. A change that is refused ends with
// the error, and the instance stays as it is. After an error that makeChanges returns, such as that
// of a write without an answer, the change still waits: the next call applies it to the instance's
// present state.
func (g *Registration) makeChanges(s *framework.Session) error {
	for {
		g.mu.Lock()
		if len(g.changes) == 0 {
			g.mu.Unlock()
			return nil
		}
		one := g.changes[0]
		g.mu.Unlock()
		i, data, err := writeChange(g.ctx, s, g.dir, g.id, s.ID(), one.apply)
		if err != nil && !isRefusal(err) {
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

// isRefusal reports whether a change was refused, by this package or by the servers.
func isRefusal(err error) bool {
	for _, reason := range []error{errInvalid, framework.ErrBadRecord, framework.ErrTooLarge,
		framework.ErrQuotaExceeded, framework.ErrNoAuth} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// checkHealth calls the health check at the interval, and disables and enables the instance by its
// results. disabledByCheck is the reason for which the check has disabled the instance, or "" if it
// has not.
func (g *Registration) checkHealth(disabledByCheck string) {
	warned := "" // the text of the last warning
	for {
		ctx, cancel := context.WithTimeout(g.ctx, g.opts.every)
		err := usercode.Call(g.registry.client.Logger(), failure.ErrPanic, "a health check",
			[]any{"path", g.nodePath()}, func() error { return g.opts.health(ctx) })
		cancel()
		if g.ctx.Err() != nil {
			return
		}
		g.tel.countCheck(err)
		present := g.Instance()
		if present.Disabled == "" {
			disabledByCheck = "" // an operator may have enabled it
		}
		after := present.reasonAfterCheck(err, disabledByCheck)
		if after != present.Disabled {
			// an operator may have changed it meanwhile
			change := func(i *Instance) { i.Disabled = i.reasonAfterCheck(err, disabledByCheck) }
			if err := g.Update(g.ctx, change); err == nil {
				disabledByCheck, warned = after, ""
			} else if g.ctx.Err() == nil && err.Error() != warned {
				warned = err.Error()
				g.registry.client.Logger().Warn(
					"the result of a health check cannot be written; the next check tries again", "path",
					g.nodePath(), "error", err)
			}
		}
		if recipe.Pause(g.ctx, g.opts.every) != nil {
			return
		}
	}
}
