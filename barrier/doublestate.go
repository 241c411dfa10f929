package barrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// barrierState is what is known of a double barrier at one phase.
type barrierState struct {
	numbering
	recordData []byte // its record, as it is written again
	size       int    // the number of members in it
	phase      int32  // the record's version
	epoch      int64  // of the session that it was learnt in

	// base is not above the number of any member that a later round can have: right after a look it is one
	// more than the highest number that was ever let in, after a guess it may be less.
	base    int32
	numbers []int32 // of the round that is inside; nil if not known

	staleWatch bool // the watch that came with it may tell of a change from before
}

func (st barrierState) roundIsInside() bool { return st.phase&1 == 1 }

// roundsBegun is how many rounds have begun.
func (st barrierState) roundsBegun() int64 { return (int64(st.phase) + 1) / 2 }

// equals reports whether what was seen of the barrier is this state.
func (st barrierState) equals(seen barrierState) bool {
	return st.made == seen.made && st.phase == seen.phase && bytes.Equal(st.recordData, seen.recordData)
}

// afterBegin is the next state, in which a round is inside, as far as it can be known without a look: it has n
// members with different numbers, none below base.
func (st barrierState) afterBegin(n int) barrierState {
	st.phase, st.base, st.numbers, st.staleWatch = st.phase+1, st.base+int32(n), nil, false
	return st
}

// afterEnd is the next state, in which members gather again.
func (st barrierState) afterEnd() barrierState {
	st.phase, st.numbers, st.staleWatch = st.phase+1, nil, false
	return st
}

// admits reports whether the round that begins in this state lets a living member with this number in. It does
// if fewer than n can be before it: a round takes the lowest n, and looks at all that are lower than one that
// it takes, since a server that lags behind shows the first creates, never later ones without them.
func (st barrierState) admits(number int32, n int) bool {
	return !st.roundIsInside() && number-st.base < int32(n)
}

// cachedState returns the newest state that a member of this DoubleBarrier has seen.
func (b *DoubleBarrier) cachedState() barrierState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cached
}

// cacheState keeps a state, unless a newer one is known.
func (b *DoubleBarrier) cacheState(st barrierState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cached.made == st.made && b.cached.phase-st.phase > 0 {
		return
	}
	b.cached = st
}

// dropCachedState makes the next look read everything.
func (b *DoubleBarrier) dropCachedState() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cached = barrierState{}
}

// watchBarrier reads the barrier's record and phase, and watches it. What it returns is not more than that.
//
// It is vague if a watch that the session had armed before has fired meanwhile, since it may tell of a change from
// before the read. Not so if the session knew this state already: whatever led to it was told by then.
func (b *DoubleBarrier) watchBarrier(ctx context.Context, s *framework.Session) (barrierState, *framework.Watch, error) {
	known := b.cachedState()
	data, st, w, err := s.WatchData(ctx, b.path)
	if err != nil {
		return barrierState{}, nil, err
	}
	seen := barrierState{numbering: numbering{made: st.Czxid}, recordData: data, phase: st.Version, epoch: s.Epoch()}
	seen.staleWatch = len(w.C()) > 0 && !(known.equals(seen) && known.epoch == seen.epoch)
	return seen, w, nil
}

// fillFromCache returns what was seen with what is known of it, or what else has to be read. The barrier may have
// another number of members.
func (b *DoubleBarrier) fillFromCache(ctx context.Context, s *framework.Session, seen barrierState) (barrierState, error) {
	known := b.cachedState()
	if known.equals(seen) && (known.numbers != nil || !seen.roundIsInside()) {
		known.staleWatch = seen.staleWatch
		return known, nil
	}
	return b.fillFromServers(ctx, s, seen)
}

// fillFromServers returns what was seen with what else the servers tell of it, whatever is known.
func (b *DoubleBarrier) fillFromServers(ctx context.Context, s *framework.Session, seen barrierState) (barrierState, error) {
	r, err := parseSizedRecord(b.path, doubleKind, seen.recordData, mostMembers)
	if err != nil {
		return barrierState{}, err
	}
	seen.size = r.Size
	data, _, err := s.Get(ctx, b.round)
	if errors.Is(err, framework.ErrNoNode) {
		return barrierState{}, b.partIsMissing(ctx, s, b.round)
	}
	if err != nil {
		return barrierState{}, err
	}
	last, err := parseRecord(b.round, roundKind, data)
	switch {
	case err != nil:
		return barrierState{}, err
	case last.Phase-seen.phase > 0: // a round has begun between the two reads
		return barrierState{}, recipe.ErrAgain
	}
	seen.base, seen.origin = last.Base, last.Origin
	if last.Phase == seen.phase {
		seen.numbers = last.Numbers
	}
	if seen.roundIsInside() && len(seen.numbers) == 0 {
		return barrierState{}, fmt.Errorf("%w: %s does not tell who is inside", ErrForeign, b.round)
	}
	if b.checkSizeOf(seen) == nil {
		b.cacheState(seen)
	}
	return seen, nil
}

// stateReader is read or readStateUncached.
type stateReader func(context.Context, *framework.Session) (barrierState, error)

// readState reads the barrier's state.
func (b *DoubleBarrier) readState(ctx context.Context, s *framework.Session) (barrierState, error) {
	return b.readStateWith(ctx, s, b.fillFromCache)
}

// readStateUncached is read, for who has to know the base: what is known of it may be a guess, and too low.
func (b *DoubleBarrier) readStateUncached(ctx context.Context, s *framework.Session) (barrierState, error) {
	return b.readStateWith(ctx, s, b.fillFromServers)
}

func (b *DoubleBarrier) readStateWith(ctx context.Context, s *framework.Session, rest func(context.Context, *framework.Session, barrierState) (barrierState, error)) (barrierState, error) {
	for {
		data, st, err := s.Get(ctx, b.path)
		if err != nil {
			return barrierState{}, err
		}
		seen, err := rest(ctx, s, barrierState{numbering: numbering{made: st.Czxid}, recordData: data, phase: st.Version, epoch: s.Epoch()})
		if !errors.Is(err, recipe.ErrAgain) {
			return seen, err
		}
	}
}

// checkSizeOf refuses a barrier of another number of members.
func (b *DoubleBarrier) checkSizeOf(st barrierState) error {
	if st.size != b.size {
		return &MismatchError{b.path, st.size, b.size}
	}
	return nil
}

// checkStored reads the barrier's state and refuses another number of members.
func (b *DoubleBarrier) checkStored(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, b.path); err != nil { // another server may not know the newest number yet
		return err
	}
	st, err := b.readState(ctx, s)
	if err != nil {
		return err
	}
	return b.checkSizeOf(st)
}

// createOrCheck makes the barrier, or learns what there is, before its first use here.
func (b *DoubleBarrier) createOrCheck(ctx context.Context, s *framework.Session) error {
	if b.cachedState().recordData != nil {
		return nil
	}
	for {
		err := b.checkStored(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			err = b.createNodes(ctx, s)
		case errors.Is(err, ErrMismatch):
			err = b.changeSize(ctx, s)
		default:
			return err
		}
		if err != nil && !errors.Is(err, recipe.ErrAgain) {
			return err
		}
	}
}

// createNodes creates the barrier's nodes.
func (b *DoubleBarrier) createNodes(ctx context.Context, s *framework.Session) error {
	_, err := s.Multi(ctx,
		framework.CreateOp(b.path, record{Kind: doubleKind, Size: b.size}.encode(), framework.Persistent),
		framework.CreateOp(b.in, nil, framework.Persistent),
		framework.CreateOp(b.round, record{Kind: roundKind}.encode(), framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := framework.Split(b.path)
		return s.MakeDirs(ctx, dir)
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	}
	return err
}

// partIsMissing says that a part of the barrier is missing, unless all of it is.
func (b *DoubleBarrier) partIsMissing(ctx context.Context, s *framework.Session, part string) error {
	if _, err := s.Exists(ctx, b.path); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is missing beside %s: delete the latter to begin anew", ErrForeign, part, b.path)
}

// changeSize gives a barrier at which nobody has been for a session timeout this member's number.
func (b *DoubleBarrier) changeSize(ctx context.Context, s *framework.Session) error {
	seen, w, err := b.watchBarrier(ctx, s)
	if err != nil {
		return err
	}
	defer w.Stop()
	there, _, err := b.listMembers(ctx, s)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return b.checkStored(ctx, s)
	}
	switch changed, err := waitForWatchOrTimeout(ctx, s, w, s.Timeout()); {
	case err != nil:
		return err
	case changed: // somebody came, perhaps with this member's number
		return b.checkStored(ctx, s)
	}
	record := withSize(seen.recordData, b.size)
	ops := []framework.Op{
		framework.DeleteOp(b.in, framework.AnyVersion), // refused while anybody is there
		framework.CreateOp(b.in, nil, framework.Persistent),
		framework.SetOp(b.path, record, seen.phase),
	}
	end := seen.phase + 1
	if !seen.roundIsInside() { // else all of that round have died
		ops = append(ops, framework.SetOp(b.path, record, end))
		end++
	}
	_, err = s.Multi(ctx, append(ops, framework.SetOp(b.round, recordBeforeFirstRound(end), framework.AnyVersion))...)
	switch {
	case errors.Is(err, framework.ErrNotEmpty), errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
		return b.checkStored(ctx, s) // somebody else may have done the same
	}
	return err
}

// recordBeforeFirstRound is the record of a round before the first, whose numbers begin again.
func recordBeforeFirstRound(phase int32) []byte {
	return record{Kind: roundKind, Phase: phase, Origin: phase}.encode()
}
