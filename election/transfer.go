package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// termSuccessor is the candidate that a term is handed to.
type termSuccessor struct {
	node   string
	passed []string // the nodes before it
}

// chooseSuccessor returns the first candidate of the line that meets the condition, or nil. Nodes
// before it can only vanish.
func chooseSuccessor(line []waitline.Entry, meant func(waitline.Entry) bool) *termSuccessor {
	s := &termSuccessor{}
	for _, c := range line {
		if meant(c) {
			s.node = c.Node
			return s
		}
		s.passed = append(s.passed, c.Node)
	}
	return nil
}

// The operations of a hand-over, in order.
const (
	ownOp = iota
	targetOp
	passedOps
)

// handOver makes the successor the first in line. One transaction deletes the leader's node and the
// nodes in between. It tries until ctx ends, for as long as the grant stands.
//
// Candidates of this package that are passed over join again when they find their nodes gone, while
// they wait or when they record their term. So do Curator's.
func (s *termSuccessor) handOver(ctx context.Context, client *framework.Client, own *waitline.Grant) error {
	if err := own.Err(); err != nil {
		return fmt.Errorf("it could not be handed over: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, own.Session().LeaseRemaining())
	defer cancel()
	own.BeginLeave()
	for passed, unknown := slices.Clone(s.passed), false; ; {
		ops := []framework.Op{framework.DeleteOp(own.Node().Path, framework.AnyVersion),
			framework.CheckOp(s.node, framework.AnyVersion)}
		for _, node := range passed {
			ops = append(ops, framework.DeleteOp(node, framework.AnyVersion))
		}
		_, err := client.Multi(ctx, ops...)
		var refused *framework.TxError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, framework.ErrSuspended):
			unknown = true
		case !errors.As(err, &refused) || !errors.Is(refused.Err, framework.ErrNoNode):
			return err
		case refused.Index == ownOp && unknown: // it was applied the first time
			return nil
		case refused.Index == ownOp:
			return guardRefusal(refused.Err, own.Node().Path)
		case refused.Index == targetOp:
			return fmt.Errorf("%w: it has left the line", errNoCandidate)
		default: // one candidate less to pass over
			passed = slices.Delete(passed, refused.Index-passedOps, refused.Index-passedOps+1)
		}
	}
}
