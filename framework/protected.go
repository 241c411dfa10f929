package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// ProtectedPrefix begins the name of every protected node; a UUID and a dash follow it, as Curator's
// clients write and read it.
const ProtectedPrefix = "_c_"

// ProtectedCreate says what Primitives.CreateProtected creates.
type ProtectedCreate struct {
	// Dir is the nodes' directory, which is made where it is missing.
	Dir string
	// Name is their name behind the protection; all have the same UUID.
	Name string
	// Plain leaves the protection out of the name. The caller then makes sure that the session does not create this node elsewhere meanwhile: that
	// the session owns it shows that it was created.
	Plain bool
	// Data is what each node holds.
	Data []byte
	// Count is the number of nodes. Default 1. If it is higher, Mode must be sequential.
	Count int
	// Mode is Ephemeral or EphemeralSequential, which is the default.
	Mode Mode
	// With are other operations of the same transaction: all of it happens, or none.
	With []Op
	// List lists Dir right behind the create, without another round trip.
	List bool
	// Stat, unless it is "", is a node to look at right behind the create, without another round trip. List does not work with it.
	Stat string
}

// ProtectedNodes is what CreateProtected has created and seen.
type ProtectedNodes struct {
	// Nodes are the created nodes.
	Nodes []Created
	// Names is the list that ProtectedCreate.List asks for. It is nil when the caller has to ask again: the directory was missing or the connection was lost.
	Names []string
	// Stat is what ProtectedCreate.Stat asks for. It is nil when the caller has to ask again: the node is missing, the create needed a second try, or the connection was
	// lost.
	Stat *Stat
}

// CreateProtected creates ephemeral nodes, and their directory where it is missing.
//
// Guarantee: exactly these nodes stay when the error is nil and, in the end, none otherwise. They are named with a UUID, so that
// they are found when the reply is lost. If the caller gives up, the create is finished and undone in the background, until the
// nodes are gone or the session has ended. The effect of the other operations of the transaction is not undone. A refusal by one of those is a *TxError whose Index counts
// from Count. Then no operation has happened.
//
// The algorithm is Curator's protected mode, with a sync before the look-up: another server may not have seen the create yet (the gap of CURATOR-62, 79 and 205).
func (p Primitives) CreateProtected(ctx context.Context, c ProtectedCreate) (ProtectedNodes, error) {
	c.Count = max(c.Count, 1)
	if c.Mode == Persistent {
		c.Mode = EphemeralSequential
	}
	create, err := p.s.newProtectedCreate(c)
	if err != nil {
		return ProtectedNodes{}, err
	}
	ns := p.s.transport.ns
	switch {
	case c.Stat != "":
		if _, err := p.s.transport.checkPath(c.Stat, 0); err != nil {
			return ProtectedNodes{}, Wrap("create", c.Stat, err)
		}
		create.sendBehind(wire.OpExists, ns.serverPath(c.Stat), func(r link.Reply) {
			if o := readAnswer(r, readStat); o.err == nil {
				create.stat = &o.v.stat
			}
		})
	case c.List:
		create.sendBehind(wire.OpGetChildren2, ns.serverPath(c.Dir), func(r link.Reply) { create.names = readAnswer(r, readNames).v.names })
	}
	created, err := create.createNodes(ctx)
	if err != nil {
		var refused otherRefusal
		if errors.As(err, &refused) {
			return ProtectedNodes{}, refused.reason
		}
		return ProtectedNodes{}, Wrap("create", c.Dir, err)
	}
	if create.tries > 1 && c.Stat != "" { // it was read before the nodes were created
		return ProtectedNodes{Nodes: created}, nil
	}
	select {
	case <-create.listed:
		return ProtectedNodes{Nodes: created, Names: create.names, Stat: create.stat}, nil
	default: // no read was asked for, or the caller's context has ended
		return ProtectedNodes{Nodes: created}, nil
	}
}

// newProtectedCreate prepares a protected create: one request for one node, else a transaction.
func (s *Session) newProtectedCreate(c ProtectedCreate) (*protectedCreate, error) {
	if err := ValidatePath(c.Dir); err != nil {
		return nil, Wrap("create", c.Dir, err)
	}
	p := &protectedCreate{s: s, dir: c.Dir, prefix: c.Name, exact: c.Mode == Ephemeral}
	if !c.Plain {
		p.prefix = ProtectedPrefix + uuid.NewString() + "-" + c.Name
	}
	path := Join(c.Dir, p.prefix)
	if c.Count == 1 && c.With == nil && !p.exact && !c.Plain {
		full, err := s.transport.checkPath(path, len(c.Data)+sequenceDigits)
		if err != nil {
			return nil, Wrap("create", c.Dir, err)
		}
		data := bytes.Clone(c.Data) // a try may outlive this call
		p.ops = []Op{{name: opCreate, path: path, mode: c.Mode}}
		p.attempt = func() (*link.Call, future[[]Created], error) {
			op, body := createRequest(full, data, c.Mode, s.setup.cfg.ACL)
			call, f := p.prepareTry(op, body, func(d *wire.Decoder) ([]string, error) { return []string{d.String()}, nil })
			return call, f, nil
		}
		return p, nil
	}
	p.ops = make([]Op, 0, c.Count+len(c.With))
	for range c.Count {
		p.ops = append(p.ops, CreateOp(path, c.Data, c.Mode))
	}
	p.ops = append(p.ops, c.With...)
	if err := s.transport.checkOps(p.ops); err != nil {
		return nil, err
	}
	p.attempt = func() (*link.Call, future[[]Created], error) { return p.togetherOps(p.ops, c.Count) }
	return p, nil
}

// sendBehind has a question about a node sent right behind the first try. taken gets its answer.
func (p *protectedCreate) sendBehind(op wire.Op, full string, taken func(link.Reply)) {
	p.listed = make(chan struct{})
	p.behind = &link.Call{Op: op, Body: &wire.WatchRequest{Path: full}, Done: func(r link.Reply) {
		taken(r)
		close(p.listed)
	}}
}

// protectedCreate is one protected create.
type protectedCreate struct {
	s       *Session
	dir     string
	prefix  string
	exact   bool // the prefix is the whole name
	attempt func() (*link.Call, future[[]Created], error)
	tries   int
	done    chan error // the outcome, in the background

	ops      []Op // what a try does
	reserved int  // bytes, in the session's owned
	unsure   bool // a try may have created what was not found

	behind *link.Call    // a list, sent with the first try, or nil
	listed chan struct{} // closed when it was answered
	names  []string      // the answer, or
	stat   *Stat

	mu      sync.Mutex
	left    bool // the caller has given up
	settled bool
	created []Created
}

// createNodes creates the nodes. Its first try is the caller's own; a create that does not succeed at once goes on in
// the background.
func (p *protectedCreate) createNodes(ctx context.Context) ([]Created, error) {
	if err := p.s.transport.waitConnected(ctx); err != nil {
		return nil, err
	}
	created, deleted := p.s.owned.sizesOf(p.ops)
	if err := p.s.owned.reserveFor(ctx, created, deleted); err != nil {
		return nil, err
	}
	p.reserved = created
	first := p.sendTry()
	p.waitForListing(ctx)
	select {
	case o := <-first:
		if o.err == nil {
			p.countOwned(o.v, nil)
			return o.v, nil
		}
		first <- o
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
	p.done = make(chan error, 1)
	if !p.s.tasks.Start(func() { p.createUntilKnown(first) }) {
		return nil, context.Cause(p.s.ctx)
	}
	return p.waitForOutcome(ctx)
}

// waitForListing waits for the answer behind that of the first try, if there will be one: both wake the caller
// once.
func (p *protectedCreate) waitForListing(ctx context.Context) {
	if p.listed == nil {
		return
	}
	select {
	case <-p.listed:
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
}

// sendTry sends one try.
func (p *protectedCreate) sendTry() future[[]Created] {
	p.tries++
	call, f, err := p.attempt()
	if err != nil {
		if p.behind != nil {
			p.listed = nil // no request was sent that could be answered
		}
		f = make(future[[]Created], 1)
		f <- outcome[[]Created]{err: err}
		return f
	}
	if p.behind == nil {
		p.s.transport.mon.Offer(call)
		return f
	}
	p.s.transport.mon.Offer(call, p.behind)
	p.behind = nil
	return f
}

// prepareTry prepares a try. made reads the paths of the nodes that were created.
func (p *protectedCreate) prepareTry(op wire.Op, body wire.Request, made func(*wire.Decoder) ([]string, error)) (*link.Call, future[[]Created]) {
	f := make(future[[]Created], 1)
	return &link.Call{Op: op, Body: body, Done: func(r link.Reply) {
		created, err := p.read(r, made)
		f <- outcome[[]Created]{v: created, err: err}
	}}, f
}

func (p *protectedCreate) read(r link.Reply, made func(*wire.Decoder) ([]string, error)) ([]Created, error) {
	var refusal error
	o := readAnswer(r, func(d *wire.Decoder) (paths []string) {
		paths, refusal = made(d)
		return paths
	})
	switch {
	case o.err != nil:
		return nil, o.err
	case refusal != nil:
		return nil, refusal
	case r.SessionID != p.s.ID():
		return nil, ErrSuspended // their owner is looked up
	}
	created := make([]Created, len(o.v))
	for i, path := range o.v {
		created[i] = Created{Path: p.s.transport.ns.clientPath(path), Zxid: r.Zxid}
	}
	return created, nil
}

// waitForOutcome waits for the outcome of what goes on in the background.
func (p *protectedCreate) waitForOutcome(ctx context.Context) ([]Created, error) {
	select {
	case err := <-p.done:
		return p.created, err
	case <-ctx.Done():
		return nil, p.abandon(Ended(ctx))
	}
}

// abandon gives the create up; what it has created or will create is deleted.
func (p *protectedCreate) abandon(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.settled {
		p.deleteCreated()
	}
	return cause
}

// deliverOrUndo tells the outcome, or undoes it if the caller has left.
func (p *protectedCreate) deliverOrUndo(c []Created, err error) {
	p.countOwned(c, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled, p.created = true, c
	p.done <- err
	if p.left {
		p.deleteCreated()
	}
}

// countOwned tells the session's owned nodes the outcome.
func (p *protectedCreate) countOwned(c []Created, err error) {
	owned := &p.s.owned
	switch {
	case err == nil:
		rs := make([]OpResult, len(p.ops))
		for i, op := range p.ops {
			rs[i].Path = p.s.transport.ns.serverPath(op.path)
			if i < len(c) {
				rs[i].Path = p.s.transport.ns.serverPath(c[i].Path)
			}
		}
		owned.countApplied(p.reserved, p.ops, rs)
	case p.unsure:
		owned.countUnknown(p.reserved, p.ops)
	default:
		owned.settleReservation(p.reserved, 0)
	}
	p.reserved = 0
}

// deleteCreated deletes what was created.
func (p *protectedCreate) deleteCreated() {
	if len(p.created) == 0 {
		return
	}
	if p.exact {
		p.s.Primitives().DiscardOwn(nil, p.created[0])
		return
	}
	paths := make([]string, len(p.created))
	for i, c := range p.created {
		paths[i] = c.Path
	}
	p.s.Primitives().Discard(nil, paths...)
}

func (p *protectedCreate) abandoned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// createUntilKnown creates the nodes until the outcome is known, after a first try. It lasts as long as the session, not
// its caller.
func (p *protectedCreate) createUntilKnown(first future[[]Created]) {
	c, err := p.concludeTry(first)
	back := backoff.New(p.s.setup.cfg.RetryBase, p.s.setup.cfg.RetryMax)
	for err != nil && !p.abandoned() {
		switch {
		case errors.Is(err, ErrNoNode):
			if err := p.s.MakeDirs(p.s.ctx, p.dir); err != nil {
				p.deliverOrUndo(nil, err)
				return
			}
		case errors.Is(err, errNotCreated):
			if err := back.Pause(p.s.ctx); err != nil {
				p.deliverOrUndo(nil, context.Cause(p.s.ctx))
				return
			}
		default:
			p.deliverOrUndo(nil, err)
			return
		}
		c, err = p.createOnce()
	}
	p.deliverOrUndo(c, err)
}

var errNotCreated = errors.New("the node was not created")

// createOnce creates once and finds out whether it was done.
func (p *protectedCreate) createOnce() ([]Created, error) {
	if err := p.s.transport.waitConnected(p.s.ctx); err != nil {
		return nil, err
	}
	return p.concludeTry(p.sendTry())
}

// concludeTry waits for a try's outcome, and finds it out when the connection was lost before. It returns
// errNotCreated when no node was created.
func (p *protectedCreate) concludeTry(f future[[]Created]) ([]Created, error) {
	o := waitForOutcome(p.s.ctx, p.s.transport, f)
	if wasNotExecuted(o.err) {
		return nil, errNotCreated
	}
	if errors.Is(o.err, ErrSuspended) {
		found, err := p.findByUUID()
		p.unsure = err != nil && !errors.Is(err, errNotCreated)
		return found, err
	}
	return o.v, o.err
}

// findByUUID looks the nodes up by their UUID, behind a sync, and checks that they are this session's.
func (p *protectedCreate) findByUUID() ([]Created, error) {
	names, err := p.listAndFind()
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

func (p *protectedCreate) listAndFind() ([]string, error) {
	if err := p.s.Sync(p.s.ctx, p.dir); err != nil {
		return nil, err
	}
	if p.exact {
		return []string{p.prefix}, nil
	}
	names, _, err := p.s.Children(p.s.ctx, p.dir)
	return names, err
}

// togetherOps prepares the transaction, of which the first count operations are the creates.
func (p *protectedCreate) togetherOps(ops []Op, count int) (*link.Call, future[[]Created], error) {
	if err := checkConditions(ops); err != nil {
		return nil, nil, otherRefusal{err}
	}
	call, f := p.prepareTry(wire.OpMulti, &wire.MultiRequest{Parts: p.s.transport.wireParts(ops)}, func(d *wire.Decoder) ([]string, error) {
		return createdPaths(ops, readResults(d), count)
	})
	return call, f, nil
}

// createdPaths returns the paths of the first count operations, or why the transaction was refused.
func createdPaths(ops []Op, rs []OpResult, count int) ([]string, error) {
	err := firstRefused(ops, rs)
	switch {
	case err != nil && err.Index >= count:
		return nil, otherRefusal{err}
	case err != nil:
		return nil, err
	case len(rs) < count:
		return nil, fmt.Errorf("zookeeper: %d results of a transaction of %d operations", len(rs), len(ops))
	}
	paths := make([]string, count)
	for i := range paths {
		paths[i] = rs[i].Path
	}
	return paths, nil
}

// otherRefusal keeps the reason of one of the other operations apart from what a create may be refused with.
type otherRefusal struct{ reason error }

func (r otherRefusal) Error() string { return r.reason.Error() }
