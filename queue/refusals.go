package queue

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxRefusals is how many refused requests of a batch the writer learns of from the batch's
// transactions, one with each. Then it asks for all others.
const maxRefusals = 2

// failRefused asks the servers which requests they refuse, with one transaction for each, which
// cannot be applied. All are on their way at once. It fails the refused ones and returns the others
// (docs/adr/0100-refused-requests-are-found-together.md).
//
// A request that may depend on an earlier one of the batch, which was not applied yet, is not
// failed.
func (w *writer) failRefused(ctx context.Context, s *framework.Session,
	requests []*writeRequest) (others []*writeRequest) {
	probes, refusals := make([]*transaction, len(requests)), make([]*framework.TxError, len(requests))
	var answered sync.WaitGroup
	for i, r := range requests {
		probes[i] = &transaction{}
		w.addConditions(probes[i], r)
		if len(probes[i].ops) == 0 {
			continue
		}
		answered.Go(func() {
			_, err := s.Multi(ctx, slices.Concat(probes[i].ops, w.marker.neverOps())...)
			_ = errors.As(err, &refusals[i]) // other errors decide nothing
		})
	}
	answered.Wait()
	var earlier changedNodes
	for i, r := range requests {
		if tx, probe := refusals[i], probes[i]; tx != nil && tx.Index < len(probe.ops) && !earlier.mayAffect(tx.Path) {
			if verdict := probe.handlers[tx.Index](tx); verdict.fails != nil && verdict.fails(r) {
				w.finishRequest(r, nil, verdict.err)
				continue
			}
		}
		earlier.addOps(probes[i].ops)
		others = append(others, r)
	}
	return others
}

// changedNodes are nodes that operations may change.
type changedNodes struct{ nodes, parents map[string]bool }

func (c *changedNodes) addOps(ops []framework.Op) {
	if c.nodes == nil {
		c.nodes, c.parents = map[string]bool{}, map[string]bool{}
	}
	for _, op := range ops {
		dir, _ := znode.Split(primitives.Path(op))
		c.nodes[primitives.Path(op)], c.parents[dir] = true, true
	}
}

// mayAffect reports whether the changes may decide about an operation on a node: by the node
// itself, its parent or its children.
func (c *changedNodes) mayAffect(node string) bool {
	dir, _ := znode.Split(node)
	return c.nodes[node] || c.nodes[dir] || c.parents[node]
}
