package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// roundMember is one call of Enter. It has a node in the barrier's directory, and waits for its
// round.
type roundMember struct {
	b *storedBarrier
	s *framework.Session
	memberNode
	known barrierState // of the barrier, when the create of the node was sent
}

// extraTime is how long a member waits for the servers' answer after its context has ended: its
// round may have begun.
const extraTime = time.Second

// errMayBeInside is the error of a member that lost its node when it may have been inside already.
var errMayBeInside = errors.New("the member's node was lost, and a round may have begun with it")

// enterOnSession creates the member's node in the session and waits for a round. If it fails, it
// deletes the node.
func (m *roundMember) enterOnSession(ctx, extended context.Context, s *framework.Session) (*Round, error) {
	if err := m.removeFormerNode(ctx, s); err != nil {
		return nil, err
	}
	m.s = s
	if err := m.b.createOrCheck(ctx, s); err != nil {
		return nil, err
	}
	m.known = m.b.cachedState()
	primitives.Of(s).StayAwake() // a round that begins within a session timeout finds the session awake
	err := m.createNode(extended)
	primitives.Of(s).MaySleep()
	if err != nil {
		return nil, err
	}
	begun, err := m.waitWhileListed(ctx)
	if err != nil {
		begun, err = m.withdrawOrEnter(extended, err)
	}
	if err != nil {
		return nil, err
	}
	hold, err := primitives.Of(s).Hold(extended, m.node)
	if err != nil {
		m.discard(s)
		return nil, fmt.Errorf("%w: %w", errMayBeInside, err)
	}
	return &Round{hold: hold, node: m.node.Path, phase: begun.phase,
		leaver: &lockstepLeaver{m.b, s, m.node.Path, begun}}, nil
}

// waitWhileListed waits for a round while the member's node exists. It needs no hold: a member that
// dies before a round begins is in no round.
func (m *roundMember) waitWhileListed(ctx context.Context) (barrierState, error) {
	exists, leave := recipe.WhileNodeExists(m.s, m.node, m.s.Timeout()/4) // most rounds begin before that
	defer leave(nil)
	w := &roundWait{b: m.b, s: m.s, node: m.memberNode, exists: exists}
	return w.waitForRound(ctx)
}

// createNode creates the member's node. If ctx ends before that is done, the node is deleted in the
// background.
func (m *roundMember) createNode(ctx context.Context) error {
	type outcome struct {
		memberNode
		err error
	}
	s, done := m.s, make(chan outcome, 1)
	owner := recipe.Owner{Identity: m.b.client.Config().Identity}
	data := nodeRecord{Kind: memberKind, ID: uuid.NewString(), Owner: owner}.encode()
	m.memberNode = memberNode{data: data, mayExist: true}
	go func() {
		p, err := m.b.createMemberNode(s, data)
		done <- outcome{p, err}
	}()
	select {
	case o := <-done:
		m.memberNode = o.memberNode
		m.mayExist = placeWasLost(o.err) && m.in != ""
		return o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.discard(s)
			}
		}()
		return failure.Ended(ctx)
	}
}

// withdrawOrEnter deletes the member's node in a transaction that proves that no round has begun
// with it, and returns why. If a round has begun, it returns that round.
func (m *roundMember) withdrawOrEnter(ctx context.Context, why error) (barrierState, error) {
	for {
		state, own, err := m.readStateAndNode(ctx, m.s, m.b.readState)
		switch {
		case err == nil && !own: // it is gone with its session, or with the barrier
			return barrierState{}, why
		case err == nil && state.isInsideAs(m.memberDirectory, m.number):
			if err := m.b.checkSizeOf(state); err != nil { // for the other members it has died inside
				m.discard(m.s)
				m.node = primitives.Created{}
				return barrierState{}, err
			}
			return state, nil
		case err == nil:
			err = m.deleteNodeAtPhase(ctx, m.s, state)
		}
		switch {
		case err == nil:
			m.node = primitives.Created{}
			return barrierState{}, why
		case errors.Is(err, recipe.ErrAgain):
		case placeWasLost(err) && placeWasLost(why):
			return barrierState{}, why // the next session checks
		default:
			m.discard(m.s)
			return barrierState{}, why
		}
	}
}

// placeWasLost reports whether the member's node or session is gone.
func placeWasLost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone)
}

// readStateAndNode reads the barrier's state, and then whether the member's node exists. If it
// does, its number belongs to the state's numbering: a directory that is not empty is not replaced.
func (m *roundMember) readStateAndNode(ctx context.Context, s *framework.Session,
	read stateReader) (state barrierState, own bool, err error) {
	if state, err = read(ctx, s); err == nil {
		own, err = m.exists(ctx, s)
	}
	return state, own, err
}

// deleteNodeAtPhase deletes the member's node if the barrier is still at this state's phase.
func (m *roundMember) deleteNodeAtPhase(ctx context.Context, s *framework.Session, state barrierState) error {
	_, err := s.Multi(ctx, framework.CheckOp(m.b.path, state.phase),
		framework.DeleteOp(m.node.Path, framework.AnyVersion))
	var refused *framework.TxError
	switch {
	case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, framework.ErrNoNode):
		return nil // the phase was checked before, and the node is gone with its session
	case errors.Is(err, framework.ErrBadVersion):
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	}
	return err
}

// removeFormerNode removes the node of a lost session, which may exist for a while after the loss.
// It fails if a round may have begun with the node.
func (m *roundMember) removeFormerNode(ctx context.Context, s *framework.Session) error {
	if m.mayExist {
		if err := m.findOrphan(ctx, s); err != nil {
			return err
		}
	}
	for m.node.Path != "" {
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		inside, err := m.removeOldNode(ctx, s)
		switch {
		case err == nil && inside || errors.Is(err, framework.ErrNoNode):
			// the barrier is gone, so its round is unknown
			return diedInside()
		case err == nil:
			m.node = primitives.Created{}
		case !errors.Is(err, recipe.ErrAgain):
			return err
		}
	}
	return nil
}

// findOrphan looks for the node of a create whose reply was lost. If it finds no node, but a round
// has begun since, the round may have begun with this member.
func (m *roundMember) findOrphan(ctx context.Context, s *framework.Session) error {
	node, err := findMemberNode(ctx, s, m.in, m.data)
	if err != nil {
		return err
	}
	if node.Path != "" {
		m.mayExist = false
		return m.setNode(node)
	}
	state, err := m.b.readStateUncached(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil &&
		(state.memberDirectory != m.known.memberDirectory || state.roundsBegun() != m.known.roundsBegun()):
		return diedInside()
	case err == nil:
		m.mayExist = false
	}
	return err
}

// diedInside is the error of a member that may have been inside when it lost its node.
func diedInside() error { return fmt.Errorf("%w: %w", errMayBeInside, framework.ErrSessionLost) }

// removeOldNode deletes the member's node, and reports whether a round may have begun with the
// member.
func (m *roundMember) removeOldNode(ctx context.Context, s *framework.Session) (inside bool, err error) {
	state, own, err := m.readStateAndNode(ctx, s, m.b.readStateUncached)
	if err == nil && !own { // a round may have begun with the node before the node was gone
		state, err = m.b.readStateUncached(ctx, s)
		return state.memberDirectory != m.memberDirectory || m.number-state.base < 0, err
	}
	switch {
	case err != nil:
		return false, err
	case m.number-state.base < 0:
		m.discard(s)
		return true, nil
	}
	return false, m.deleteNodeAtPhase(ctx, s, state)
}

// addMayHaveBegun adds to the error of a member that has a node, or may have one, that its round
// may have begun.
func (m *roundMember) addMayHaveBegun(err error) error {
	if m.node.Path == "" && !m.mayExist {
		return err
	}
	return roundMayHaveBegun(err)
}

// roundMayHaveBegun is the error of a member that does not know whether its round has begun.
func roundMayHaveBegun(err error) error {
	return fmt.Errorf("%w: whether the round has begun: %w", err, framework.ErrSuspended)
}
