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
	b *Double
	s *framework.Session
	place
	known state // of the barrier, when the place was asked for
	hold  *framework.Hold
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
	m.known, m.rivals = m.b.recall(), rivals{}
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
		place
		err error
	}
	s, done := m.s, make(chan outcome, 1)
	data := record{Kind: memberKind, ID: uuid.NewString(), Owner: m.b.client.Config().Identity}.encode()
	m.place = place{data: data, unsure: true}
	go func() {
		p, err := m.b.create(s, data)
		done <- outcome{p, err}
	}()
	select {
	case o := <-done:
		m.unsure = lost(o.err)
		if o.err == nil {
			m.place = o.place
		}
		return o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.discard(s)
			}
		}()
		return framework.Ended(ctx)
	}
}

// create creates a member's node, whatever becomes of the replies, for as long as the session lasts.
func (b *Double) create(s *framework.Session, data []byte) (place, error) {
	ctx := s.Context()
	for {
		p := place{data: data, numbering: b.recall().numbering}
		rs, err := s.Multi(ctx, framework.CreateOp(framework.Join(b.in, memberName), data, framework.EphemeralSequential))
		switch {
		case err == nil:
			err = p.settle(rs[0].Path)
			return p, err
		case errors.Is(err, framework.ErrNoNode):
			b.forget()
			if err := b.prepare(ctx, s); err != nil {
				return place{}, err
			}
			if _, err := s.Exists(ctx, b.in); errors.Is(err, framework.ErrNoNode) {
				return place{}, b.damaged(ctx, s, b.in)
			}
		case errors.Is(err, framework.ErrSuspended):
			node, err := b.find(ctx, s, data)
			if err == nil && node != "" {
				err = p.settle(node)
			}
			if node != "" || err != nil {
				return p, err
			}
		default:
			return place{}, err
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
