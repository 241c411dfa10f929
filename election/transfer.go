package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// TransferTo ends the term in favour of the first candidate in line that is called id. Those before it
// lose their places and queue again, so that tokens still rise.
//
// The term's context ends at once, with ErrTransferred as its cause. Within Lead, leadership goes over once
// the function has returned; else TransferTo hands it over before it returns, and there is nothing left to
// resign. The error wraps ErrNoCandidate when nobody of that name waits, and then the term stands; or it is
// why the term had ended before: of several transfers at once, one is done, and the others return its
// ErrTransferred. When the candidate leaves at the last moment, or it cannot be known
// whether it leads, the term is over all the same, the first in line leads, and the error says so; Lead logs it.
func (t *Term) TransferTo(ctx context.Context, id string) error {
	return framework.Wrap("transfer", t.election.path, t.transferTo(ctx, id))
}

func (t *Term) transferTo(ctx context.Context, id string) error {
	s, err := t.findSuccessor(ctx, func(c Candidate) bool { return c.ID == id })
	if errors.Is(err, ErrNoCandidate) {
		return fmt.Errorf("%w: nobody in line is called %q", ErrNoCandidate, id)
	}
	if err != nil {
		return err
	}
	led, err := t.endInFavourOf(s, fmt.Errorf("%w: to %q", ErrTransferred, id))
	if led || err != nil {
		return err
	}
	return t.releasePlace(ctx)
}

// successor is to whom a term is handed.
type successor struct {
	node   string
	passed []string // the nodes before it
}

// findSuccessor finds the first candidate behind the leader that is meant. Nodes before it can only vanish.
func (t *Term) findSuccessor(ctx context.Context, meant func(Candidate) bool) (*successor, error) {
	line, err := t.listWaiting(ctx)
	if err != nil {
		return nil, err
	}
	if s := chooseSuccessor(line, meant); s != nil {
		return s, nil
	}
	if err := t.Err(); err != nil { // the line changes when a term ends
		return nil, err
	}
	return nil, ErrNoCandidate
}

// listWaiting lists the candidates behind the leader, in order.
func (t *Term) listWaiting(ctx context.Context) ([]lineMember, error) {
	line, err := t.election.line.Contenders(ctx)
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(line, func(c lineMember) bool { return c.Node == t.Node() })
	if own < 0 { // the server may lag, or the term is over
		return nil, nil
	}
	return line[own+1:], nil
}

// chooseSuccessor returns the first candidate of the line that is meant, as a successor, or nil.
func chooseSuccessor(line []lineMember, meant func(Candidate) bool) *successor {
	s := &successor{}
	for _, c := range line {
		if meant(candidateOf(c)) {
			s.node = c.Node
			return s
		}
		s.passed = append(s.passed, c.Node)
	}
	return nil
}

// endInFavourOf ends the term in favour of a successor. When the term has ended already, it returns why, and the
// successor is not taken: of several transfers at once, one is done and the others fail.
func (t *Term) endInFavourOf(s *successor, cause error) (led bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Err(); err != nil {
		return false, err
	}
	t.successor = s
	t.life.End(cause)
	return t.led, nil
}

// handOverTo makes the successor the first in line, if there is one, by one transaction: whoever stands between
// and the leader itself leave the line together. It does so even if ctx has ended, for as long as the lease
// stands.
//
// Passed-over candidates of this package queue again when they find their nodes gone, before they lead (see
// inaugurate) or while they wait. So do Curator's.
func (t *Term) handOverTo(ctx context.Context) error {
	t.mu.Lock()
	s := t.successor
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	if err := t.lease.Err(); err != nil {
		return fmt.Errorf("it could not be handed over: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.lease.Remaining())
	defer cancel()
	for passed, unknown := slices.Clone(s.passed), false; ; {
		_, err := t.election.client.Multi(ctx, s.makeFirst(t.Node(), passed)...)
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
			return t.guardRefusal(refused.Err)
		case refused.Index == targetOp:
			return fmt.Errorf("%w: it has left the line", ErrNoCandidate)
		default: // one less to pass over
			passed = slices.Delete(passed, refused.Index-passedOps, refused.Index-passedOps+1)
		}
	}
}

// The operations of a hand-over, in order.
const (
	ownOp = iota
	targetOp
	passedOps
)

func (s *successor) makeFirst(own string, passed []string) []framework.Op {
	ops := []framework.Op{framework.DeleteOp(own, framework.AnyVersion), framework.CheckOp(s.node, framework.AnyVersion)}
	for _, node := range passed {
		ops = append(ops, framework.DeleteOp(node, framework.AnyVersion))
	}
	return ops
}
