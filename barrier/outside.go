package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// rivals tell whether as many members as the barrier has were there beside this one: then it is one too many,
// unless one of them was dead and its session had not ended yet.
type rivals struct {
	before int32     // the phase up to which is known who has begun
	phase  int32     // of the rivals' round; 0 if there are none
	rest   int       // how many of them had not left when they were seen first
	left   int32     // how many had ever left the barrier alive then
	since  time.Time // when that was
}

// tooMany judges the rounds that have begun without this member.
func (m *member) tooMany(ctx context.Context, st state) error {
	switch {
	case m.phase != 0 && m.phase != st.phase:
		return m.judge(ctx, st)
	case m.before == st.phase:
		return nil
	}
	beside, err := m.wasThere(ctx)
	if err != nil {
		return err
	}
	m.before = st.phase
	switch {
	case !beside:
		return nil
	case !st.inside():
		return m.surplus()
	}
	rest, listed, err := m.b.remaining(ctx, m.s, st)
	if err == nil {
		m.see(st.phase, len(rest), listed.Version)
	}
	return err
}

func (m *member) see(phase int32, rest int, left int32) {
	m.phase, m.rest, m.left, m.since = phase, rest, left, time.Now()
}

// wasThere tells whether this member was there when the last round began.
func (m *member) wasThere(ctx context.Context) (bool, error) {
	own, err := m.s.Exists(ctx, m.node)
	if errors.Is(err, framework.ErrNoNode) {
		return false, fmt.Errorf("%w: %s", framework.ErrNodeGone, m.node)
	}
	if err != nil {
		return false, err
	}
	round, err := m.s.Exists(ctx, m.b.round)
	return own.Czxid < round.Mzxid, err
}

// judge looks whether all rivals have left alive: each left by a transaction that counts.
func (m *member) judge(ctx context.Context, st state) error {
	in, err := m.s.Exists(ctx, m.b.in)
	if err != nil {
		return err
	}
	m.phase, m.before = 0, st.phase
	if int(in.Version-m.left) >= m.rest {
		return m.surplus()
	}
	return nil
}

func (m *member) surplus() error {
	return fmt.Errorf("%w: a round of %d has passed beside this member", ErrTooMany, m.b.size)
}

// outside waits while a round is inside that has no place for this member: it came early, since one of
// those inside is dead, or it is one too many.
func (m *member) outside(ctx context.Context, st state, w *framework.Watch) error {
	rest, listed, err := m.b.remaining(ctx, m.s, st)
	switch {
	case err != nil:
		return err
	case len(rest) == 0: // the last of that round has not ended it yet, or is dead
		return m.b.finish(ctx, m.s, st)
	}
	patience := time.Duration(-1)
	if len(rest) == m.b.size {
		if m.phase == 0 {
			m.see(st.phase, len(rest), listed.Version)
		}
		if patience = m.s.Timeout()*3/2 - time.Since(m.since); patience <= 0 { // the dead are gone by then
			return fmt.Errorf("%w: all %d members are inside", ErrTooMany, m.b.size)
		}
	}
	return m.b.awaitOne(ctx, m.hold.Context(), m.s, awaited{w, rest[0], patience})
}

// remaining lists which members of the round that is inside are there.
func (b *Double) remaining(ctx context.Context, s *framework.Session, st state) ([]int32, framework.Stat, error) {
	there, listed, err := b.list(ctx, s)
	rest := slices.DeleteFunc(there, func(n int32) bool { return !slices.Contains(st.numbers, n) })
	slices.Sort(rest) // so that all who wait for one wait for the same
	return rest, listed, err
}

// awaited is what awaitOne waits for: a change of the phase, the end of a member, or some time if it is not
// negative.
type awaited struct {
	phase    *framework.Watch
	number   int32
	patience time.Duration
}

// awaitOne waits for one of several things, and returns errAgain then, until one of two contexts ends.
func (b *Double) awaitOne(ctx, place context.Context, s *framework.Session, a awaited) error {
	_, _, gone, err := s.WatchData(ctx, b.place(a.number))
	if errors.Is(err, framework.ErrNoNode) {
		return errAgain
	}
	if err != nil {
		return err
	}
	defer gone.Stop()
	var late <-chan time.Time
	if a.patience >= 0 {
		t := time.NewTimer(a.patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-a.phase.C():
	case <-gone.C():
	case <-late:
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-place.Done():
		return context.Cause(place)
	}
	return errAgain
}

// finish ends the round of which nobody is left. It returns errAgain when it has ended.
func (b *Double) finish(ctx context.Context, s *framework.Session, st state) error {
	_, err := s.Set(ctx, b.path, st.data, st.phase)
	if err == nil {
		b.remember(st.over())
	}
	if err == nil || errors.Is(err, framework.ErrBadVersion) {
		return errAgain
	}
	return err
}

// pause waits for a change, or until d is over.
func pause(ctx context.Context, s *framework.Session, w *framework.Watch, d time.Duration) (changed bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case ev := <-w.C():
		if ev.Kind == framework.Reconnected {
			return false, errAgain
		}
		return true, nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-s.Done():
		return false, context.Cause(s.Context())
	}
}
