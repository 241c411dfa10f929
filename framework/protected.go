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
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/znode"
)

func (p operations) CreateProtected(ctx context.Context,
	c primitives.ProtectedCreate) (primitives.ProtectedNodes, error) {
	c.Count = max(c.Count, 1)
	create, err := p.s.newProtectedCreate(c)
	if err != nil {
		return primitives.ProtectedNodes{}, err
	}
	ns := p.s.caller.ns
	switch {
	case c.Stat != "":
		if _, err := p.s.caller.checkPath(c.Stat, 0); err != nil {
			return primitives.ProtectedNodes{}, failure.Wrap("create", c.Stat, err)
		}
		create.sendBehind(wire.OpExists, ns.serverPath(c.Stat), func(r link.Reply) {
			if o := decodeAnswer(r, decodeStatOnly); o.err == nil {
				create.statCzxid = o.v.stat.Czxid
			}
		})
	case c.List:
		create.sendBehind(wire.OpGetChildren2, ns.serverPath(c.Dir),
			func(r link.Reply) { create.names = decodeAnswer(r, decodeNames).v.names })
	}
	created, err := create.createNodes(ctx)
	if err != nil {
		var refused otherRefusal
		if errors.As(err, &refused) {
			return primitives.ProtectedNodes{}, refused.reason
		}
		return primitives.ProtectedNodes{}, failure.Wrap("create", c.Dir, err)
	}
	if create.tries > 1 && c.Stat != "" { // it was read before the nodes were created
		return primitives.ProtectedNodes{Nodes: created}, nil
	}
	made := primitives.ProtectedNodes{Nodes: created}
	select {
	case <-create.readBehind:
		made.Names, made.StatCzxid = create.names, create.statCzxid
	default: // the caller wanted no read, or its context has ended
	}
	if c.List && create.lookedUp != nil {
		made.Names = create.lookedUp
	}
	return made, nil
}

// protectedCreate is one protected create: an ephemeral node with a UUID in its name, or several in
// a transaction. When a reply is lost, the nodes are found by the UUID. When the caller gives up,
// they are deleted in the background.
type protectedCreate struct {
	s          *Session
	dir        string
	prefix     string
	unnumbered bool // the prefix is the whole name
	attempt    func() (*link.Call, future[[]primitives.Created], error)
	tries      int
	done       chan error // the outcome, in the background

	ops            []Op // the operations of a try
	reserved       int  // bytes, of the session's ownedBytes
	outcomeUnknown bool // a try may have created what was not found

	behind     *link.Call    // a read, sent with the first try, or nil
	readBehind chan struct{} // closed when it was answered
	names      []string      // the answer to a list
	lookedUp   []string      // the list in which the nodes were found by their UUID
	statCzxid  int64         // the answer to a Stat

	mu           sync.Mutex
	abandoned    bool // the caller has given up
	outcomeKnown bool
	created      []primitives.Created
}

// newProtectedCreate prepares a protected create: one request for one node, else a transaction.
func (s *Session) newProtectedCreate(c primitives.ProtectedCreate) (*protectedCreate, error) {
	if err := ValidatePath(c.Dir); err != nil {
		return nil, failure.Wrap("create", c.Dir, err)
	}
	p := &protectedCreate{s: s, dir: c.Dir, prefix: c.Name, unnumbered: c.Unnumbered}
	if !c.Plain {
		p.prefix = znode.ProtectedPrefix + uuid.NewString() + "-" + c.Name
	}
	path, mode := znode.Join(c.Dir, p.prefix), EphemeralSequential
	if c.Unnumbered {
		mode = Ephemeral
	}
	if c.Count == 1 && c.With == nil && !p.unnumbered && !c.Plain {
		full, err := s.caller.checkPath(path, len(c.Data)+sequenceDigits)
		if err != nil {
			return nil, failure.Wrap("create", c.Dir, err)
		}
		data := bytes.Clone(c.Data) // a try may last longer than this call
		p.ops = []Op{primitives.NewOp(primitives.OpFields{Kind: primitives.OpCreate, Path: path, Mode: int32(mode)})}
		p.attempt = func() (*link.Call, future[[]primitives.Created], error) {
			op, body := createRequest(full, data, mode, s.setup.cfg.ACL)
			call, f := p.prepareTry(op, body,
				func(d *wire.Decoder) ([]string, error) { return []string{d.String()}, nil })
			return call, f, nil
		}
		return p, nil
	}
	p.ops = make([]Op, 0, c.Count+len(c.With))
	for range c.Count {
		p.ops = append(p.ops, CreateOp(path, c.Data, mode))
	}
	p.ops = append(p.ops, c.With...)
	if err := s.caller.checkOps(p.ops); err != nil {
		return nil, err
	}
	p.attempt = func() (*link.Call, future[[]primitives.Created], error) { return p.prepareTransaction(p.ops, c.Count) }
	return p, nil
}

// sendBehind makes the first try send a read right behind the create. taken gets its answer.
func (p *protectedCreate) sendBehind(op wire.Op, full string, taken func(link.Reply)) {
	p.readBehind = make(chan struct{})
	p.behind = &link.Call{Op: op, Body: &wire.WatchRequest{Path: full}, Done: func(r link.Reply) {
		taken(r)
		close(p.readBehind)
	}}
}

// prepareTransaction prepares a try that is a transaction. Its first count operations are the
// creates.
func (p *protectedCreate) prepareTransaction(ops []Op, count int) (*link.Call, future[[]primitives.Created], error) {
	if err := checkConditions(ops); err != nil {
		return nil, nil, otherRefusal{err}
	}
	call, f := p.prepareTry(wire.OpMulti, &wire.MultiRequest{Parts: p.s.caller.wireParts(ops)},
		func(d *wire.Decoder) ([]string, error) {
			return createdPaths(ops, decodeResults(d), count)
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

// otherRefusal is the refusal of an operation that is not one of the creates, so that its reason is
// not taken for a create's, such as ErrNoNode.
type otherRefusal struct{ reason error }

func (r otherRefusal) Error() string { return r.reason.Error() }

// createNodes creates the nodes. The caller waits for the first try. If that does not succeed, the
// create goes on in the background.
func (p *protectedCreate) createNodes(ctx context.Context) ([]primitives.Created, error) {
	if err := p.s.caller.waitConnected(ctx); err != nil {
		return nil, err
	}
	created, deleted := p.s.owned.sizesOf(p.ops)
	if err := p.s.owned.reserveFor(ctx, created, deleted); err != nil {
		return nil, err
	}
	p.reserved = created
	first := p.sendTry()
	p.waitForReadBehind(ctx)
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
	return p.waitForBackground(ctx)
}

// waitForReadBehind waits for the answer to the read behind the first try. The create's answer has
// come by then, so that both answers wake the caller only once.
func (p *protectedCreate) waitForReadBehind(ctx context.Context) {
	if p.readBehind == nil {
		return
	}
	select {
	case <-p.readBehind:
	case <-ctx.Done():
	case <-p.s.ctx.Done():
	}
}

// sendTry sends one try.
func (p *protectedCreate) sendTry() future[[]primitives.Created] {
	p.tries++
	call, f, err := p.attempt()
	if err != nil {
		if p.behind != nil {
			p.readBehind = nil // the read was not sent
		}
		f = make(future[[]primitives.Created], 1)
		f <- outcome[[]primitives.Created]{err: err}
		return f
	}
	if p.behind == nil {
		p.s.caller.sendRequests(call)
		return f
	}
	p.s.caller.sendRequests(call, p.behind)
	p.behind = nil
	return f
}

// prepareTry prepares a try. made reads the paths of the nodes that were created.
func (p *protectedCreate) prepareTry(op wire.Op, body wire.Request,
	made func(*wire.Decoder) ([]string, error)) (*link.Call, future[[]primitives.Created]) {
	f := make(future[[]primitives.Created], 1)
	return &link.Call{Op: op, Body: body, Done: func(r link.Reply) {
		created, err := p.readReply(r, made)
		f <- outcome[[]primitives.Created]{v: created, err: err}
	}}, f
}

func (p *protectedCreate) readReply(r link.Reply,
	made func(*wire.Decoder) ([]string, error)) ([]primitives.Created, error) {
	var refusal error
	o := decodeAnswer(r, func(d *wire.Decoder) (paths []string) {
		paths, refusal = made(d)
		return paths
	})
	switch {
	case o.err != nil:
		return nil, o.err
	case refusal != nil:
		return nil, refusal
	case SessionID(r.SessionID) != p.s.ID():
		return nil, ErrSuspended // concludeTry looks up the owner of the nodes
	}
	created := make([]primitives.Created, len(o.v))
	for i, path := range o.v {
		created[i] = primitives.Created{Path: p.s.caller.ns.clientPath(path), Zxid: r.Zxid}
	}
	return created, nil
}

// createUntilKnown repeats the create after a first try until the outcome is known. It may last
// longer than its caller, as long as the session.
func (p *protectedCreate) createUntilKnown(first future[[]primitives.Created]) {
	c, err := p.concludeTry(first)
	back := backoff.New(p.s.setup.cfg.RetryBase, p.s.setup.cfg.RetryMax)
	for err != nil && !p.isAbandoned() {
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

func (p *protectedCreate) isAbandoned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.abandoned
}

var errNotCreated = errors.New("the node was not created")

// createOnce sends one try and finds out its outcome.
func (p *protectedCreate) createOnce() ([]primitives.Created, error) {
	if err := p.s.caller.waitConnected(p.s.ctx); err != nil {
		return nil, err
	}
	return p.concludeTry(p.sendTry())
}

// concludeTry waits for a try's outcome. If the connection was lost before the answer, it looks the
// nodes up. It returns errNotCreated when no node was created.
func (p *protectedCreate) concludeTry(f future[[]primitives.Created]) ([]primitives.Created, error) {
	o := waitForOutcome(p.s.ctx, p.s.caller, f)
	if wasNotExecuted(o.err) {
		return nil, errNotCreated
	}
	if errors.Is(o.err, ErrSuspended) {
		found, err := p.findByUUID()
		p.outcomeUnknown = err != nil && !errors.Is(err, errNotCreated)
		return found, err
	}
	return o.v, o.err
}

// findByUUID looks the nodes up by their UUID, behind a sync, and checks that they are this
// session's.
func (p *protectedCreate) findByUUID() ([]primitives.Created, error) {
	names, err := p.listAndFind()
	if errors.Is(err, ErrNoNode) {
		return nil, errNotCreated
	}
	if err != nil {
		return nil, err
	}
	var found []primitives.Created
	for _, name := range names {
		if !strings.HasPrefix(name, p.prefix) {
			continue
		}
		path := znode.Join(p.dir, name)
		stat, err := p.s.Exists(p.s.ctx, path)
		switch {
		case errors.Is(err, ErrNoNode):
			continue
		case err != nil:
			return nil, err
		case stat.EphemeralOwner != p.s.ID() && p.unnumbered:
			return nil, ErrNodeExists
		case stat.EphemeralOwner != p.s.ID():
			return nil, fmt.Errorf("%w: %s belongs to another session", ErrSessionLost, path)
		}
		found = append(found, primitives.Created{Path: path, Zxid: stat.Czxid})
	}
	if len(found) == 0 {
		return nil, errNotCreated
	}
	if !p.unnumbered {
		p.lookedUp = names
	}
	return found, nil
}

func (p *protectedCreate) listAndFind() ([]string, error) {
	if err := p.s.Sync(p.s.ctx, p.dir); err != nil {
		return nil, err
	}
	if p.unnumbered {
		return []string{p.prefix}, nil
	}
	names, _, err := p.s.Children(p.s.ctx, p.dir)
	return names, err
}

// waitForBackground waits for the outcome of the create that goes on in the background.
func (p *protectedCreate) waitForBackground(ctx context.Context) ([]primitives.Created, error) {
	select {
	case err := <-p.done:
		return p.created, err
	case <-ctx.Done():
		return nil, p.giveUpCreate(failure.Ended(ctx))
	}
}

// giveUpCreate abandons the create. Nodes that it has created, or will create, are deleted.
func (p *protectedCreate) giveUpCreate(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned = true
	if p.outcomeKnown {
		p.deleteCreated()
	}
	return cause
}

// deliverOrUndo hands the outcome to the caller, or deletes the nodes if the caller has given up.
func (p *protectedCreate) deliverOrUndo(c []primitives.Created, err error) {
	p.countOwned(c, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outcomeKnown, p.created = true, c
	p.done <- err
	if p.abandoned {
		p.deleteCreated()
	}
}

// countOwned counts the created nodes among those that the session owns.
func (p *protectedCreate) countOwned(c []primitives.Created, err error) {
	owned := &p.s.owned
	switch {
	case err == nil:
		rs := make([]OpResult, len(p.ops))
		for i, op := range p.ops {
			rs[i].Path = p.s.caller.ns.serverPath(primitives.Path(op))
			if i < len(c) {
				rs[i].Path = p.s.caller.ns.serverPath(c[i].Path)
			}
		}
		owned.countApplied(p.reserved, p.ops, rs)
	case p.outcomeUnknown:
		owned.countUnknown(p.reserved, p.ops)
	default:
		owned.endReservation(p.reserved, 0)
	}
	p.reserved = 0
}

// deleteCreated deletes the created nodes in the background.
func (p *protectedCreate) deleteCreated() {
	if len(p.created) == 0 {
		return
	}
	if p.unnumbered {
		operations{p.s}.DiscardOwn(nil, p.created[0])
		return
	}
	paths := make([]string, len(p.created))
	for i, c := range p.created {
		paths[i] = c.Path
	}
	operations{p.s}.Discard(nil, paths[0], paths[1:]...)
}
