package framework

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Primitives are what the recipes are made of, beside a session's plain operations. Applications do not need them; use them to write a recipe of your own.
type Primitives struct{ s *Session }

// Primitives returns the session's operations for recipes.
func (s *Session) Primitives() Primitives { return Primitives{s} }

// Hold returns a hold on nodes that this session has created. Its context carries the values of values. It ends with the session, with any of the nodes, or by
// End. The end of a node is noticed by the next proofs of life, within about T/4 per 100 nodes held. Hold fails when the session has ended.
func (p Primitives) Hold(values context.Context, nodes ...string) (*Hold, error) {
	if err := p.s.Err(); err != nil {
		return nil, err
	}
	h := &Hold{s: p.s}
	h.life.Init((*sessionParent)(p.s), values)
	h.nodes = h.one[:0]
	for _, path := range nodes {
		h.nodes = append(h.nodes, heldNode{hold: h, path: path, full: p.s.transport.ns.serverPath(path)})
	}
	p.s.holds.add(h)
	return h, nil
}

// Discard deletes ephemeral nodes of this session in the background, in one transaction, until they are gone or the session has ended. It returns at once. Client.Close
// waits for it. Once the session has ended it sends no request: the servers delete all nodes of the session together.
//
// It calls queued once, unless that is nil: when the deletion is in the connection's queue, or when the nodes are known to be gone. A request that this session makes
// later reaches the servers later. If the connection is lost before the answer, the deletion is the first request on the next one. That order does not hold for a
// deletion that the servers refuse, which is repeated with pauses. Discard does not call queued if the session ends before. queued must not block; it may be called before
// Discard returns.
func (p Primitives) Discard(queued func(), paths ...string) *Discarded {
	return p.discard(queued, Created{}, paths)
}

// DiscardOwn is Discard for a node with a name that other sessions may use too: before each try it checks that the node is still the one that this session has created. The
// nodes of companions, with names that no other session uses, are deleted in the same transaction, or by themselves when the node is another session's.
func (p Primitives) DiscardOwn(queued func(), node Created, companions ...string) *Discarded {
	return p.discard(queued, node, companions)
}

func (p Primitives) discard(queued func(), own Created, paths []string) *Discarded {
	d := &Discarded{
		tasks: &p.s.tasks, done: make(chan struct{}), queued: queued, own: own, paths: append([]string(nil), paths...),
		retries: backoff.New(p.s.setup.cfg.RetryBase, p.s.setup.cfg.RetryMax),
	}
	// When a session has ended, the servers delete all its nodes together. A deletion of one node would let others see it gone while the rest is still there.
	if p.s.ctx.Err() != nil || !p.s.tasks.Begin() {
		close(d.done)
		return d
	}
	p.s.deletions.requestDeletion(d)
	return d
}

// Share returns the session's value of a key and counts its user. start makes the value of the first user. Each use ends with Unshare, the last of which forgets the
// value. Recipes on one session find each other by it, such as waiters for one lock. Use a key of an unexported type.
func (p Primitives) Share(key any, start func() any) any { return p.s.shared.share(key, start) }

// Unshare ends one use of a shared value.
func (p Primitives) Unshare(key any) { p.s.shared.unshare(key) }

// Node is what GetAll found of one node.
type Node struct {
	// Data is the node's.
	Data []byte
	// Stat is the node's.
	Stat Stat
	// Err is why there is neither, such as ErrNoNode.
	Err error
}

// GetAll reads many nodes in one request, in the order of the paths. Each is read for itself: what cannot be read
// has an error of its own, and others may change in between. The answer holds all data at once, up to 64 MiB, beyond which
// GetAll fails with ErrTooLarge. It repeats itself when the connection is lost.
func (p Primitives) GetAll(ctx context.Context, paths ...string) ([]Node, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts, total := make([]wire.MultiPart, len(paths)), 0
	for i, path := range paths {
		full, err := p.s.transport.checkPath(path, 0)
		if err != nil {
			return nil, Wrap("get", path, err)
		}
		total += len(full) + partOverhead
		parts[i] = wire.MultiPart{Op: wire.OpGetData, Body: &wire.WatchRequest{Path: full}}
	}
	if err := checkRequestSize(total); err != nil {
		return nil, Wrap("get", paths[0], err)
	}
	nodes, err := repeatUntilKnown(ctx, p.s.transport, func(a requester) ([]Node, error) {
		nodes, err := ask(a, wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, readNodes).read()
		if err == nil && len(nodes) != len(parts) {
			err = fmt.Errorf("zookeeper: %d answers to %d reads", len(nodes), len(parts))
		}
		return nodes, err
	})
	return nodes, Wrap("get", paths[0], err)
}

// readNodes reads the results of reads.
func readNodes(d *wire.Decoder) (nodes []Node) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return nodes
		}
		var n Node
		if h.Op == wire.OpError {
			n.Err = codeError(wire.Code(d.Int()))
		} else {
			n.Data = bytes.Clone(d.Buffer())
			n.Stat = readingStat(d)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// WatchNodes watches nodes for a change or their deletion and returns at once: the requests leave together.
// The event of a missing node is NodeDeleted. An event with an error says why a node is not watched.
func (p Primitives) WatchNodes(paths ...string) []*Watch {
	out := make([]*Watch, len(paths))
	var calls []*link.Call
	p.s.watches.asking.Lock()
	defer p.s.watches.asking.Unlock()
	for i, path := range paths {
		out[i] = p.s.watches.addWaiter(watchKey{watchData, p.s.transport.ns.serverPath(path)})
		if e := out[i].entry; e.armOnce() {
			calls = append(calls, e.prepareRead(true, func(link.Reply) {}))
		}
	}
	if len(calls) > 0 {
		p.s.transport.mon.Send(calls...)
	}
	return out
}
