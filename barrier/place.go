package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// numbering tells which nodes the numbers of members are of: they begin again with a new members' directory.
type numbering struct {
	made   int64 // the transaction that has created the barrier
	origin int32 // the phase from which the numbers are counted
}

// place is a member's node. Its name may become another's once it is gone: what it holds does not.
type place struct {
	data   []byte // of the node that was asked for last
	node   string // "" while there is none
	number int32
	unsure bool // whether there is a node: its create was asked for, and nobody has said what came of it
	numbering
}

// settle notes the member's place.
func (p *place) settle(node string) error {
	number, ok := numberOf(node)
	if !ok {
		return fmt.Errorf("%w: a member's node is called %s", ErrForeign, node)
	}
	p.node, p.number = node, number
	return nil
}

// own looks whether the node is there and still this member's.
func (p place) own(ctx context.Context, s *framework.Session) (bool, framework.Stat, error) {
	data, st, err := s.Get(ctx, p.node)
	if errors.Is(err, framework.ErrNoNode) {
		return false, st, nil
	}
	return err == nil && bytes.Equal(data, p.data), st, err
}

// discard deletes the node in the background if it is still this member's, for as long as the session lasts.
func (p place) discard(s *framework.Session) {
	go func() {
		if own, st, _ := p.own(s.Context(), s); own {
			s.DiscardOwn(nil, framework.Created{Path: p.node, Zxid: st.Czxid})
		}
	}()
}

// giveUp deletes the member's node, by a transaction that proves that no round has begun with it, and
// returns why it did. If one has, that is returned.
func (m *member) giveUp(ctx context.Context, why error) (state, error) {
	for {
		st, own, err := m.look(ctx, m.s, m.b.read)
		switch {
		case err == nil && !own: // it is gone with its session, or with the barrier
			return state{}, why
		case err == nil && st.has(m.number):
			if err := m.b.agrees(st); err != nil { // to the others, it has died inside
				m.discard(m.s)
				m.node = ""
				return state{}, err
			}
			return st, nil
		case err == nil:
			err = m.withdraw(ctx, m.s, st)
		}
		switch {
		case err == nil:
			m.node = ""
			return state{}, why
		case errors.Is(err, errAgain):
		case lost(err) && lost(why):
			return state{}, why // the next session finds out
		default:
			m.discard(m.s)
			return state{}, why
		}
	}
}

// lost tells whether a place was lost.
func lost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone)
}

// look reads the barrier's state, and then whether the member's node is there. If so, its number is one of
// those that the state tells of: a directory that is not empty is not replaced.
func (m *member) look(ctx context.Context, s *framework.Session, read reader) (st state, own bool, err error) {
	if st, err = read(ctx, s); err == nil {
		own, _, err = m.own(ctx, s)
	}
	return st, own, err
}

// withdraw deletes the member's node, which was there in this state, if the barrier is still in it.
func (m *member) withdraw(ctx context.Context, s *framework.Session, st state) error {
	_, err := s.Multi(ctx, framework.CheckOp(m.b.path, st.phase), framework.DeleteOp(m.node, framework.AnyVersion))
	var refused *framework.TxError
	switch {
	case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, framework.ErrNoNode):
		return nil // the phase was checked before, and the node is gone with its session
	case errors.Is(err, framework.ErrBadVersion):
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		return errAgain
	case errors.Is(err, framework.ErrSuspended):
		return errAgain
	}
	return err
}

// retake gives up the place in a session that was lost: its node may outlast it for a while. It
// fails if a round may have begun with that.
func (m *member) retake(ctx context.Context, s *framework.Session) error {
	if m.unsure {
		if err := m.trace(ctx, s); err != nil {
			return err
		}
	}
	for m.node != "" {
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		inside, err := m.vacate(ctx, s)
		switch {
		case err == nil && inside || errors.Is(err, framework.ErrNoNode): // nothing tells what came of a barrier that is gone
			return died()
		case err == nil:
			m.node = ""
		case !errors.Is(err, errAgain):
			return err
		}
	}
	return nil
}

// trace looks for a node whose create may have been applied. If there is none any more and a round has begun since, that
// may have been with it.
func (m *member) trace(ctx context.Context, s *framework.Session) error {
	node, err := m.b.find(ctx, s, m.data)
	if err != nil {
		return err
	}
	if node != "" {
		m.unsure = false
		return m.settle(node)
	}
	st, err := m.b.readAnew(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil && (st.numbering != m.known.numbering || st.rounds() != m.known.rounds()):
		return died()
	case err == nil:
		m.unsure = false
	}
	return err
}

// died is the error of a member that may have been inside when it lost its place.
func died() error { return fmt.Errorf("%w: %w", errInside, framework.ErrSessionLost) }

// vacate deletes the member's node, unless a round may have begun with it.
func (m *member) vacate(ctx context.Context, s *framework.Session) (inside bool, err error) {
	st, own, err := m.look(ctx, s, m.b.readAnew)
	if err == nil && !own { // a round may have begun with it before it was gone
		st, err = m.b.readAnew(ctx, s)
		return st.numbering != m.numbering || m.number-st.base < 0, err
	}
	switch {
	case err != nil:
		return false, err
	case m.number-st.base < 0:
		m.discard(s)
		return true, nil
	}
	return false, m.withdraw(ctx, s, st)
}

// unsettled adds to the error of a member that has a place, or may have one, that its round may have begun.
func (m *member) unsettled(err error) error {
	if m.node == "" && !m.unsure {
		return err
	}
	return unknown(err)
}
