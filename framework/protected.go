package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/link"
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
	p, err := s.protect(dir, name, data)
	if err != nil {
		return Created{}, Wrap("create", dir, err)
	}
	created, err := p.create(ctx)
	if err != nil {
		return Created{}, Wrap("create", dir, err)
	}
	return created[0], nil
}

// CreateProtectedAndList is CreateProtected, with a list of dir that travels right behind the create
// and costs no time of its own. It is nil when it has to be asked for again: dir was missing or the
// connection was lost.
func (s *Session) CreateProtectedAndList(ctx context.Context, dir, name string, data []byte) (Created, []string, error) {
	p, err := s.protect(dir, name, data)
	if err != nil {
		return Created{}, nil, Wrap("create", dir, err)
	}
	var names []string
	p.listed = make(chan struct{})
	p.behind = &link.Call{Op: wire.OpGetChildren2, Body: &wire.WatchRequest{Path: s.client.ns.full(dir)}, Done: func(r link.Reply) {
		names = answer(r, readNames).v.names
		close(p.listed)
	}}
	created, err := p.create(ctx)
	if err != nil {
		return Created{}, nil, Wrap("create", dir, err)
	}
	select {
	case <-p.listed:
		return created[0], names, nil
	default: // the caller's context has ended
		return created[0], nil, nil
	}
}

// protect prepares a protected create of one node.
func (s *Session) protect(dir, name string, data []byte) (*protected, error) {
	if _, err := s.check(dir, len(data)+len(name)+protection); err != nil {
		return nil, err
	}
	p := &protected{s: s, dir: dir, prefix: ProtectedPrefix + uuid.NewString() + "-" + name}
	path := Join(dir, p.prefix)
	full := s.client.ns.full(path)
	data = bytes.Clone(data) // a try may outlive this call
	p.ops = []Op{{name: opCreate, path: path, mode: EphemeralSequential}}
	p.attempt = func() (*link.Call, flight[[]Created], error) {
		op, body := createRequest(full, data, EphemeralSequential, s.client.cfg.ACL)
		call, f := p.request(op, body, func(d *wire.Decoder) ([]string, error) { return []string{d.String()}, nil })
		return call, f, nil
	}
	return p, nil
}

// protected is one protected create.
type protected struct {
	s       *Session
	dir     string
	prefix  string
	exact   bool // the prefix is the whole name
	attempt func() (*link.Call, flight[[]Created], error)
	done    chan error // the outcome, in the background

	ops      []Op // what a try does
	reserved int  // bytes, in the session's owned
	unsure   bool // a try may have created what was not found

	behind *link.Call    // a list, sent with the first try, or nil
	listed chan struct{} // closed when it was answered

	mu      sync.Mutex
	left    bool // the caller has given up
	settled bool
	created []Created
}

// create creates the nodes. Its first try is the caller's own; whatever does not succeed at once goes on in
// the background.
func (p *protected) create(ctx context.Context) ([]Created, error) {
	if err := p.s.await(ctx); err != nil {
		return nil, err
	}
	created, deleted := p.s.owned.sizes(p.ops)
	if err := p.s.owned.reserve(ctx, created, deleted); err != nil {
		return nil, err
	}
	p.reserved = created
	first := p.launch()
	p.listAnswered(ctx)
	select {
	case o := <-first:
		if o.err == nil {
			p.count(o.v, nil)
			return o.v, nil
		}
		first <- o
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
	p.done = make(chan error, 1)
	if !p.s.tasks.start(func() { p.run(first) }) {
		return nil, context.Cause(p.s.ctx)
	}
	return p.wait(ctx)
}

// listAnswered waits for the answer behind that of the first try, if there will be one: both wake the caller
// once.
func (p *protected) listAnswered(ctx context.Context) {
	if p.listed == nil {
		return
	}
	select {
	case <-p.listed:
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
}

// launch sends one try.
func (p *protected) launch() flight[[]Created] {
	call, f, err := p.attempt()
	if err != nil {
		if p.behind != nil {
			p.listed = nil // nothing was sent that could be answered
		}
		f = make(flight[[]Created], 1)
		f <- outcome[[]Created]{err: err}
		return f
	}
	if p.behind == nil {
		p.s.mon.Offer(call)
		return f
	}
	p.s.mon.Offer(call, p.behind)
	p.behind = nil
	return f
}

// request prepares a try. made reads the paths of the nodes that were created.
func (p *protected) request(op wire.Op, body wire.Request, made func(*wire.Decoder) ([]string, error)) (*link.Call, flight[[]Created]) {
	f := make(flight[[]Created], 1)
	return &link.Call{Op: op, Body: body, Done: func(r link.Reply) {
		created, err := p.read(r, made)
		f <- outcome[[]Created]{v: created, err: err}
	}}, f
}

func (p *protected) read(r link.Reply, made func(*wire.Decoder) ([]string, error)) ([]Created, error) {
	var refusal error
	o := answer(r, func(d *wire.Decoder) (paths []string) {
		paths, refusal = made(d)
		return paths
	})
	switch {
	case o.err != nil:
		return nil, o.err
	case refusal != nil:
		return nil, refusal
	case r.SessionID != p.s.ID():
		return nil, ErrSuspended // whose they are is looked up
	}
	created := make([]Created, len(o.v))
	for i, path := range o.v {
		created[i] = Created{Path: p.s.client.ns.rel(path), Zxid: r.Zxid}
	}
	return created, nil
}

// wait waits for the outcome of what goes on in the background.
func (p *protected) wait(ctx context.Context) ([]Created, error) {
	select {
	case err := <-p.done:
		return p.created, err
	case <-ctx.Done():
		return nil, p.leave(Ended(ctx))
	}
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
	p.count(c, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled, p.created = true, c
	p.done <- err
	if p.left {
		p.undo()
	}
}

// count tells the session's owned nodes the outcome.
func (p *protected) count(c []Created, err error) {
	owned := &p.s.owned
	switch {
	case err == nil:
		rs := make([]OpResult, len(p.ops))
		for i, op := range p.ops {
			rs[i].Path = p.s.client.ns.full(op.path)
			if i < len(c) {
				rs[i].Path = p.s.client.ns.full(c[i].Path)
			}
		}
		owned.happened(p.reserved, p.ops, rs)
	case p.unsure:
		owned.mayHaveHappened(p.reserved, p.ops)
	default:
		owned.settle(p.reserved, 0)
	}
	p.reserved = 0
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

// run creates the nodes until the outcome is known, after a first try. It lasts as long as the session, not
// its caller.
func (p *protected) run(first flight[[]Created]) {
	c, err := p.conclude(first)
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

// try creates once and finds out whether it was done.
func (p *protected) try() ([]Created, error) {
	if err := p.s.await(p.s.ctx); err != nil {
		return nil, err
	}
	return p.conclude(p.launch())
}

// conclude waits for a try's outcome, and finds it out when the connection was lost before. It returns
// errNotCreated when nothing was done.
func (p *protected) conclude(f flight[[]Created]) ([]Created, error) {
	o := wait(p.s.ctx, p.s, f)
	if refusedUnseen(o.err) {
		return nil, errNotCreated
	}
	if errors.Is(o.err, ErrSuspended) {
		found, err := p.find()
		p.unsure = err != nil && !errors.Is(err, errNotCreated)
		return found, err
	}
	return o.v, o.err
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
