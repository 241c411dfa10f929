package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// member is one call of Enter. It has a node in the barrier's directory, and waits for its round.
type member struct {
	b *DoubleBarrier
	s *framework.Session
	memberNode
	known barrierState // of the barrier, when the node was requested
	hold  *framework.Hold
	overflow
}

// errMayBeInside is the error of a member that lost its node when it may have been inside already.
var errMayBeInside = errors.New("the place was lost as a round began with it")

// enterOnSession creates the member's node in the session and waits for a round. If it fails, it deletes the node.
func (m *member) enterOnSession(ctx, settling context.Context, s *framework.Session) (*Round, error) {
	if err := m.recoverPlace(ctx, s); err != nil {
		return nil, err
	}
	m.s = s
	if err := m.b.createOrCheck(ctx, s); err != nil {
		return nil, err
	}
	m.known, m.overflow = m.b.cachedState(), overflow{}
	if err := m.createNode(settling); err != nil {
		return nil, err
	}
	var err error
	if m.hold, err = s.Primitives().Hold(ctx, m.node); err != nil {
		return nil, err
	}
	begun, err := m.waitForRound(ctx)
	if err != nil {
		begun, err = m.withdrawOrEnter(settling, err)
	}
	if err != nil {
		m.hold.End(err)
		return nil, err
	}
	return m.newRound(begun)
}

// newRound returns the round, unless the session was lost meanwhile.
func (m *member) newRound(begun barrierState) (*Round, error) {
	if err := m.hold.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMayBeInside, err)
	}
	return &Round{hold: m.hold, node: m.node, phase: begun.phase, leaver: &ownLeaver{m.b, m.s, m.node, begun}}, nil
}

// createNode creates the member's node. If ctx ends before that is done, the node is deleted in the background.
func (m *member) createNode(ctx context.Context) error {
	type outcome struct {
		memberNode
		err error
	}
	s, done := m.s, make(chan outcome, 1)
	data := record{Kind: memberKind, ID: uuid.NewString(), Owner: m.b.client.Config().Identity}.encode()
	m.memberNode = memberNode{data: data, mayExist: true}
	go func() {
		p, err := m.b.createMemberNode(s, data)
		done <- outcome{p, err}
	}()
	select {
	case o := <-done:
		m.mayExist = placeWasLost(o.err)
		if o.err == nil {
			m.memberNode = o.memberNode
		}
		return o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.discardIfOwn(s)
			}
		}()
		return framework.Ended(ctx)
	}
}

// createMemberNode creates a member's node. It survives lost replies, and tries until the session ends.
func (b *DoubleBarrier) createMemberNode(s *framework.Session, data []byte) (memberNode, error) {
	ctx := s.Context()
	for {
		p := memberNode{data: data, numbering: b.cachedState().numbering}
		rs, err := s.Multi(ctx, framework.CreateOp(framework.Join(b.in, memberName), data, framework.EphemeralSequential))
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

// findMemberNode finds the node that holds data: a create may have been applied whose reply was lost.
func (b *DoubleBarrier) findMemberNode(ctx context.Context, s *framework.Session, data []byte) (string, error) {
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
		node := framework.Join(b.in, name)
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

// numbering identifies the directory that members' numbers belong to. A new directory begins a new numbering.
type numbering struct {
	made   int64 // the transaction that has created the barrier
	origin int32 // the phase from which the numbers are counted
}

// memberNode is a member's node. When it is gone, another member may get its name, but not its data.
type memberNode struct {
	data     []byte // of the node that was requested last
	node     string // "" while there is none
	number   int32
	mayExist bool // its create was requested, and its outcome is unknown
	numbering
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
			s.Primitives().DiscardOwn(nil, framework.Created{Path: p.node, Zxid: st.Czxid})
		}
	}()
}

// withdrawOrEnter deletes the member's node in a transaction that proves that no round has begun with it, and
// returns why. If a round has begun, it returns that round.
func (m *member) withdrawOrEnter(ctx context.Context, why error) (barrierState, error) {
	for {
		st, own, err := m.readStateAndNode(ctx, m.s, m.b.readState)
		switch {
		case err == nil && !own: // it is gone with its session, or with the barrier
			return barrierState{}, why
		case err == nil && st.isInsideAs(m.number):
			if err := m.b.checkSizeOf(st); err != nil { // for the other members it has died inside
				m.discardIfOwn(m.s)
				m.node = ""
				return barrierState{}, err
			}
			return st, nil
		case err == nil:
			err = m.deleteNodeAtPhase(ctx, m.s, st)
		}
		switch {
		case err == nil:
			m.node = ""
			return barrierState{}, why
		case errors.Is(err, recipe.ErrAgain):
		case placeWasLost(err) && placeWasLost(why):
			return barrierState{}, why // the next session checks
		default:
			m.discardIfOwn(m.s)
			return barrierState{}, why
		}
	}
}

// placeWasLost reports whether the member's node or session is gone.
func placeWasLost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone)
}

// readStateAndNode reads the barrier's state, and then whether the member's node exists. If it does, its number belongs to the state's
// numbering: a directory that is not empty is not replaced.
func (m *member) readStateAndNode(ctx context.Context, s *framework.Session, read stateReader) (st barrierState, own bool, err error) {
	if st, err = read(ctx, s); err == nil {
		own, _, err = m.isOwn(ctx, s)
	}
	return st, own, err
}

// deleteNodeAtPhase deletes the member's node if the barrier is still at this state's phase.
func (m *member) deleteNodeAtPhase(ctx context.Context, s *framework.Session, st barrierState) error {
	_, err := s.Multi(ctx, framework.CheckOp(m.b.path, st.phase), framework.DeleteOp(m.node, framework.AnyVersion))
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

// recoverPlace removes the node of a lost session, which may outlast it for a while. It
// fails if a round may have begun with the node.
func (m *member) recoverPlace(ctx context.Context, s *framework.Session) error {
	if m.mayExist {
		if err := m.findOrphan(ctx, s); err != nil {
			return err
		}
	}
	for m.node != "" {
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		inside, err := m.removeOldNode(ctx, s)
		switch {
		case err == nil && inside || errors.Is(err, framework.ErrNoNode): // the barrier is gone, so its round is unknown
			return diedInside()
		case err == nil:
			m.node = ""
		case !errors.Is(err, recipe.ErrAgain):
			return err
		}
	}
	return nil
}

// findOrphan finds a node whose create may have been applied. If there is none and a round has begun since, the round
// may have begun with it.
func (m *member) findOrphan(ctx context.Context, s *framework.Session) error {
	node, err := m.b.findMemberNode(ctx, s, m.data)
	if err != nil {
		return err
	}
	if node != "" {
		m.mayExist = false
		return m.setPath(node)
	}
	st, err := m.b.readStateUncached(ctx, s)
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil && (st.numbering != m.known.numbering || st.roundsBegun() != m.known.roundsBegun()):
		return diedInside()
	case err == nil:
		m.mayExist = false
	}
	return err
}

// diedInside is the error of a member that may have been inside when it lost its node.
func diedInside() error { return fmt.Errorf("%w: %w", errMayBeInside, framework.ErrSessionLost) }

// removeOldNode deletes the member's node, unless a round may have begun with it.
func (m *member) removeOldNode(ctx context.Context, s *framework.Session) (inside bool, err error) {
	st, own, err := m.readStateAndNode(ctx, s, m.b.readStateUncached)
	if err == nil && !own { // a round may have begun with it before it was gone
		st, err = m.b.readStateUncached(ctx, s)
		return st.numbering != m.numbering || m.number-st.base < 0, err
	}
	switch {
	case err != nil:
		return false, err
	case m.number-st.base < 0:
		m.discardIfOwn(s)
		return true, nil
	}
	return false, m.deleteNodeAtPhase(ctx, s, st)
}

// addMayHaveBegun adds to the error of a member that has a node, or may have one, that its round may have begun.
func (m *member) addMayHaveBegun(err error) error {
	if m.node == "" && !m.mayExist {
		return err
	}
	return roundMayHaveBegun(err)
}

// memberName is the name of a member's node, without its number.
const (
	memberName = "m-"
	memberKind = "member"
)

// parseMemberNumber reads a member's number, an int32 that may have wrapped.
func parseMemberNumber(node string) (int32, bool) {
	_, name := framework.Split(node)
	digits, ok := strings.CutPrefix(name, memberName)
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil && name == memberNodeName(int32(n)) // exactly as a server writes it
}

func memberNodeName(number int32) string { return fmt.Sprintf("%s%010d", memberName, number) }

// memberPath is the node of a number.
func (b *DoubleBarrier) memberPath(number int32) string {
	return framework.Join(b.in, memberNodeName(number))
}

func (st barrierState) isInsideAs(number int32) bool {
	return st.roundIsInside() && slices.Contains(st.numbers, number)
}
