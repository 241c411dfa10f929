package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// memberNode is a member's node.
type memberNode struct {
	data     []byte             // of the node whose create was sent last
	node     primitives.Created // its path is "" while there is none
	number   int32
	mayExist bool // its create was requested, and its outcome is unknown
	memberDirectory
}

// setNode stores the node and its number.
func (p *memberNode) setNode(node primitives.Created) error {
	number, ok := parseMemberNumber(node.Path)
	if !ok {
		return fmt.Errorf("%w: a member's node is called %s", errForeign, node.Path)
	}
	p.node, p.number = node, number
	return nil
}

// exists reports whether the node exists.
func (p memberNode) exists(ctx context.Context, s *framework.Session) (bool, error) {
	stat, err := s.Exists(ctx, p.node.Path)
	if errors.Is(err, framework.ErrNoNode) {
		return false, nil
	}
	return err == nil && stat.Czxid == p.node.Zxid, err
}

// discard deletes the node in the background, for as long as the session lasts.
func (p memberNode) discard(s *framework.Session) { primitives.Of(s).DiscardOwn(nil, p.node) }

// createMemberNode creates a member's node. After a lost reply it looks for the node. It tries
// until the session ends or the servers refuse it. With an error it returns the directory of the
// last try.
func (b *storedBarrier) createMemberNode(s *framework.Session, data []byte) (memberNode, error) {
	ctx, p := s.Context(), memberNode{data: data}
	for {
		if err := b.createOrCheck(ctx, s); err != nil {
			return p, err
		}
		known := b.cachedState().memberDirectory
		if known.in == "" { // another member has dropped the state just now
			continue
		}
		p.memberDirectory = known
		rs, err := s.Multi(ctx, framework.CreateOp(znode.Join(p.in, memberName), data, framework.EphemeralSequential))
		switch {
		case err == nil:
			err = p.setNode(primitives.Created{Path: rs[0].Path, Zxid: rs[0].Zxid})
			return p, err
		case errors.Is(err, framework.ErrNoNode):
			if err := b.checkReplaced(ctx, s, p.in); err != nil {
				return p, err
			}
		case errors.Is(err, framework.ErrSuspended):
			node, err := findMemberNode(ctx, s, p.in, data)
			if err == nil && node.Path != "" {
				err = p.setNode(node)
			}
			if node.Path != "" || err != nil {
				return p, err
			}
		default:
			return p, err
		}
	}
}

// checkReplaced returns nil if the barrier has another directory now than this one, which is
// missing, or was deleted itself.
func (b *storedBarrier) checkReplaced(ctx context.Context, s *framework.Session, missing string) error {
	b.dropCachedState()
	if err := s.Sync(ctx, b.path); err != nil {
		return err
	}
	state, err := b.readStateUncached(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err == nil && state.in == missing:
		return b.partIsMissing(ctx, s, missing)
	}
	return err
}

// findMemberNode finds the node that holds data in a directory of members; its path is "" if there
// is none. The servers may have applied a create although its reply was lost.
func findMemberNode(ctx context.Context, s *framework.Session, in string,
	data []byte) (found primitives.Created, err error) {
	if err := s.Sync(ctx, in); err != nil {
		return found, err
	}
	names, _, err := s.Children(ctx, in)
	if errors.Is(err, framework.ErrNoNode) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	for i, name := range names {
		names[i] = znode.Join(in, name)
	}
	nodes, err := s.GetAll(ctx, names...)
	if err != nil {
		return found, err
	}
	for i, node := range nodes {
		switch {
		case node.Err == nil && bytes.Equal(node.Data, data):
			return primitives.Created{Path: names[i], Zxid: node.Stat.Czxid}, nil
		case node.Err != nil && !errors.Is(node.Err, framework.ErrNoNode):
			return found, node.Err
		}
	}
	return found, nil
}
