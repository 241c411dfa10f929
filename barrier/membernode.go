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

// memberNode is a member's node. After it is gone, another member's node may get the same name, but has other data.
type memberNode struct {
	data     []byte // of the node whose create was sent last
	node     string // "" while there is none
	number   int32
	mayExist bool // its create was requested, and its outcome is unknown
	directoryNumbering
}

// setPath stores the node's path and number.
func (p *memberNode) setPath(node string) error {
	number, ok := parseMemberNumber(node)
	if !ok {
		return fmt.Errorf("%w: a member's node is called %s", ErrForeign, node)
	}
	p.node, p.number = node, number
	return nil
}

// isOwn reports whether the node exists and is still this member's.
func (p memberNode) isOwn(ctx context.Context, s *framework.Session) (bool, framework.Stat, error) {
	data, st, err := s.Get(ctx, p.node)
	if errors.Is(err, framework.ErrNoNode) {
		return false, st, nil
	}
	return err == nil && bytes.Equal(data, p.data), st, err
}

// discardIfOwn deletes the node in the background if it is still this member's, for as long as the session lasts.
func (p memberNode) discardIfOwn(s *framework.Session) {
	go func() {
		if own, st, _ := p.isOwn(s.Context(), s); own {
			s.Primitives().DiscardOwn(nil, primitives.Created{Path: p.node, Zxid: st.Czxid})
		}
	}()
}

// createMemberNode creates a member's node. After a lost reply it looks for the node. It tries until the session ends or the servers refuse it.
func (b *storedBarrier) createMemberNode(s *framework.Session, data []byte) (memberNode, error) {
	ctx := s.Context()
	for {
		p := memberNode{data: data, directoryNumbering: b.cachedState().directoryNumbering}
		rs, err := s.Multi(ctx, framework.CreateOp(znode.Join(b.in, memberName), data, framework.EphemeralSequential))
		switch {
		case err == nil:
			err = p.setPath(rs[0].Path)
			return p, err
		case errors.Is(err, framework.ErrNoNode):
			b.dropCachedState()
			if err := b.createOrCheck(ctx, s); err != nil {
				return memberNode{}, err
			}
			if _, err := s.Exists(ctx, b.in); errors.Is(err, framework.ErrNoNode) {
				return memberNode{}, b.partIsMissing(ctx, s, b.in)
			}
		case errors.Is(err, framework.ErrSuspended):
			node, err := b.findMemberNode(ctx, s, data)
			if err == nil && node != "" {
				err = p.setPath(node)
			}
			if node != "" || err != nil {
				return p, err
			}
		default:
			return memberNode{}, err
		}
	}
}

// findMemberNode finds the node that holds data, or returns "". The servers may have applied a create although its reply was lost.
func (b *storedBarrier) findMemberNode(ctx context.Context, s *framework.Session, data []byte) (string, error) {
	if err := s.Sync(ctx, b.in); err != nil {
		return "", err
	}
	names, _, err := s.Children(ctx, b.in)
	if errors.Is(err, framework.ErrNoNode) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		node := znode.Join(b.in, name)
		got, _, err := s.Get(ctx, node)
		switch {
		case err == nil && string(got) == string(data):
			return node, nil
		case err != nil && !errors.Is(err, framework.ErrNoNode):
			return "", err
		}
	}
	return "", nil
}
