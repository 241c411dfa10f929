package framework

import (
	"context"
	"net"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

func init() {
	primitives.OfSession = func(session any) primitives.Operations { return operations{session.(*Session)} }
	primitives.DialerOf = func(client any) func(context.Context, string, string) (net.Conn, error) {
		return client.(*Client).dial
	}
}

// operations implements primitives.Operations.
type operations struct{ s *Session }

func (p operations) Hold(ctx context.Context, node primitives.Created,
	more ...primitives.Created) (primitives.Hold, error) {
	if err := p.s.beginHolding(ctx); err != nil {
		return nil, err
	}
	h := &hold{s: p.s}
	h.life.Init((*sessionParent)(p.s), ctx)
	h.nodes = append(h.one[:0], p.s.heldNode(h, node))
	for _, created := range more {
		h.nodes = append(h.nodes, p.s.heldNode(h, created))
	}
	p.s.holds.addHold(h, p.s.setup.clock.Now()+heartbeatInterval(p.s.Timeout()))
	return h, nil
}

func (s *Session) heldNode(h *hold, node primitives.Created) heldNode {
	return heldNode{hold: h, path: node.Path, full: s.caller.ns.serverPath(node.Path), zxid: node.Zxid}
}

func (p operations) StayAwake() { p.s.stayAwake(&p.s.awakeRefs) }

func (p operations) MaySleep() { p.s.maySleep(&p.s.awakeRefs) }

func (p operations) BeginJoin() { p.s.stayAwake(&p.s.joins) }

func (p operations) EndJoin() { p.s.maySleep(&p.s.joins) }

func (p operations) Discard(queued func(), node string, more ...string) primitives.Discarded {
	d := p.s.newDiscarded(queued)
	d.paths = append(append(d.one[:0], node), more...)
	return p.s.startDeletion(d)
}

func (p operations) DiscardOwn(queued func(), node primitives.Created, companions ...string) primitives.Discarded {
	d := p.s.newDiscarded(queued)
	d.own, d.paths = node, append(d.one[:0], companions...)
	return p.s.startDeletion(d)
}

func (s *Session) newDiscarded(queued func()) *backgroundDeletion {
	return &backgroundDeletion{
		tasks: &s.tasks, done: make(chan struct{}), queued: queued,
		retries: backoff.New(s.setup.cfg.RetryBase, s.setup.cfg.RetryMax),
	}
}

// startDeletion starts a deletion in the background.
func (s *Session) startDeletion(d *backgroundDeletion) *backgroundDeletion {
	// When a session has ended, the servers delete all its nodes together. A deletion of one node
	// would let others see it gone while the rest is still there.
	if s.ctx.Err() != nil || !s.tasks.Begin() {
		d.err = context.Cause(s.ctx)
		close(d.done)
		return d
	}
	s.deletions.requestDeletion(d)
	return d
}

func (p operations) SyncForWatch(ctx context.Context, path string, strict bool) error {
	if strict {
		return p.s.Sync(ctx, path)
	}
	return p.s.zkSync(ctx, path)
}

func (p operations) Share(key any, start func() any) any { return p.s.shared.share(key, start) }

func (p operations) Unshare(key any) { p.s.shared.unshare(key) }
