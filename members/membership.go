package members

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Membership is one process's membership of a group. It lasts until Leave, or until the client is closed. It is safe for concurrent use.
type Membership struct {
	group *Group
	id    string
	duty  *cordonDuty
	tel   telemetry

	ctx   context.Context
	leave context.CancelCauseFunc
	wake  chan struct{} // has room for one: there is something to write

	mu       sync.Mutex
	info     Info
	revision int64         // counts the changes of info, from 1
	stored   int64         // the revision that the servers have
	changed  chan struct{} // closed and replaced when stored rises

	first  sync.Once
	listed chan struct{} // closed once the member is listed
	gone   chan struct{} // closed when the membership has ended
	err    error         // why; read it after gone

	former []string // nodes that may be there, of sessions before; of the goroutine of stayListed alone
}

// Join joins the group under an ID and returns once the member is listed and knows whether it is cordoned. The membership survives lost sessions. Several processes should not have one ID: they
// would be shown as one member.
//
// The error wraps ErrInvalid, framework.ErrClosed or framework.ErrNoAuth, or is that of ctx. No node stays behind then.
func (g *Group) Join(ctx context.Context, id string, info Info, opts ...JoinOption) (*Membership, error) {
	o, err := recipe.ApplyOptions(joinOptions{}, opts)
	if err = errors.Join(g.err, checkID(id), info.checkInfo(), err); err != nil {
		return nil, failure.Wrap("join", g.path, err)
	}
	m := &Membership{
		group: g, id: id, wake: make(chan struct{}, 1), info: info.cloneInfo(), revision: 1, changed: make(chan struct{}),
		listed: make(chan struct{}), gone: make(chan struct{}),
	}
	m.ctx, m.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	m.tel = newTelemetry(g.client)
	m.duty = newDuty(g, id, o.drain, m.signalChange, m.tel)
	go m.stayOnSessions()
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

// Info is what the member tells of itself, as it was joined with or changed last.
func (m *Membership) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info.cloneInfo()
}

// Update changes what the member tells of itself, and returns when the servers have that, or something later. The latest change counts, also on the next session. Each update is a
// write that all watchers read: tell a load every few seconds, not with every request. change must not call Update.
//
// The error wraps ErrInvalid, ErrLeft or framework.ErrClosed, or is that of ctx. When ctx ends, the change may still be made, and on the next session it is.
func (m *Membership) Update(ctx context.Context, change func(*Info)) error {
	m.mu.Lock()
	next := m.info.cloneInfo()
	change(&next)
	if err := next.checkInfo(); err != nil {
		m.mu.Unlock()
		return failure.Wrap("update", m.group.path, err)
	}
	m.info = next.cloneInfo()
	m.revision++
	mine := m.revision
	m.mu.Unlock()
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
		case <-m.gone:
			return failure.Wrap("update", m.group.path, m.err)
		case <-ctx.Done():
			return failure.Wrap("update", m.group.path, failure.Ended(ctx))
		}
	}
}

// Cordon returns what an operator asks of this member, or false. It reads memory. After a lost connection it is what was known before, until the servers answer again.
func (m *Membership) Cordon() (Cordon, bool) {
	c := m.duty.cordon.Load()
	if c == nil {
		return Cordon{}, false
	}
	return *c.cloneCordon(), true
}

// Healthy returns an error that wraps ErrCordoned while the member is cordoned. It is for the health checks of others: election.WithHealth keeps a cordoned member from
// leading, and registry.WithHealth keeps calls away from it.
func (m *Membership) Healthy(context.Context) error {
	c := m.duty.cordon.Load()
	switch {
	case c == nil:
		return nil
	case c.Reason != "":
		return fmt.Errorf("%w: %s", ErrCordoned, c.Reason)
	}
	return ErrCordoned
}

// Leave takes the member out of the group. It waits until its node is gone and its drain function has ended, or ctx ends. After that the deletion goes on in the background,
// and Client.Close waits for it. The error is nil in either case. A second call is harmless. A cordon of the member stays.
func (m *Membership) Leave(ctx context.Context) error {
	m.leave(ErrLeft)
	select {
	case <-m.gone:
	case <-ctx.Done():
	}
	return nil
}

// signalChange has the membership look for something to write.
func (m *Membership) signalChange() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// stayOnSessions keeps the member listed, on session after session, until it leaves or the client is closed.
func (m *Membership) stayOnSessions() {
	defer close(m.gone)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.duty.followCordon(m.ctx)
	}()
	select {
	case <-m.duty.known:
		m.err = m.stayListed()
	case <-ended:
		m.err = m.duty.err
	}
	if m.ctx.Err() != nil && !errors.Is(m.err, framework.ErrClosed) {
		m.err = ErrLeft
	}
	m.leave(ErrLeft)
	<-ended
}

func (m *Membership) stayListed() error {
	c := m.group.client
	pauses := recipe.NewBackoff(c)
	for {
		err := recipe.OnSession(m.ctx, c, m.stayOnSession, failure.IsTransient, isUnknown)
		if m.ctx.Err() != nil || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) || !m.wasListed() {
			return err
		}
		c.Logger().Warn("a member was removed from its group and joins again", "path", m.group.path, "error", err)
		if err := pauses.Pause(m.ctx); err != nil {
			return err
		}
	}
}

func (m *Membership) wasListed() bool {
	select {
	case <-m.listed:
		return true
	default:
		return false
	}
}

// stayOnSession is the membership on one session. It ends with the membership, the session, or the node. Each session has a node of its own name, so a late write of a
// former session cannot change what this one tells.
func (m *Membership) stayOnSession(s *framework.Session) error {
	data, revision, err := m.nodeRecord()
	if err != nil {
		return err
	}
	name := znode.ProtectedPrefix + uuid.NewString() + "-" + memberName
	node := m.group.nodePath(name)
	_, err = s.Primitives().CreateProtected(m.ctx, primitives.ProtectedCreate{Dir: m.group.path, Name: name, Data: data, Plain: true, Unnumbered: true})
	if err == nil {
		defer func() { <-s.Primitives().Discard(nil, node).Done() }()
		err = m.deleteFormer(s)
	}
	m.former = append(m.former, node) // also without an answer: it may have been created
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

// deleteFormer deletes the nodes of the membership's former sessions, which the servers may keep for another session timeout: when the member leaves, they would show it as it was.
func (m *Membership) deleteFormer(s *framework.Session) error {
	for len(m.former) > 0 {
		if err := s.DeleteIfPresent(m.ctx, m.former[0]); err != nil {
			return err
		}
		m.former = m.former[1:]
	}
	return nil
}

// nodeRecord is what the member's node is to have, and its revision.
func (m *Membership) nodeRecord() (data []byte, revision int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err = memberRecord{m.id, m.info.Metadata, m.info.Version, m.info.Load}.encode()
	return data, m.revision, err
}

// confirmRevision notes that the servers have a revision.
func (m *Membership) confirmRevision(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.stored {
		m.stored = revision
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// keepNode writes what is to be told, and waits until there is something new. A write whose reply was lost is found by reading the node again.
func (m *Membership) keepNode(s *framework.Session, node string) error {
	present, st, changed, err := s.WatchData(m.ctx, node)
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
		_, err := s.Multi(m.ctx, framework.SetOp(node, data, st.Version), m.group.announceOp())
		if isRaced(err) || isUnknown(err) || failure.IsTransient(err) && s.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
		m.tel.countUpdate()
	}
	m.confirmRevision(revision)
	if err := m.duty.writeAnswer(m.ctx, s, node); err != nil {
		return err
	}
	_, _, err = recipe.WaitForFirst(m.ctx, s.Context(), recipe.Sources{Watch: changed, Signal: m.wake})
	return err
}
