package scheduler

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// membership is this member's node among the members, with one session, and the descriptions of all
// members.
type membership struct {
	store   *store
	report  *reporter
	session *framework.Session
	labels  map[string]string
	keys    func(Placement) []uint32 // of this member's jobs
	changed func()                   // called when the members or their descriptions have changed

	name   string          // of the node
	reused bool            // a former node of this member had the same name
	exists context.Context // done when the node is gone, or the session has ended
	leave  context.CancelCauseFunc

	// has a token while the description is written; a channel, since others that wait for it may
	// give up
	writing       chan struct{}
	writtenData   []byte   // the description that is stored and announced; nil if that is not known
	announcedKeys []uint32 // the jobs of Placement Spread in it

	descriptionsChanged chan struct{} // buffered: descriptions have changed

	mu       sync.Mutex
	members  []member // by node
	outdated bool     // their descriptions must be read again
}

func newMembership(store *store, report *reporter, session *framework.Session, name string) *membership {
	return &membership{
		store: store, report: report, session: session, name: name, writing: make(chan struct{}, 1),
		descriptionsChanged: make(chan struct{}, 1),
	}
}

// createNode creates the member node.
func (m *membership) createNode(ctx context.Context) (primitives.Created, error) {
	data, described, err := m.describeMember()
	if err != nil {
		return primitives.Created{}, err
	}
	created, err := primitives.Of(m.session).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: m.store.nodes.Members(), Name: m.name, Plain: true, Data: data, Unnumbered: true,
	})
	if err != nil {
		return primitives.Created{}, err
	}
	if !m.reused {
		// else updateDescription announces it: other members may know the description of the former
		// node, and not that it was deleted
		m.writtenData, m.announcedKeys = data, described.keys
	}
	node := created.Nodes[0]
	m.exists, m.leave = recipe.WhileNodeExists(m.session, node, 0)
	return node, nil
}

// describeMember returns what this member stores of itself.
func (m *membership) describeMember() (data []byte, described member, err error) {
	described = member{id: m.store.client.Config().Identity, labels: m.labels, keys: m.keys(Spread),
		leads: m.keys(OnLeader)}
	data, err = described.encode()
	return data, described, err
}

// updateDescription stores the description if it has changed. It announces the change if the jobs
// of Placement Spread in it have changed, since they decide which member owns a job. One caller at
// a time writes: a write whose reply was lost is repeated, and must then store the latest
// description.
func (m *membership) updateDescription(ctx context.Context) error {
	select {
	case m.writing <- struct{}{}:
		defer func() { <-m.writing }()
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
	data, described, err := m.describeMember()
	if err != nil {
		return err
	}
	if !bytes.Equal(data, m.writtenData) {
		m.writtenData = nil
		_, err = m.session.Set(ctx, m.store.nodes.Member(m.name), data, framework.AnyVersion)
		if errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNoNode) {
			return nil // the membership is over, and the next one begins with the right description
		}
	}
	if err == nil && (m.announcedKeys == nil || !slices.Equal(described.keys, m.announcedKeys)) {
		m.announcedKeys = nil
		err = m.store.announceChanges(ctx)
	}
	if err == nil {
		m.writtenData, m.announcedKeys = data, described.keys
	}
	return err
}

// updateUntilDone tries to store and announce the description until that has succeeded or ctx ends.
// If it fails, the next member session begins with the right description.
func (m *membership) updateUntilDone(ctx context.Context) {
	back := recipe.NewBackoff(m.store.client)
	for {
		err := m.store.onSession(ctx, func(*framework.Session) error { return m.updateDescription(ctx) })
		if err == nil || ctx.Err() != nil {
			return
		}
		m.report.warn("the description of this member cannot be stored or announced yet", "error", err)
		_ = back.Pause(ctx) // the next attempt ends with ctx
	}
}

// watchMembers follows the members and their descriptions until ctx ends.
func (m *membership) watchMembers(ctx context.Context) {
	repeatStep(ctx, m.store.client, m.report, "the members cannot be read", func() error {
		names, _, w, err := m.session.WatchChildren(ctx, m.store.nodes.Members())
		if err != nil {
			return err
		}
		defer w.Stop()
		refused, err := m.readMembers(ctx, names)
		if err != nil {
			return err
		}
		var retry <-chan time.Time
		if refused {
			retry = time.After(refusedReadAgainAfter)
		}
		select {
		case <-w.C():
		case <-retry:
		case <-m.descriptionsChanged:
			m.mu.Lock()
			m.outdated = true
			m.mu.Unlock()
		case <-ctx.Done():
		}
		return nil
	})
}

// rereadDescriptions makes watchMembers read the descriptions of all members again.
func (m *membership) rereadDescriptions() {
	select {
	case m.descriptionsChanged <- struct{}{}:
	default:
	}
}

// refusedReadAgainAfter is how long after a refusal a member reads a node again: somebody may have
// granted the permission.
const refusedReadAgainAfter = time.Minute

// readMembers reads the descriptions of new members, or of all if they are outdated. It leaves out
// members whose descriptions cannot be read. refused says that the servers refuse to show one of
// them.
//
// Members with other credentials may see more descriptions or fewer, and then several members may
// take themselves for the owner of one job. The first of them to claim a tick runs it. At least one
// member takes itself for the owner: the member that ownerAmong prefers of all that are there sees
// its own description, and no other hides it.
func (m *membership) readMembers(ctx context.Context, names []string) (refused bool, err error) {
	slices.Sort(names)
	members := make([]member, 0, len(names))
	for _, name := range names {
		described, known := m.cachedMember(name)
		if !known {
			described, err = m.readMember(ctx, name)
			switch {
			case errors.Is(err, framework.ErrNoNode):
				continue
			case errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer),
				errors.Is(err, framework.ErrNoAuth):
				m.report.warn("the description of a member cannot be read, so it gets no jobs", "member",
					name, "error", err)
				refused = refused || errors.Is(err, framework.ErrNoAuth)
				continue
			case err != nil:
				return false, err
			}
		}
		members = append(members, described)
	}
	m.mu.Lock()
	m.members, m.outdated = members, false
	m.mu.Unlock()
	m.changed()
	return refused, nil
}

// readMember reads the description of a member. This member knows its own, if it may not read it.
func (m *membership) readMember(ctx context.Context, name string) (described member, err error) {
	data, _, err := m.session.Get(ctx, m.store.nodes.Member(name))
	switch {
	case err == nil:
		return decodeMember(name, data)
	case errors.Is(err, framework.ErrNoAuth) && name == m.name:
		_, described, err = m.describeMember()
		described.node = name
	}
	return described, err
}

func (m *membership) cachedMember(name string) (member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := slices.BinarySearchFunc(m.members, name,
		func(m member, name string) int { return strings.Compare(m.node, name) })
	if !known || m.outdated {
		return member{}, false
	}
	return m.members[i], true
}

// presentMembers returns the members that were there when they were last read.
func (m *membership) presentMembers() []member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members
}

// memberGuard returns the operation that refuses a transaction unless this member is among the
// members.
func (m *membership) memberGuard() framework.Op {
	return primitives.When(framework.CheckOp(m.store.nodes.Member(m.name), framework.AnyVersion),
		func() error { return context.Cause(m.exists) })
}

// repeatStep repeats a step until ctx ends, after a pause when it has failed.
func repeatStep(ctx context.Context, client *framework.Client, report *reporter, trouble string, step func() error) {
	back := recipe.NewBackoff(client)
	for ctx.Err() == nil {
		err := step()
		if err == nil {
			back.Reset()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		report.warn(trouble+" yet", "error", err)
		_ = back.Pause(ctx) // the loop ends with ctx
	}
}
