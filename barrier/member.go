package barrier

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
)

// member is one Enter: it has a place in the barrier's directory, and waits for its round.
type member struct {
	b *DoubleBarrier
	s *framework.Session
	memberNode
	known barrierState // of the barrier, when the place was asked for
	hold  *framework.Hold
	overflow
}

// errMayBeInside says that a place was lost when its member may have been inside already.
var errMayBeInside = errors.New("the place was lost as a round began with it")

// enterOnSession takes a place in the session and waits for a round. It leaves no node behind when it fails.
func (m *member) enterOnSession(ctx, linger context.Context, s *framework.Session) (*Round, error) {
	if err := m.recoverPlace(ctx, s); err != nil {
		return nil, err
	}
	m.s = s
	if err := m.b.createOrCheck(ctx, s); err != nil {
		return nil, err
	}
	m.known, m.overflow = m.b.cachedState(), overflow{}
	if err := m.createNode(linger); err != nil {
		return nil, err
	}
	var err error
	if m.hold, err = s.Hold(ctx, m.node); err != nil {
		return nil, err
	}
	begun, err := m.waitForRound(ctx)
	if err != nil {
		begun, err = m.withdrawOrEnter(linger, err)
	}
	if err != nil {
		m.hold.End(err)
		return nil, err
	}
	return m.newRound(begun)
}

// newRound makes the round, unless the session was lost meanwhile.
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

// createMemberNode creates a member's node, whatever becomes of the replies, for as long as the session lasts.
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

// findMemberNode looks for the node that holds data, in case that a create was applied whose reply was lost.
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

// numbering tells which nodes the numbers of members are of: they begin again with a new members' directory.
type numbering struct {
	made   int64 // the transaction that has created the barrier
	origin int32 // the phase from which the numbers are counted
}

// memberNode is a member's node. Its name may become another's once it is gone: what it holds does not.
type memberNode struct {
	data     []byte // of the node that was asked for last
	node     string // "" while there is none
	number   int32
	mayExist bool // whether there is a node: its create was asked for, and nobody has said what came of it
	numbering
}

// setPath notes the member's place.
func (p *memberNode) setPath(node string) error {
	number, ok := parseMemberNumber(node)
	if !ok {
		return fmt.Errorf("%w: a member's node is called %s", ErrForeign, node)
	}
	p.node, p.number = node, number
	return nil
}

// isOwn looks whether the node is there and still this member's.
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
			s.DiscardOwn(nil, framework.Created{Path: p.node, Zxid: st.Czxid})
		}
	}()
}

// withdrawOrEnter deletes the member's node, by a transaction that proves that no round has begun with it, and
// returns why it did. If one has, that is returned.
func (m *member) withdrawOrEnter(ctx context.Context, why error) (barrierState, error) {
	for {
		st, own, err := m.readStateAndNode(ctx, m.s, m.b.readState)
		switch {
		case err == nil && !own: // it is gone with its session, or with the barrier
			return barrierState{}, why
		case err == nil && st.isInsideAs(m.number):
			if err := m.b.checkSizeOf(st); err != nil { // to the others, it has died inside
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
		case errors.Is(err, errAgain):
		case placeWasLost(err) && placeWasLost(why):
			return barrierState{}, why // the next session finds out
		default:
			m.discardIfOwn(m.s)
			return barrierState{}, why
		}
	}
}

// placeWasLost reports whether a place was lost.
func placeWasLost(err error) bool {
	return errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNodeGone)
}

// readStateAndNode reads the barrier's state, and then whether the member's node is there. If so, its number is one of
// those that the state tells of: a directory that is not empty is not replaced.
func (m *member) readStateAndNode(ctx context.Context, s *framework.Session, read stateReader) (st barrierState, own bool, err error) {
	if st, err = read(ctx, s); err == nil {
		own, _, err = m.isOwn(ctx, s)
	}
	return st, own, err
}

// deleteNodeAtPhase deletes the member's node, which was there in this state, if the barrier is still in it.
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
		return errAgain
	case errors.Is(err, framework.ErrSuspended):
		return errAgain
	}
	return err
}

// recoverPlace gives up the place in a session that was lost: its node may outlast it for a while. It
// fails if a round may have begun with that.
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
		case err == nil && inside || errors.Is(err, framework.ErrNoNode): // nothing tells what came of a barrier that is gone
			return diedInside()
		case err == nil:
			m.node = ""
		case !errors.Is(err, errAgain):
			return err
		}
	}
	return nil
}

// findOrphan looks for a node whose create may have been applied. If there is none any more and a round has begun since, that
// may have been with it.
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

// diedInside is the error of a member that may have been inside when it lost its place.
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

// addMayHaveBegun adds to the error of a member that has a place, or may have one, that its round may have begun.
func (m *member) addMayHaveBegun(err error) error {
	if m.node == "" && !m.mayExist {
		return err
	}
	return roundMayHaveBegun(err)
}

// memberName is what members' nodes are called, before their numbers.
const (
	memberName = "m-"
	memberKind = "member"
)

// parseMemberNumber reads a member's number, an int32 that may have wrapped.
func parseMemberNumber(node string) (int32, bool) {
	_, name := framework.Split(node)
	digits, ok := strings.CutPrefix(name, memberName)
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil && name == memberNodeName(int32(n)) // only what a server would write
}

func memberNodeName(number int32) string { return fmt.Sprintf("%s%010d", memberName, number) }

// memberPath is the node of a number.
func (b *DoubleBarrier) memberPath(number int32) string {
	return framework.Join(b.in, memberNodeName(number))
}

func (st barrierState) isInsideAs(number int32) bool {
	return st.roundIsInside() && slices.Contains(st.numbers, number)
}

// waitForRound waits for a round that lets this member in, and begins it when all are there.
func (m *member) waitForRound(ctx context.Context) (barrierState, error) {
	if st := m.b.cachedState(); st.numbering == m.numbering && !st.roundIsInside() && m.number-st.base == int32(m.b.size)-1 {
		if begun, err := m.beginRound(ctx, st, m.expectedNumbers(st)); err == nil || !errors.Is(err, errAgain) {
			return begun, err
		}
	}
	for {
		begun, err := m.waitOneStep(ctx)
		if !errors.Is(err, errAgain) {
			return begun, err
		}
	}
}

// expectedNumbers are the numbers from the first that can be of the next round to this member's own: who is the n-th by
// its number need not list the others, since the transaction finds out whether they are there.
func (m *member) expectedNumbers(st barrierState) []int32 {
	numbers := make([]int32, m.b.size)
	for i := range numbers {
		numbers[i] = st.base + int32(i)
	}
	return numbers
}

// waitOneStep looks at the barrier, does what is this member's turn to do, and waits for a change.
func (m *member) waitOneStep(ctx context.Context) (barrierState, error) {
	seen, w, err := m.b.watchBarrier(ctx, m.s)
	if err != nil {
		return barrierState{}, err
	}
	defer w.Stop()
	if m.made != 0 && seen.made != m.made {
		return barrierState{}, fmt.Errorf("%w: %s was deleted, and made anew without this member", framework.ErrNoNode, m.b.path)
	}
	if begun, ok := m.admittedBy(m.b.cachedState(), seen); ok {
		return begun, nil
	}
	st, err := m.b.fillFromCache(ctx, m.s, seen)
	if err != nil {
		return barrierState{}, err
	}
	if err := m.b.checkSizeOf(st); err != nil {
		return barrierState{}, err
	}
	if st.isInsideAs(m.number) {
		return st, nil
	}
	if err := m.checkPassedRound(ctx, st); err != nil {
		return barrierState{}, err
	}
	switch {
	case st.roundIsInside():
		return barrierState{}, m.waitForRoundInside(ctx, st, w)
	case m.number-st.base >= int32(m.b.size)-1:
		begun, err := m.beginRoundWithListed(ctx, st)
		if !errors.Is(err, errTooFewMembers) {
			return begun, err
		}
	}
	return m.waitWhileGathering(ctx, st, w)
}

// admittedBy tells from the state before whether the round that was seen has let this member in.
func (m *member) admittedBy(before, seen barrierState) (barrierState, bool) {
	if begun := before.afterBegin(m.b.size); before.admits(m.number, m.b.size) && begun.equals(seen) {
		m.b.cacheState(begun)
		return begun, true
	}
	return barrierState{}, false
}

// waitWhileGathering waits while members gather. The change of the phase is the beginning of a round.
func (m *member) waitWhileGathering(ctx context.Context, st barrierState, w *framework.Watch) (barrierState, error) {
	select {
	case ev := <-w.C():
		if ev.Kind == framework.NodeChanged && !st.staleWatch && st.admits(m.number, m.b.size) {
			begun := st.afterBegin(m.b.size)
			m.b.cacheState(begun)
			return begun, nil
		}
		return barrierState{}, errAgain
	case <-ctx.Done():
		return barrierState{}, framework.Ended(ctx)
	case <-m.hold.Context().Done():
		return barrierState{}, context.Cause(m.hold.Context())
	}
}

// errTooFewMembers says that not enough members are there.
var errTooFewMembers = errors.New("not enough members")

// beginRoundWithListed begins a round with the first members that are there.
func (m *member) beginRoundWithListed(ctx context.Context, st barrierState) (barrierState, error) {
	numbers, listed, err := m.b.listMembers(ctx, m.s)
	if err != nil {
		return barrierState{}, err
	}
	m.overflow = overflow{phase: st.phase + 1, leftBefore: listed.Version} // if the next round begins without this member
	numbers = slices.DeleteFunc(numbers, func(n int32) bool { return n-st.base < 0 })
	slices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(x-y, 0) })
	if len(numbers) < m.b.size {
		return barrierState{}, errTooFewMembers
	}
	return m.beginRound(ctx, st, numbers[:m.b.size])
}

// listMembers returns the numbers of those who are there.
func (b *DoubleBarrier) listMembers(ctx context.Context, s *framework.Session) ([]int32, framework.Stat, error) {
	names, st, err := s.Children(ctx, b.in)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, st, b.partIsMissing(ctx, s, b.in)
	}
	if err != nil {
		return nil, st, err
	}
	numbers := make([]int32, 0, len(names))
	for _, name := range names {
		if n, ok := parseMemberNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers, st, nil
}

// beginRound begins a round with these members, in the order of their numbers, if all of them are there and the
// barrier is in this state.
func (m *member) beginRound(ctx context.Context, st barrierState, numbers []int32) (barrierState, error) {
	begun := st.afterBegin(m.b.size)
	begun.base, begun.numbers = numbers[len(numbers)-1]+1, numbers
	ops := make([]framework.Op, 0, len(numbers)+2)
	for _, n := range numbers {
		ops = append(ops, framework.CheckOp(m.b.memberPath(n), framework.AnyVersion))
	}
	ops = append(ops, framework.SetOp(m.b.path, st.recordData, st.phase), framework.SetOp(m.b.round,
		record{Kind: roundKind, Phase: begun.phase, Origin: begun.origin, Base: begun.base, Numbers: numbers}.encode(), framework.AnyVersion))
	_, err := m.s.Multi(ctx, ops...)
	switch {
	case err == nil:
		m.b.cacheState(begun)
		if begun.isInsideAs(m.number) {
			return begun, nil
		}
		return barrierState{}, errAgain
	case errors.Is(err, framework.ErrNoNode): // a server that lags behind lists the dead
		if err := m.s.Sync(ctx, m.b.path); err != nil {
			return barrierState{}, err
		}
		return barrierState{}, errAgain
	case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended):
		return barrierState{}, errAgain
	}
	return barrierState{}, err
}

// overflow are a round of others, beside which this member was there: if all of them leave alive, it is one too many.
// Who has died may have been its own former self.
type overflow struct {
	phase      int32     // of their round; 0 if none is known
	leftBefore int32     // how many members had ever left the barrier alive before any of them did
	since      time.Time // since when all of them are inside, as far as this member knows
}

// checkPassedRound judges the round that has passed without this member. It says nothing of one of which it does not know how
// many had left before, nor once another has begun.
func (m *member) checkPassedRound(ctx context.Context, st barrierState) error {
	if m.phase == 0 || st.phase-m.phase <= 0 {
		return nil
	}
	next := st.phase == m.phase+1
	m.phase = 0
	if !next {
		return nil
	}
	in, err := m.s.Exists(ctx, m.b.in)
	if err == nil && int(in.Version-m.leftBefore) >= m.b.size {
		err = m.tooManyError()
	}
	return err
}

func (m *member) tooManyError() error {
	return fmt.Errorf("%w: a round of %d has passed beside this member", ErrTooMany, m.b.size)
}

// waitForRoundInside waits while a round is inside that has no place for this member: it came early, since one of
// those inside is dead, or it is one too many.
func (m *member) waitForRoundInside(ctx context.Context, st barrierState, w *framework.Watch) error {
	rest, listed, err := m.b.listInside(ctx, m.s, st)
	switch {
	case err != nil:
		return err
	case len(rest) == 0: // the last of that round has not ended it yet, or is dead
		return m.b.endRound(ctx, m.s, st)
	}
	patience := time.Duration(-1)
	if len(rest) == m.b.size {
		if m.phase != st.phase {
			m.overflow = overflow{phase: st.phase, leftBefore: listed.Version}
		}
		if m.since.IsZero() {
			m.since = time.Now()
		}
		if patience = m.s.Timeout()*3/2 - time.Since(m.since); patience <= 0 { // the dead are gone by then
			return fmt.Errorf("%w: all %d members are inside", ErrTooMany, m.b.size)
		}
	}
	return m.b.waitForRoundChange(ctx, m.hold.Context(), m.s, roundChange{w, rest[0], patience})
}

// listInside lists which members of the round that is inside are there.
func (b *DoubleBarrier) listInside(ctx context.Context, s *framework.Session, st barrierState) ([]int32, framework.Stat, error) {
	there, listed, err := b.listMembers(ctx, s)
	rest := slices.DeleteFunc(there, func(n int32) bool { return !slices.Contains(st.numbers, n) })
	slices.Sort(rest) // so that all who wait for one wait for the same
	return rest, listed, err
}

// roundChange is what waitForRoundChange waits for: a change of the phase, the end of a member, or some time if it is not
// negative.
type roundChange struct {
	phase    *framework.Watch
	number   int32
	patience time.Duration
}

// waitForRoundChange waits for one of several things, and returns errAgain then, until one of two contexts ends.
func (b *DoubleBarrier) waitForRoundChange(ctx, place context.Context, s *framework.Session, a roundChange) error {
	_, _, gone, err := s.WatchData(ctx, b.memberPath(a.number))
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

// endRound ends the round of which nobody is left. It returns errAgain when it has ended.
func (b *DoubleBarrier) endRound(ctx context.Context, s *framework.Session, st barrierState) error {
	_, err := s.Set(ctx, b.path, st.recordData, st.phase)
	if err == nil {
		b.cacheState(st.afterEnd())
	}
	if err == nil || errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) {
		return errAgain
	}
	return err
}

// waitForWatchOrTimeout waits for a change, or until d is over.
func waitForWatchOrTimeout(ctx context.Context, s *framework.Session, w *framework.Watch, d time.Duration) (changed bool, err error) {
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
