package election

import (
	"context"
	"errors"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// Membership is one member's place in a group. It lasts until Leave, or the client's end.
type Membership struct {
	group *Members
	name  string
	data  []byte

	leave context.CancelFunc
	first sync.Once
	in    chan struct{} // closed once it is listed
	gone  chan struct{} // closed when it has ended
	err   error         // why, to be read after gone
}

// enrol begins a membership, whose node's name ends with name, and does not wait.
func (m *Members) enrol(ctx context.Context, name string, r memberRecord) (*Membership, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	s := &Membership{group: m, name: name, data: data, in: make(chan struct{}), gone: make(chan struct{})}
	ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	go s.keep(ctx)
	return s, nil
}

// listed waits until the member is listed. When it never will be, nothing stays behind.
func (s *Membership) listed(ctx context.Context) error {
	select {
	case <-s.in:
		return nil
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		s.leave()
		return framework.Ended(ctx)
	}
}

// Leave takes the member out of the group. It waits until its node is gone, or ctx ends; then that is
// finished in the background, and Client.Close waits for it. The error is nil in either case. Leaving again is
// harmless.
func (s *Membership) Leave(ctx context.Context) error {
	s.leave()
	select {
	case <-s.gone:
	case <-ctx.Done():
	}
	return nil
}

// keep keeps the member listed.
func (s *Membership) keep(ctx context.Context) {
	defer close(s.gone)
	c := s.group.client
	back := c.Retries()
	for {
		s.err = onSessions(ctx, c, s.stay)
		if ctx.Err() != nil || errors.Is(s.err, framework.ErrClosed) || errors.Is(s.err, framework.ErrAuthFailed) || !s.wasIn() {
			return
		}
		c.Logger().Warn("a member was taken out of its group and joins again", "path", s.group.path, "error", s.err)
		if back.Pause(ctx) != nil {
			return
		}
	}
}

func (s *Membership) wasIn() bool {
	select {
	case <-s.in:
		return true
	default:
		return false
	}
}

// stay is the membership on one session. It ends with ctx, the session, or the node.
func (s *Membership) stay(ctx context.Context, sess *framework.Session) error {
	made, err := sess.CreateTogether(ctx, framework.Together{
		Dir: s.group.path, Name: s.name, Data: s.data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return err
	}
	defer func() { <-sess.Discard(made[0].Path).Done() }()
	s.first.Do(func() { close(s.in) })
	for {
		_, _, w, err := sess.WatchData(ctx, made[0].Path)
		if errors.Is(err, framework.ErrNoNode) {
			return framework.ErrNodeGone
		}
		if err == nil {
			err = wait(ctx, sess, w)
		}
		if err != nil {
			return err
		}
	}
}
