package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// state is what is known of a double barrier at one phase.
type state struct {
	numbering
	data  []byte // its record, as it is written again
	size  int    // the number of members in it
	phase int32  // the record's version
	epoch int64  // of the session that it was learnt in

	// base is not above the number of any member that a later round can have: right after a look it is one
	// more than the highest number that was ever let in, after a guess it may be less.
	base    int32
	numbers []int32 // of the round that is inside; nil if not known

	vague bool // the watch that came with it may tell of a change from before
}

func (st state) inside() bool { return st.phase&1 == 1 }

// rounds is how many rounds have begun.
func (st state) rounds() int64 { return (int64(st.phase) + 1) / 2 }

// same tells whether what was seen of the barrier is this state.
func (st state) same(seen state) bool {
	return st.made == seen.made && st.phase == seen.phase && bytes.Equal(st.data, seen.data)
}

// begun is the next state, in which a round is inside, as far as it can be known without a look: it has n
// members with different numbers, none below base.
func (st state) begun(n int) state {
	st.phase, st.base, st.numbers, st.vague = st.phase+1, st.base+int32(n), nil, false
	return st
}

// over is the next state, in which members gather again.
func (st state) over() state {
	st.phase, st.numbers, st.vague = st.phase+1, nil, false
	return st
}

// letsIn tells whether the round that begins in this state lets a living member with this number in. It does
// if fewer than n can be before it: a round takes the lowest n, and looks at all that are lower than one that
// it takes, since a server that lags behind shows the first creates, never later ones without them.
func (st state) letsIn(number int32, n int) bool {
	return !st.inside() && number-st.base < int32(n)
}

// recall returns the newest state that a member of this Double has seen.
func (b *Double) recall() state {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

// remember keeps a state, unless a newer one is known.
func (b *Double) remember(st state) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known.made == st.made && b.known.phase-st.phase > 0 {
		return
	}
	b.known = st
}

// forget makes the next look read everything.
func (b *Double) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = state{}
}

// watch reads the barrier's record and phase, and watches it. What it returns is not more than that.
//
// It is vague if a watch that the session had armed before has fired meanwhile, since it may tell of a change from
// before the read. Not so if the session knew this state already: whatever led to it was told by then.
func (b *Double) watch(ctx context.Context, s *framework.Session) (state, *framework.Watch, error) {
	known := b.recall()
	data, st, w, err := s.WatchData(ctx, b.path)
	if err != nil {
		return state{}, nil, err
	}
	seen := state{numbering: numbering{made: st.Czxid}, data: data, phase: st.Version, epoch: s.Epoch()}
	seen.vague = len(w.C()) > 0 && !(known.same(seen) && known.epoch == seen.epoch)
	return seen, w, nil
}

// complete returns what was seen with what is known of it, or what else has to be read. The barrier may have
// another number of members.
func (b *Double) complete(ctx context.Context, s *framework.Session, seen state) (state, error) {
	known := b.recall()
	if known.same(seen) && (known.numbers != nil || !seen.inside()) {
		known.vague = seen.vague
		return known, nil
	}
	return b.load(ctx, s, seen)
}

// load returns what was seen with what else the servers tell of it, whatever is known.
func (b *Double) load(ctx context.Context, s *framework.Session, seen state) (state, error) {
	r, err := parseSized(b.path, doubleKind, seen.data, mostMembers)
	if err != nil {
		return state{}, err
	}
	seen.size = r.Size
	data, _, err := s.Get(ctx, b.round)
	if errors.Is(err, framework.ErrNoNode) {
		return state{}, b.damaged(ctx, s, b.round)
	}
	if err != nil {
		return state{}, err
	}
	last, err := parse(b.round, roundKind, data)
	switch {
	case err != nil:
		return state{}, err
	case last.Phase-seen.phase > 0: // a round has begun between the two reads
		return state{}, errAgain
	}
	seen.base, seen.origin = last.Base, last.Origin
	if last.Phase == seen.phase {
		seen.numbers = last.Numbers
	}
	if seen.inside() && len(seen.numbers) == 0 {
		return state{}, fmt.Errorf("%w: %s does not tell who is inside", ErrForeign, b.round)
	}
	if b.agrees(seen) == nil {
		b.remember(seen)
	}
	return seen, nil
}

// reader is read or readAnew.
type reader func(context.Context, *framework.Session) (state, error)

// read reads the barrier's state.
func (b *Double) read(ctx context.Context, s *framework.Session) (state, error) {
	return b.reading(ctx, s, b.complete)
}

// readAnew is read, for who has to know the base: what is known of it may be a guess, and too low.
func (b *Double) readAnew(ctx context.Context, s *framework.Session) (state, error) {
	return b.reading(ctx, s, b.load)
}

func (b *Double) reading(ctx context.Context, s *framework.Session, rest func(context.Context, *framework.Session, state) (state, error)) (state, error) {
	for {
		data, st, err := s.Get(ctx, b.path)
		if err != nil {
			return state{}, err
		}
		seen, err := rest(ctx, s, state{numbering: numbering{made: st.Czxid}, data: data, phase: st.Version, epoch: s.Epoch()})
		if !errors.Is(err, errAgain) {
			return seen, err
		}
	}
}

// agrees refuses a barrier of another number of members.
func (b *Double) agrees(st state) error {
	if st.size != b.size {
		return &MismatchError{b.path, st.size, b.size}
	}
	return nil
}

// check reads the barrier's state and refuses another number of members.
func (b *Double) check(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, b.path); err != nil { // another server may not know the newest number yet
		return err
	}
	st, err := b.read(ctx, s)
	if err != nil {
		return err
	}
	return b.agrees(st)
}

// prepare makes the barrier, or learns what there is, before its first use here.
func (b *Double) prepare(ctx context.Context, s *framework.Session) error {
	if b.recall().data != nil {
		return nil
	}
	for {
		err := b.check(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			err = b.make(ctx, s)
		case errors.Is(err, ErrMismatch):
			err = b.renumber(ctx, s)
		default:
			return err
		}
		if err != nil && !errors.Is(err, errAgain) {
			return err
		}
	}
}

// make creates the barrier's nodes.
func (b *Double) make(ctx context.Context, s *framework.Session) error {
	_, err := s.Multi(ctx,
		framework.CreateOp(b.path, record{Kind: doubleKind, Size: b.size}.encode(), framework.Persistent),
		framework.CreateOp(b.in, nil, framework.Persistent),
		framework.CreateOp(b.round, record{Kind: roundKind}.encode(), framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := framework.Split(b.path)
		return s.MakeDirs(ctx, dir)
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return errAgain
	}
	return err
}

// damaged says that a part of the barrier is missing, unless all of it is.
func (b *Double) damaged(ctx context.Context, s *framework.Session, part string) error {
	if _, err := s.Exists(ctx, b.path); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is missing beside %s: delete the latter to begin anew", ErrForeign, part, b.path)
}

// renumber gives a barrier at which nobody has been for a session timeout this member's number.
func (b *Double) renumber(ctx context.Context, s *framework.Session) error {
	seen, w, err := b.watch(ctx, s)
	if err != nil {
		return err
	}
	defer w.Stop()
	there, _, err := b.list(ctx, s)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return b.check(ctx, s)
	}
	switch changed, err := pause(ctx, s, w, s.Timeout()); {
	case err != nil:
		return err
	case changed: // somebody came, perhaps with this member's number
		return b.check(ctx, s)
	}
	record := resize(seen.data, b.size)
	ops := []framework.Op{
		framework.DeleteOp(b.in, framework.AnyVersion), // refused while anybody is there
		framework.CreateOp(b.in, nil, framework.Persistent),
		framework.SetOp(b.path, record, seen.phase),
	}
	end := seen.phase + 1
	if !seen.inside() { // else all of that round have died
		ops = append(ops, framework.SetOp(b.path, record, end))
		end++
	}
	_, err = s.Multi(ctx, append(ops, framework.SetOp(b.round, beginning(end), framework.AnyVersion))...)
	switch {
	case errors.Is(err, framework.ErrNotEmpty), errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
		return b.check(ctx, s) // somebody else may have done the same
	}
	return err
}

// beginning is the record of a round before the first, whose numbers begin again.
func beginning(phase int32) []byte {
	return record{Kind: roundKind, Phase: phase, Origin: phase}.encode()
}
