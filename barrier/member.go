package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// member is one Enter: it has a place in the barrier's directory, and waits for its round.
type member struct {
	b      *Double
	s      *framework.Session
	data   []byte // of the node that was asked for last
	node   string // "" while it has no place
	hold   *framework.Hold
	number int32
	rivals
}

// errInside says that a place was lost when its member may have been inside already.
var errInside = errors.New("the place was lost as a round began with it")

// enter takes a place in the session and waits for a round. It leaves no node behind when it fails.
func (m *member) enter(ctx, linger context.Context, s *framework.Session) (*Round, error) {
	if err := m.retake(ctx, s); err != nil {
		return nil, err
	}
	m.s = s
	if err := m.b.prepare(ctx, s); err != nil {
		return nil, err
	}
	m.rivals = rivals{before: m.b.recall().phase}
	if err := m.take(linger); err != nil {
		return nil, err
	}
	var err error
	if m.hold, err = s.Hold(ctx, m.node); err != nil {
		return nil, err
	}
	begun, err := m.gather(ctx)
	if err != nil {
		begun, err = m.giveUp(linger, err)
	}
	if err != nil {
		m.hold.End(err)
		return nil, err
	}
	return m.inside(begun)
}

// inside makes the round, unless the session was lost meanwhile.
func (m *member) inside(begun state) (*Round, error) {
	if err := m.hold.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errInside, err)
	}
	return &Round{hold: m.hold, node: m.node, phase: begun.phase, way: &departure{m.b, m.s, m.node, begun}}, nil
}

// take creates the member's node. If ctx ends before that is done, the node is deleted in the background.
func (m *member) take(ctx context.Context) error {
	type outcome struct {
		node string
		err  error
	}
	s, done := m.s, make(chan outcome, 1)
	m.data = record{Kind: memberKind, ID: uuid.NewString(), Owner: m.b.client.Config().Identity}.encode()
	data := m.data
	go func() {
		node, err := m.b.create(s, data)
		done <- outcome{node, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				s.Discard(o.node)
			}
		}()
		return framework.Ended(ctx)
	}
	if o.err != nil {
		return o.err
	}
	return m.settle(o.node)
}

// settle notes the member's place.
func (m *member) settle(node string) error {
	number, ok := numberOf(node)
	if !ok {
		return fmt.Errorf("%w: a member's node is called %s", ErrForeign, node)
	}
	m.node, m.number = node, number
	return nil
}

// create creates a member's node, whatever becomes of the replies, for as long as the session lasts.
func (b *Double) create(s *framework.Session, data []byte) (string, error) {
	ctx := s.Context()
	for {
		rs, err := s.Multi(ctx, framework.CreateOp(framework.Join(b.in, memberName), data, framework.EphemeralSequential))
		switch {
		case err == nil:
			return rs[0].Path, nil
		case errors.Is(err, framework.ErrNoNode):
			b.forget()
			if err := b.prepare(ctx, s); err != nil {
				return "", err
			}
			if _, err := s.Exists(ctx, b.in); errors.Is(err, framework.ErrNoNode) {
				return "", b.damaged(ctx, s, b.in)
			}
		case errors.Is(err, framework.ErrSuspended):
			node, err := b.find(ctx, s, data)
			if node != "" || err != nil {
				return node, err
			}
		default:
			return "", err
		}
	}
}

// find looks for the node that holds data, in case that a create was applied whose reply was lost.
func (b *Double) find(ctx context.Context, s *framework.Session, data []byte) (string, error) {
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

// giveUp deletes the member's node, by a transaction that proves that no round has begun with it, and
// returns why it did. If one has, that is returned.
func (m *member) giveUp(ctx context.Context, why error) (state, error) {
	for {
		st, err := m.b.read(ctx, m.s)
		if err == nil && st.has(m.number) {
			if err := m.b.agrees(st); err != nil { // to the others, it has died inside
				m.s.Discard(m.node)
				m.node = ""
				return state{}, err
			}
			return st, nil
		}
		if err == nil {
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
			m.s.Discard(m.node)
			return state{}, why
		}
	}
}

// lost tells whether a place was lost.
func lost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone)
}

// withdraw deletes the member's node if the barrier is still in this state.
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
	if m.node == "" && m.data != nil { // its create may have been applied all the same
		node, err := m.b.find(ctx, s, m.data)
		if err == nil && node != "" {
			err = m.settle(node)
		}
		if err != nil {
			return err
		}
	}
	for m.node != "" {
		if err := s.Sync(ctx, m.b.path); err != nil {
			return err
		}
		st, err := m.b.readAnew(ctx, s)
		switch {
		case err == nil && m.number-st.base < 0:
			s.Discard(m.node)
			return fmt.Errorf("%w: %w", errInside, framework.ErrSessionLost)
		case err == nil:
			err = m.withdraw(ctx, s, st)
		}
		switch {
		case err == nil || errors.Is(err, framework.ErrNoNode):
			m.node = ""
		case !errors.Is(err, errAgain):
			return err
		}
	}
	return nil
}

// unsettled adds to the error of a member that still has a place that its round may have begun.
func (m *member) unsettled(err error) error {
	if m.node == "" {
		return err
	}
	return unknown(err)
}
