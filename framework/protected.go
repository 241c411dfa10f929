package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// ProtectedPrefix begins the name of every protected node; a UUID and a dash follow it, as Curator's
// clients write and read it.
const ProtectedPrefix = "_c_"

// protection is what a protected node's name has beside its own: prefix, UUID, dash, slash and number.
const protection = len(ProtectedPrefix) + 36 + 1 + 1 + 11

// CreateProtected creates an ephemeral sequential node name# in dir, and dir where it is missing.
//
// Guarantee: exactly one node stays when the error is nil and, in the end, none otherwise. The node is
// named with a UUID, so that it is found when the reply is lost; a create whose caller has given up
// is finished and undone in the background, until the node is gone or the session has ended.
// The algorithm is Curator's protected mode, with a sync before the look-up: another server may
// not have seen the create yet (the gap of CURATOR-62, 79 and 205).
func (s *Session) CreateProtected(ctx context.Context, dir, name string, data []byte) (Created, error) {
	p, err := s.protect(ctx, dir, name, data)
	if err == nil {
		err = p.wait(ctx)
	}
	if err != nil {
		return Created{}, Wrap("create", dir, err)
	}
	return p.created[0], nil
}

// CreateProtectedAndList is CreateProtected, with a list of dir that travels right behind the create
// and costs no time of its own. It is nil when it has to be asked for again: dir was missing or the
// connection was lost.
func (s *Session) CreateProtectedAndList(ctx context.Context, dir, name string, data []byte) (Created, []string, error) {
	p, err := s.protect(ctx, dir, name, data)
	var names []string
	if err == nil {
		names = p.list(ctx)
		err = p.wait(ctx)
	}
	if err != nil {
		return Created{}, nil, Wrap("create", dir, err)
	}
	return p.created[0], names, nil
}

// protect begins a protected create in the background.
func (s *Session) protect(ctx context.Context, dir, name string, data []byte) (*protected, error) {
	if _, err := s.check(dir, len(data)+len(name)+protection); err != nil {
		return nil, err
	}
	p := &protected{s: s, dir: dir, data: bytes.Clone(data), written: make(chan struct{})}
	p.prefix = ProtectedPrefix + uuid.NewString() + "-" + name
	p.attempt = p.createOne
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// start runs the create in the background once the session is connected.
func (p *protected) start(ctx context.Context) error {
	if err := p.s.await(ctx); err != nil {
		return err
	}
	p.done = make(chan error, 1)
	if !p.s.tasks.start(p.run) {
		return context.Cause(p.s.ctx)
	}
	return nil
}

// protected is one protected create.
type protected struct {
	s       *Session
	dir     string
	prefix  string
	exact   bool // the prefix is the whole name
	data    []byte
	attempt func() ([]Created, error) // creates once; ErrSuspended when the outcome is unknown
	done    chan error                // the outcome
	written chan struct{}             // closed when the first try has left

	once    sync.Once
	mu      sync.Mutex
	left    bool // the caller has given up
	settled bool
	created []Created
}

// wait waits for the outcome.
func (p *protected) wait(ctx context.Context) error {
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return p.leave(Ended(ctx))
	}
}

// list lists behind the create on the wire; nil when it could not.
func (p *protected) list(ctx context.Context) []string {
	select {
	case <-p.written:
	case err := <-p.done:
		p.done <- err // for wait
		return nil
	case <-ctx.Done():
		return nil
	}
	full := p.s.client.ns.full(p.dir)
	names, _ := call(ctx, p.s, func(z *zkConn) ([]string, error) { // what could not be listed is asked for again
		names, _, err := z.children(full, false)
		return names, err
	})
	return names
}

// leave gives the create up; what it has created or will create is deleted.
func (p *protected) leave(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.settled {
		p.undo()
	}
	return cause
}

// settle tells the outcome, or undoes it if nobody waits any more.
func (p *protected) settle(c []Created, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled, p.created = true, c
	p.done <- err
	if p.left {
		p.undo()
	}
}

// undo deletes what was created.
func (p *protected) undo() {
	if len(p.created) == 0 {
		return
	}
	if p.exact {
		p.s.DiscardOwn(nil, p.created[0])
		return
	}
	paths := make([]string, len(p.created))
	for i, c := range p.created {
		paths[i] = c.Path
	}
	p.s.Discard(paths...)
}

func (p *protected) abandoned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// run creates the node until the outcome is known. It lasts as long as the session, not its caller.
func (p *protected) run() {
	c, err := p.try()
	back := newRetries(p.s.client.cfg)
	for err != nil && !p.abandoned() {
		switch {
		case errors.Is(err, ErrNoNode):
			if err := p.s.MakeDirs(p.s.ctx, p.dir); err != nil {
				p.settle(nil, err)
				return
			}
		case errors.Is(err, errNotCreated):
			if err := back.Pause(p.s.ctx); err != nil {
				p.settle(nil, context.Cause(p.s.ctx))
				return
			}
		default:
			p.settle(nil, err)
			return
		}
		c, err = p.try()
	}
	p.settle(c, err)
}

var errNotCreated = errors.New("the node was not created")

// try creates once and finds out whether it was done. It returns errNotCreated when the connection was
// lost before that.
func (p *protected) try() ([]Created, error) {
	if err := p.s.await(p.s.ctx); err != nil {
		return nil, err
	}
	c, err := p.attempt()
	if errors.Is(err, ErrSuspended) {
		return p.find()
	}
	return c, err
}

// createOne creates the one node of a create without company.
func (p *protected) createOne() ([]Created, error) {
	full := p.s.client.ns.full(Join(p.dir, p.prefix))
	t := p.s.mon.Trace(int32(wire.OpCreate), full, func() { p.once.Do(func() { close(p.written) }) })
	defer t.Forget()
	got, err := p.s.zk.create(full, p.data, EphemeralSequential, p.s.client.cfg.ACL)
	if err != nil {
		return nil, err
	}
	if r := t.Reply(); r != nil && r.SessionID == p.s.ID() {
		return []Created{{Path: p.s.client.ns.rel(got), Zxid: r.Zxid}}, nil
	}
	return nil, ErrSuspended
}

// find looks the nodes up by their UUID, behind a sync, and checks that they are this session's.
func (p *protected) find() ([]Created, error) {
	names, err := p.look()
	if errors.Is(err, ErrNoNode) {
		return nil, errNotCreated
	}
	if err != nil {
		return nil, err
	}
	var found []Created
	for _, name := range names {
		if !strings.HasPrefix(name, p.prefix) {
			continue
		}
		path := Join(p.dir, name)
		st, err := p.s.Exists(p.s.ctx, path)
		switch {
		case errors.Is(err, ErrNoNode):
			continue
		case err != nil:
			return nil, err
		case st.EphemeralOwner != p.s.ID() && p.exact:
			return nil, ErrNodeExists
		case st.EphemeralOwner != p.s.ID():
			return nil, fmt.Errorf("%w: %s belongs to another session", ErrSessionLost, path)
		}
		found = append(found, Created{Path: path, Zxid: st.Czxid})
	}
	if len(found) == 0 {
		return nil, errNotCreated
	}
	return found, nil
}

func (p *protected) look() ([]string, error) {
	if err := p.s.Sync(p.s.ctx, p.dir); err != nil {
		return nil, err
	}
	if p.exact {
		return []string{p.prefix}, nil
	}
	names, _, err := p.s.Children(p.s.ctx, p.dir)
	return names, err
}
