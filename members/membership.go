package members

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Membership is one process's membership of a group. It lasts until Leave, or until the client is
// closed. It is safe for concurrent use.
type Membership struct {
	group         *Group
	id            string
	cordonHandler *cordonHandler
	tel           telemetry

	ctx   context.Context
	leave context.CancelCauseFunc // ends ctx
	wake  chan struct{}           // holds one value while there may be something to write

	updating chan struct{} // holds one value while a call of Update changes info

	mu       sync.Mutex
	info     Info
	revision int64         // counts the changes of info, from 1
	stored   int64         // the newest revision that the servers are known to have
	changed  chan struct{} // closed and replaced when stored rises

	first    sync.Once
	listed   chan struct{} // closed once the member is listed
	unlisted chan struct{} // closed when the membership has ended; the drain function may still run
	gone     chan struct{} // closed when the membership has ended and the drain function has returned
	err      error         // why the membership has ended; read it after unlisted

	deletion recipe.LastDeletion // of the latest node

	former []string // nodes of former sessions that may still exist; used only by the goroutine of stayListed
}

// Join joins the group under an ID, and returns once the member is listed and knows whether it is
// cordoned. ctx bounds this call only. The membership survives lost sessions: the member joins
// again by itself. Give each process an ID of its own: several with one ID are shown as one member.
//
// The error wraps framework.ErrInvalid, framework.ErrClosed, framework.ErrAuthFailed or
// framework.ErrNoAuth, or is that of ctx. Then no node stays; if a create is under way, its node is
// deleted in the background.
func (g *Group) Join(ctx context.Context, id string, info Info, opts ...JoinOption) (*Membership, error) {
	o, err := recipe.ApplyOptions(joinOptions{}, opts)
	if err = errors.Join(g.err, checkID(id), info.checkInfo(), err); err != nil {
		return nil, failure.Wrap("join", g.path, err)
	}
	m := &Membership{
		group: g, id: id, wake: make(chan struct{}, 1), updating: make(chan struct{}, 1), info: info.cloneInfo(),
		revision: 1, changed: make(chan struct{}),
		listed: make(chan struct{}), unlisted: make(chan struct{}), gone: make(chan struct{}),
	}
	m.ctx, m.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	m.tel = newTelemetry(g.client)
	m.cordonHandler = newCordonHandler(g, id, o.drain, m.signalChange, m.tel)
	go m.runMembership()
	select {
	case <-m.listed:
		return m, nil
	case <-m.gone:
		err = m.err
	case <-ctx.Done():
		m.leave(ErrLeft)
		err = failure.Ended(ctx)
	}
	return nil, failure.Wrap("join", g.path, err)
}

// ID is the member's name.
func (m *Membership) ID() string { return m.id }

// Info returns the member's description of itself, with the latest Update, also one that the
// servers do not have yet.
func (m *Membership) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info.cloneInfo()
}

// Update changes the member's description of itself, and returns when the servers have the change,
// or a later one. It calls change once. The next session has the description, too. Each update is a
// write that all watchers read: update a load every few seconds, not with every request. Updates
// call their functions one after the other, so change must not call Update. If change panics, the
// description stays as it was.
//
// The error wraps framework.ErrInvalid, ErrLeft or framework.ErrClosed, or is that of ctx. When ctx
// ends, the change stays: it is written later, unless the membership ends before. If ctx ends
// before change was called, there is no change.
func (m *Membership) Update(ctx context.Context, change func(*Info)) error {
	mine, err := m.changeInfo(ctx, change)
	if err != nil {
		return failure.Wrap("update", m.group.path, err)
	}
	m.signalChange()
	for {
		m.mu.Lock()
		stored, changed := m.stored, m.changed
		m.mu.Unlock()
		if stored >= mine {
			return nil
		}
		select {
		case <-changed:
		case <-m.unlisted:
			return failure.Wrap("update", m.group.path, m.err)
		case <-m.ctx.Done(): // the member leaves; the deletion of its node may last as long as the session
			return failure.Wrap("update", m.group.path, m.endOfMembership())
		case <-ctx.Done():
			return failure.Wrap("update", m.group.path, failure.Ended(ctx))
		}
	}
}

// endOfMembership returns why the membership has ended, or is about to end.
func (m *Membership) endOfMembership() error {
	select {
	case <-m.unlisted:
		return m.err
	default:
		return context.Cause(m.ctx)
	}
}

// changeInfo changes the description by a function of the user's, and returns the new revision. It
// calls the function without the mutex: the function may panic, block or call Info.
func (m *Membership) changeInfo(ctx context.Context, change func(*Info)) (revision int64, err error) {
	select {
	case m.updating <- struct{}{}:
		defer func() { <-m.updating }()
	case <-ctx.Done():
		return 0, failure.Ended(ctx)
	}
	next := m.Info()
	change(&next)
	if err := next.checkInfo(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info = next.cloneInfo()
	m.revision++
	return m.revision, nil
}

// Cordon returns the operator's request to this member, or false if there is none. It reads memory.
// While the connection is lost, it returns the last known state.
func (m *Membership) Cordon() (Cordon, bool) {
	c := m.cordonHandler.cordon.Load()
	if c == nil {
		return Cordon{}, false
	}
	return *c.cloneCordon(), true
}

// Healthy returns an error while the member is cordoned. Pass it to the
// health checks of other packages: with election.WithHealth a cordoned member does not lead, and
// with registry.WithHealth its instance gets no calls. Like Cordon it reads memory.
func (m *Membership) Healthy(context.Context) error {
	c := m.cordonHandler.cordon.Load()
	switch {
	case c == nil:
		return nil
	case c.Reason != "":
		return fmt.Errorf("%w: %s", errCordoned, c.Reason)
	}
	return errCordoned
}

// Leave takes the member out of the group. If the drain function has been called, Leave first waits
// until it has returned and the servers have its answer, so that the operator's Drain succeeds. A
// drain that was withdrawn needs no answer, and an answer that the servers refuse is not waited
// for. Then the membership ends, and Leave waits until the member's node is gone.
//
// When ctx ends, Leave no longer waits for a drain function: its context ends with ErrLeft as its
// cause. Give ctx a deadline. The rest is a cleanup (framework.Client.CleanupContext) with a time
// of its own, also if ctx has ended by then. Leave returns nil when the servers have confirmed that
// the member is not listed any more; else the error wraps framework.ErrUnconfirmed and the reason.
// The deletion of the node then goes on in the background, and Client.Close waits for it. If the
// client has no session when the membership ends, Leave does not wait: the servers delete the node
// when they end the lost session. A cordon of the member stays.
func (m *Membership) Leave(ctx context.Context) error {
	m.waitForDrain(ctx)
	m.leave(ErrLeft)
	err := recipe.FinishCleanup(ctx, m.group.client, m.unlisted, m.deletion.Err)
	select {
	case <-m.unlisted:
		select {
		case <-m.gone:
		case <-ctx.Done(): // the drain function may still run
		}
	default: // err says so
	}
	return failure.Wrap("leave", m.group.path, err)
}

// waitForDrain waits until the latest call of the drain function is answered, if there was one, or
// until ctx or the membership ends.
func (m *Membership) waitForDrain(ctx context.Context) {
	for latest := m.cordonHandler.latestDrain(); latest != nil; {
		select {
		case <-latest.answered:
		case <-m.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
		answered := latest
		if latest = m.cordonHandler.latestDrain(); latest == answered {
			return
		}
	}
}

// signalChange wakes keepNode, which writes a changed description or answer.
func (m *Membership) signalChange() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// runMembership follows the cordon, and keeps the member listed once the cordon is known, until the
// member leaves or the client is closed.
func (m *Membership) runMembership() {
	defer close(m.gone)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.cordonHandler.followCordon(m.ctx)
	}()
	select {
	case <-m.cordonHandler.known:
		m.err = m.stayListed()
	case <-ended:
		m.err = m.cordonHandler.err
	}
	if m.ctx.Err() != nil && !errors.Is(m.err, framework.ErrClosed) {
		m.err = ErrLeft
	}
	close(m.unlisted) // before the wait: the drain function may wait for an update
	m.leave(ErrLeft)
	<-ended
}

// stayListed keeps the member listed, on session after session. It returns why the membership has
// ended, or why the member could not be listed for the first time.
func (m *Membership) stayListed() error {
	return recipe.OnSession(m.ctx, m.group.client, m.stayOnSession, failure.IsTransient, isUnknown, m.joinsAgain)
}

// joinsAgain reports whether the member joins again after an error: it was listed before, and
// somebody may grant a missing permission or raise a quota.
func (m *Membership) joinsAgain(err error) bool {
	if errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) || !m.wasListed() {
		return false
	}
	m.group.client.Logger().Warn("a member is no longer listed in its group; it joins again", "path",
		m.group.path, "error", err)
	return true
}

func (m *Membership) wasListed() bool {
	select {
	case <-m.listed:
		return true
	default:
		return false
	}
}

// stayOnSession keeps the member listed on one session. It ends with the membership, the session,
// or the node, and deletes the node. Each session creates a node with another name, so a late write
// of a former session cannot change this session's description.
func (m *Membership) stayOnSession(s *framework.Session) error {
	data, revision, err := m.nodeRecord()
	if err != nil {
		return err
	}
	name := znode.ProtectedPrefix + uuid.NewString() + "-" + memberName
	node := m.group.nodePath(name)
	_, err = primitives.Of(s).CreateProtected(m.ctx,
		primitives.ProtectedCreate{Dir: m.group.path, Name: name, Data: data, Plain: true, Unnumbered: true})
	switch {
	case err == nil:
		defer m.deleteNode(s, node)
		err = m.deleteFormer(s)
	case errors.Is(err, framework.ErrSessionLost): // it may have been created
		m.former = append(m.former, node)
	}
	if err != nil {
		return err
	}
	m.confirmRevision(revision)
	defer m.tel.countJoin(!m.wasListed())()
	m.first.Do(func() { close(m.listed) })
	for {
		if err := m.keepNode(s, node); err != nil {
			return err
		}
	}
}

// deleteNode deletes the member's node on a session, and with it the nodes of former sessions that
// deleteFormer has not deleted: the member is not listed any more then.
func (m *Membership) deleteNode(s *framework.Session, node string) {
	deletion := primitives.Of(s).Discard(nil, node, m.former...)
	m.deletion.Await(deletion)
	if deletion.Err() != nil {
		m.former = append(m.former, node)
	} else {
		m.former = nil
	}
}

// deleteFormer deletes the nodes of the membership's former sessions, which the servers may keep
// for another session timeout. After Leave they would still list the member.
func (m *Membership) deleteFormer(s *framework.Session) error {
	for len(m.former) > 0 {
		if err := s.DeleteIfPresent(m.ctx, m.former[0]); err != nil {
			return err
		}
		m.former = m.former[1:]
	}
	return nil
}

// nodeRecord returns the data for the member's node, and its revision.
func (m *Membership) nodeRecord() (data []byte, revision int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err = memberRecord{m.id, m.info.Metadata, m.info.Version, m.info.Load}.encode()
	return data, m.revision, err
}

// confirmRevision records that the servers have a revision.
func (m *Membership) confirmRevision(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.stored {
		m.stored = revision
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// keepNode writes the member's description and its answer to a cordon, if the nodes have others,
// and waits until there may be something to write. It returns nil to be called again: it reads the
// node then, also to find out whether a write without an answer was applied. Its error is
// framework.ErrNodeGone if the node was deleted.
func (m *Membership) keepNode(s *framework.Session, node string) error {
	present, stat, changed, err := s.WatchData(m.ctx, node)
	if errors.Is(err, framework.ErrNoNode) {
		return framework.ErrNodeGone
	}
	if err != nil {
		return err
	}
	defer changed.Stop()
	data, revision, err := m.nodeRecord()
	if err != nil {
		return err
	}
	if !bytes.Equal(present, data) {
		_, err := s.Multi(m.ctx, framework.SetOp(node, data, stat.Version), m.group.announceOp())
		if isConflict(err) || isUnknown(err) || failure.IsTransient(err) && s.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
		m.tel.countUpdate()
	}
	m.confirmRevision(revision)
	refused, err := m.cordonHandler.writeAnswer(m.ctx, s, node)
	if err != nil {
		return err
	}
	var again <-chan time.Time
	if refused {
		again = time.After(refusedAnswerPause)
	}
	_, _, err = recipe.WaitForFirst(m.ctx, s.Context(), recipe.Sources{Watch: changed, Signal: m.wake, Timer: again})
	return err
}
