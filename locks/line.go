package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Line is a waiting line: ephemeral sequential nodes below one directory, served in the order of their
// numbers. It is what mutexes and elections are made of.
//
// The algorithm is the lock recipe of ZooKeeper's documentation, without its herd, with Curator's
// protected create, and with a look ahead (see contender.turn).
type Line struct {
	client *framework.Client
	name   string // the lock's path
	path   string // the line's directory: the same, but for a semaphore's
	company
	data    []byte
	queued  func(ahead int)
	label   string // what telemetry calls the lock
	maxHold time.Duration
	reentry bool
	onWrite bool // a release returns once it is written
	tel     telemetry
	lone    lone
	slice   *slice // of WithLocalSlice, or nil
	err     error  // of the arguments
}

// NewLine returns a line at path. Nothing is created before the first Acquire. An argument that
// cannot be used makes every call return an error that says so.
func NewLine(client *framework.Client, path string, kind Kind, opts ...Option) *Line {
	l := newLine(client, path, "", kind, opts...)
	l.without(l.slice != nil, "WithLocalSlice is for mutexes")
	l.without(l.kazoo && kind == LatchKind, "WithKazoo is for mutexes and read-write locks")
	return l
}

// without refuses an option that this kind of lock has no use for.
func (l *Line) without(given bool, reason string) {
	if given && l.err == nil {
		l.err = errors.New(reason)
	}
}

// newLine returns a line in a directory below path, or at path.
func newLine(client *framework.Client, path, below string, kind Kind, opts ...Option) *Line {
	l := &Line{client: client, name: path, path: path, company: company{kind: kind}, label: labels[kind]}
	if l.err = l.check(); l.err == nil {
		l.tel = newTelemetry(client)
		if below != "" {
			l.path = framework.Join(path, below)
		}
	}
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(l); err != nil && l.err == nil {
			l.err = err
		}
	}
	return l
}

func (l *Line) check() error {
	if l.client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(l.path); err != nil {
		return err
	}
	if !slices.Contains(ownKinds, l.kind) {
		return fmt.Errorf("a line of kind %q: the kinds are %q", l.kind, ownKinds)
	}
	if l.path == "/" {
		return fmt.Errorf("%w %q: the root cannot be a lock", framework.ErrInvalidPath, l.path)
	}
	full := framework.Join(l.client.Config().Root, strings.TrimPrefix(l.path, "/"))
	if full == serversOwn || strings.HasPrefix(full, serversOwn+"/") {
		return fmt.Errorf("%w %q: what lies below %s belongs to the servers", framework.ErrInvalidPath, l.path, serversOwn)
	}
	return nil
}

// serversOwn is where the servers keep their configuration and quotas.
const serversOwn = "/zookeeper"

// Path is the line's directory.
func (l *Line) Path() string { return l.path }

// Acquire waits in line until it is granted. A suspended connection keeps its place; a lost session
// makes it queue again, at the end. Its errors: that of ctx, when that ended the wait; one that wraps
// framework.ErrClosed or framework.ErrNoAuth; ErrKindMixed; ErrHeld or ErrUpgrade. No node is left
// behind then.
func (l *Line) Acquire(ctx context.Context) (*Lease, error) {
	return l.ask(ctx, "acquire", l.wait)
}

// TryAcquire is granted at once or returns an error that wraps ErrNotAcquired. It waits for a session,
// though, and for the servers' answers, until ctx ends.
func (l *Line) TryAcquire(ctx context.Context) (*Lease, error) {
	return l.ask(ctx, "try", l.try)
}

// grantor is one way to be granted on a session.
type grantor func(context.Context, *framework.Session) (*Lease, error)

// ask asks for a lease, under the one that ctx belongs to if there is one.
func (l *Line) ask(ctx context.Context, op string, grant grantor) (lease *Lease, err error) {
	if l.err != nil {
		return nil, framework.Wrap(op, l.name, l.err)
	}
	ctx, end := l.trace(ctx, op)
	defer func() { end(lease, err) }()
	if outer := heldIn(ctx, l); outer != nil {
		lease, err = l.under(ctx, outer)
		return lease, framework.Wrap(op, l.name, err)
	}
	return l.each(ctx, op, grant)
}

// each asks on session after session.
func (l *Line) each(ctx context.Context, op string, grant grantor) (*Lease, error) {
	lost := lossPauses{retries: l.client.Retries()}
	for {
		began := time.Now()
		s, err := l.client.Session(ctx)
		if err != nil {
			return nil, framework.Wrap(op, l.name, err)
		}
		lease, err := grant(ctx, s)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			err = framework.Ended(ctx)
		case errors.Is(err, framework.ErrSessionLost):
			continue
		case errors.Is(err, errPlaceLost):
			if lost.wait(ctx, began) == nil {
				continue
			}
			err = framework.Ended(ctx)
		}
		return nil, framework.Wrap(op, l.name, err)
	}
}

// lossPauses are the pauses before an ask is repeated that has lost its place, or a lease that it was granted. The first loss of a series is repeated at
// once, such as that of a candidate that a transfer has passed over. Later ones wait: somebody goes on deleting nodes.
type lossPauses struct {
	retries *framework.Retries
	losses  int // of the series
}

// lostOften is how long an ask must have lasted for its loss to begin a new series.
const lostOften = 10 * time.Second

// wait waits before the ask is repeated that began at this time. It returns an error when ctx ends first.
func (p *lossPauses) wait(ctx context.Context, began time.Time) error {
	if time.Since(began) > lostOften {
		p.losses = 0
		p.retries.Reset()
	}
	if p.losses++; p.losses == 1 {
		return nil
	}
	return p.retries.Pause(ctx)
}

// errPlaceLost says that somebody deleted a waiter's node.
var errPlaceLost = errors.New("the waiter's node was deleted")

// wait joins the line, waits for its turn and takes the lease.
func (l *Line) wait(ctx context.Context, s *framework.Session) (*Lease, error) {
	return l.admitted(ctx, s, l.stand, l.grant)
}

// try takes the lease if nobody is there that it would have to wait for.
func (l *Line) try(ctx context.Context, s *framework.Session) (*Lease, error) {
	return l.admitted(ctx, s, l.step, l.grant)
}

// admitted takes what a contender may take once it has passed. A contender that fails leaves no
// node behind.
func (l *Line) admitted(ctx context.Context, s *framework.Session,
	pass func(context.Context, *contender) error, take func(context.Context, *contender) (*Lease, error)) (*Lease, error) {
	c := newContender(l, s)
	granted := false
	defer func() { // whatever happens, be it a panic of the user's function
		if !granted {
			c.giveUp()
		}
	}()
	if err := pass(ctx, c); err != nil {
		return nil, err
	}
	lease, err := take(ctx, c)
	granted = err == nil
	return lease, err
}

// stand joins the line and waits for the contender's turn.
func (l *Line) stand(ctx context.Context, c *contender) error {
	v, err := c.join(ctx)
	if err == nil && l.queued != nil {
		v, err = c.announce(ctx, v)
	}
	if err != nil {
		return err
	}
	return c.turn(ctx, v)
}

// step joins the line if it will not have to wait.
func (l *Line) step(ctx context.Context, c *contender) error {
	names, _, err := c.s.Children(ctx, l.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if err := l.vacant(names); err != nil {
		return err
	}
	v, err := c.join(ctx)
	if err == nil && !v.mine && c.row.standing(c) != passed {
		v, err = c.look(ctx) // a reader right behind another of its row may pass before that one knows
	}
	if err == nil && !c.passes(v) {
		err = ErrNotAcquired
	}
	return err
}

// vacant tells with ErrNotAcquired that there is somebody whom a newcomer would have to wait for.
func (l *Line) vacant(names []string) error {
	var taken error
	err := each(names, l.company, func(p place) {
		if !p.kind.shared() || !l.kind.shared() {
			taken = ErrNotAcquired
		}
	})
	if err != nil {
		return err
	}
	return taken
}

// grant makes the lease, if the session still stands.
func (l *Line) grant(ctx context.Context, c *contender) (*Lease, error) {
	return l.lease(ctx, c, c.node.Zxid)
}

func (l *Line) lease(ctx context.Context, c *contender, token int64) (*Lease, error) {
	lease := &Lease{path: l.name, kind: l.kind, node: c.node.Path, token: token, session: c.s, key: heldKey{l.client, l.path},
		contender: c, back: c.giveBack}
	if err := lease.holds(ctx, c.node.Path); err != nil {
		return nil, err
	}
	return lease.start(l.maxHold), nil
}

// discard gives nodes back. queued is called once their deletion is in the connection's queue; may be
// nil.
func (l *Line) discard(s *framework.Session, early bool, queued func(), nodes ...string) (returned, *framework.Discarded) {
	return l.giving(early, queued, func(queued func()) *framework.Discarded { return s.DiscardThen(queued, nodes...) })
}

// giving gives back by discard, and has it told when that is in the connection's queue, if anybody is to
// wait for it.
func (l *Line) giving(early bool, queued func(), discard func(queued func()) *framework.Discarded) (returned, *framework.Discarded) {
	if !l.onWrite && !early {
		d := discard(queued)
		return returned{gone: d.Done()}, d
	}
	written := make(chan struct{})
	d := discard(func() {
		if queued != nil {
			queued()
		}
		close(written)
	})
	return returned{written: written, gone: d.Done()}, d
}
