package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// rivals are a round of others, beside which this member was there: if all of them leave alive, it is one too many.
// Who has died may have been its own former self.
type rivals struct {
	phase int32     // of their round; 0 if none is known
	left  int32     // how many members had ever left the barrier alive before any of them did
	since time.Time // since when all of them are inside, as far as this member knows
}

// tooMany judges the round that has passed without this member. It says nothing of one of which it does not know how
// many had left before, nor once another has begun.
func (m *member) tooMany(ctx context.Context, st state) error {
	if m.phase == 0 || st.phase-m.phase <= 0 {
		return nil
	}
	next := st.phase == m.phase+1
	m.phase = 0
	if !next {
		return nil
	}
	in, err := m.s.Exists(ctx, m.b.in)
	if err == nil && int(in.Version-m.left) >= m.b.size {
		err = m.surplus()
	}
	return err
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
		if m.phase != st.phase {
			m.rivals = rivals{phase: st.phase, left: listed.Version}
		}
		if m.since.IsZero() {
			m.since = time.Now()
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
	if err == nil || errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) {
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
