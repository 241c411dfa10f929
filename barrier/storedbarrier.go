package barrier

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// storedBarrier is a double barrier in ZooKeeper: its nodes, and the newest state that this process
// has seen.
type storedBarrier struct {
	client      *framework.Client
	path, round string
	size        int // the number of members

	mu     sync.Mutex
	cached barrierState
}

// barrierState is the known state of a double barrier at one phase.
type barrierState struct {
	memberDirectory
	recordData []byte // its record, to be written again
	size       int    // the number of members in it
	phase      int32  // the record's version
	epoch      int64  // of the session in which the state was read

	// base is a lower bound of the numbers in later rounds. Right after a read it is one more than
	// the highest number of all rounds so far; a state that was derived without a read may have a
	// lower base.
	base    int32
	numbers []int32 // of the round that is inside; nil if not known

	staleWatch bool // its watch may have fired for an earlier change
}

func (state barrierState) roundIsInside() bool { return state.phase&1 == 1 }

// roundsBegun is the number of rounds that have begun.
func (state barrierState) roundsBegun() int64 { return (int64(state.phase) + 1) / 2 }

// equals reports whether what was seen of the barrier is this state.
func (state barrierState) equals(seen barrierState) bool {
	return state.czxid == seen.czxid && state.phase == seen.phase && bytes.Equal(state.recordData, seen.recordData)
}

// afterBegin is the next state, in which a round is inside, derived without a read: the round has n
// members with different numbers, all of them base or higher.
func (state barrierState) afterBegin(n int) barrierState {
	state.phase, state.base, state.numbers, state.staleWatch = state.phase+1, state.base+int32(n), nil, false
	return state
}

// afterEnd is the next state, in which members gather again.
func (state barrierState) afterEnd() barrierState {
	state.phase, state.numbers, state.staleWatch = state.phase+1, nil, false
	return state
}

// admitsNumber reports whether the round that begins in this state certainly includes a living
// member with this number: a round takes the lowest n numbers, so fewer than n numbers must lie
// between base and this one. A server that lags behind lists the earlier creates, so a round does
// not skip a lower number.
func (state barrierState) admitsNumber(number int32, n int) bool {
	return !state.roundIsInside() && number-state.base < int32(n)
}

// cachedState returns the newest state that a member of this process has seen.
func (b *storedBarrier) cachedState() barrierState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cached
}

// cacheState stores a state, unless a newer one is known.
func (b *storedBarrier) cacheState(state barrierState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cached.czxid == state.czxid && b.cached.phase-state.phase > 0 {
		return
	}
	b.cached = state
}

// dropCachedState makes the next read ask the servers for everything.
func (b *storedBarrier) dropCachedState() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cached = barrierState{}
}

// watchBarrier reads the barrier's record and phase, and watches its node. The rest of the state is
// empty.
//
// staleWatch is set if a watch that the session had armed before has fired meanwhile, since that
// may be for a change from before the read. It is not set if the session knew this state already:
// the change that led to it was reported before.
func (b *storedBarrier) watchBarrier(ctx context.Context,
	s *framework.Session) (barrierState, *framework.Watch, error) {
	known := b.cachedState()
	data, stat, w, err := s.WatchData(ctx, b.path)
	if err != nil {
		return barrierState{}, nil, err
	}
	seen := barrierState{memberDirectory: memberDirectory{czxid: stat.Czxid}, recordData: data, phase: stat.Version,
		epoch: s.Epoch()}
	seen.staleWatch = len(w.C()) > 0 && !(known.equals(seen) && known.epoch == seen.epoch)
	return seen, w, nil
}

// fillFromCache completes a state from the cache, or else from the servers. The barrier may have
// a different number of members.
func (b *storedBarrier) fillFromCache(ctx context.Context, s *framework.Session,
	seen barrierState) (barrierState, error) {
	known := b.cachedState()
	if known.equals(seen) && (known.numbers != nil || !seen.roundIsInside()) {
		known.staleWatch = seen.staleWatch
		return known, nil
	}
	return b.fillFromServers(ctx, s, seen)
}

// fillFromServers completes a state from the servers, without the cache.
func (b *storedBarrier) fillFromServers(ctx context.Context, s *framework.Session,
	seen barrierState) (barrierState, error) {
	r, err := parseBarrierRecord(b.path, seen.recordData)
	if err != nil {
		return barrierState{}, err
	}
	seen.size, seen.in = r.Size, znode.Join(b.path, r.In)
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
	case last.Phase-seen.phase > 0: // a round has begun between the two reads, unless the nodes are a copy
		return barrierState{}, b.checkPhaseHasChanged(ctx, s, seen)
	}
	seen.base = last.Base
	if last.Phase == seen.phase {
		seen.numbers = last.Numbers
	}
	if seen.roundIsInside() && !seen.hasWholeRound() {
		return barrierState{}, fmt.Errorf(
			"%w: %s does not list the %d members inside in their order, from the lowest number", errForeign,
			b.round, seen.size)
	}
	if b.checkSizeOf(seen) == nil {
		b.cacheState(seen)
	}
	return seen, nil
}

// checkPhaseHasChanged returns recipe.ErrAgain if the barrier's node has changed since this state
// was read. Otherwise the record of its round is from a later phase. That is so in a copy of a
// barrier's nodes: a copy's version begins at 0. Reads would never agree.
func (b *storedBarrier) checkPhaseHasChanged(ctx context.Context, s *framework.Session, seen barrierState) error {
	stat, err := s.Exists(ctx, b.path)
	if err == nil && stat.Czxid == seen.czxid && stat.Version == seen.phase {
		return fmt.Errorf("%w: %s belongs to a later phase than %s: delete the latter to begin anew", errForeign,
			b.round, b.path)
	}
	return cmp.Or(err, recipe.ErrAgain)
}

// stateReader is readState or readStateUncached.
type stateReader func(context.Context, *framework.Session) (barrierState, error)

// readState reads the barrier's state.
func (b *storedBarrier) readState(ctx context.Context, s *framework.Session) (barrierState, error) {
	return b.readStateUsing(ctx, s, b.fillFromCache)
}

// readStateUncached is readState without the cache, in which base may be too low.
func (b *storedBarrier) readStateUncached(ctx context.Context, s *framework.Session) (barrierState, error) {
	return b.readStateUsing(ctx, s, b.fillFromServers)
}

// readStateUsing reads the record, and completes the state with rest. It reads again if a round has
// begun between the two reads.
func (b *storedBarrier) readStateUsing(ctx context.Context, s *framework.Session,
	rest func(context.Context, *framework.Session, barrierState) (barrierState, error)) (barrierState, error) {
	for {
		data, stat, err := s.Get(ctx, b.path)
		if err != nil {
			return barrierState{}, err
		}
		seen, err := rest(ctx, s, barrierState{memberDirectory: memberDirectory{czxid: stat.Czxid}, recordData: data,
			phase: stat.Version, epoch: s.Epoch()})
		if !errors.Is(err, recipe.ErrAgain) {
			return seen, err
		}
	}
}

// checkSizeOf refuses a barrier with a different number of members.
func (b *storedBarrier) checkSizeOf(state barrierState) error {
	if state.size != b.size {
		return &MismatchError{b.path, state.size, b.size}
	}
	return nil
}

// checkStored reads the barrier's state and refuses a different number of members.
func (b *storedBarrier) checkStored(ctx context.Context, s *framework.Session) error {
	if err := s.Sync(ctx, b.path); err != nil { // this server may not know the newest number yet
		return err
	}
	state, err := b.readState(ctx, s)
	if err != nil {
		return err
	}
	return b.checkSizeOf(state)
}

// createOrCheck creates the barrier, or reads the existing one, before the first use in this
// process.
func (b *storedBarrier) createOrCheck(ctx context.Context, s *framework.Session) error {
	if b.cachedState().recordData != nil {
		return nil
	}
	for {
		err := b.checkStored(ctx, s)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			err = b.createNodes(ctx, s)
		case errors.Is(err, errMismatch):
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
func (b *storedBarrier) createNodes(ctx context.Context, s *framework.Session) error {
	in := newDirectoryName()
	_, err := s.Multi(ctx,
		framework.CreateOp(b.path, nodeRecord{Kind: doubleKind, Size: b.size, In: in}.encode(), framework.Persistent),
		framework.CreateOp(znode.Join(b.path, in), nil, framework.Persistent),
		framework.CreateOp(b.round, nodeRecord{Kind: roundKind}.encode(), framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := znode.Split(b.path)
		return s.MakeDirs(ctx, dir)
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	}
	return err
}

// partIsMissing returns the error for a barrier without one of its parts, or ErrNoNode if the whole
// barrier is gone.
func (b *storedBarrier) partIsMissing(ctx context.Context, s *framework.Session, part string) error {
	if _, err := s.Exists(ctx, b.path); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is missing beside %s: delete the latter to begin anew", errForeign, part, b.path)
}

// changeSize sets this member's number of members, if no member comes for a session timeout.
func (b *storedBarrier) changeSize(ctx context.Context, s *framework.Session) error {
	seen, w, err := b.watchBarrier(ctx, s)
	if err != nil {
		return err
	}
	defer w.Stop()
	r, err := parseBarrierRecord(b.path, seen.recordData)
	if err != nil {
		return err
	}
	former := znode.Join(b.path, r.In)
	there, _, err := b.listMembers(ctx, s, former)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return b.checkStored(ctx, s)
	}
	switch changed, err := waitForWatchOrTimeout(ctx, s, w, s.Timeout()); {
	case err != nil:
		return err
	case changed: // a member came, perhaps with this member's number
		return b.checkStored(ctx, s)
	}
	r.Size, r.In = b.size, newDirectoryName()
	record := r.encode()
	ops := []framework.Op{
		framework.DeleteOp(former, framework.AnyVersion), // refused while a member is there
		framework.CreateOp(znode.Join(b.path, r.In), nil, framework.Persistent),
		framework.SetOp(b.path, record, seen.phase),
	}
	end := seen.phase + 1
	if !seen.roundIsInside() { // else all members of that round have died
		ops = append(ops, framework.SetOp(b.path, record, end))
		end++
	}
	round := nodeRecord{Kind: roundKind, Phase: end}.encode() // before the first round of the new directory
	_, err = s.Multi(ctx, append(ops, framework.SetOp(b.round, round, framework.AnyVersion))...)
	switch {
	case errors.Is(err, framework.ErrNotEmpty), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrSuspended):
		return b.checkStored(ctx, s) // another member may have done the same
	}
	return err
}

// hasWholeRound reports whether the numbers are those of a whole round: as many as members, in
// their order, and below base.
func (state barrierState) hasWholeRound() bool {
	for i, n := range state.numbers {
		if n-state.base >= 0 || i > 0 && n-state.numbers[i-1] <= 0 {
			return false
		}
	}
	return len(state.numbers) == state.size
}

// isInsideAs reports whether the member with this number in this directory is inside.
func (state barrierState) isInsideAs(in memberDirectory, number int32) bool {
	return state.memberDirectory == in && state.roundIsInside() && slices.Contains(state.numbers, number)
}

// memberPath is the node of a number.
func (d memberDirectory) memberPath(number int32) string {
	return znode.Join(d.in, memberNodeName(number))
}

// listMembers returns the numbers of the members that exist in their directory.
func (b *storedBarrier) listMembers(ctx context.Context, s *framework.Session,
	in string) ([]int32, framework.Stat, error) {
	names, stat, err := s.Children(ctx, in)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, stat, b.partIsMissing(ctx, s, in)
	}
	if err != nil {
		return nil, stat, err
	}
	numbers := make([]int32, 0, len(names))
	for _, name := range names {
		if n, ok := parseMemberNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, stat, nil
}

// waitForWatchOrTimeout waits for a change, for at most d.
func waitForWatchOrTimeout(ctx context.Context, s *framework.Session, w *framework.Watch,
	d time.Duration) (changed bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	source, event, err := recipe.WaitForFirst(ctx, s.Context(), recipe.Sources{Watch: w, Timer: t.C})
	if err == nil && event.Kind == framework.Reconnected {
		err = recipe.ErrAgain
	}
	return source == recipe.FromWatch, err
}
