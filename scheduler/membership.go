package scheduler

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// membership is this member's node among the members, with one session, and what all members say of themselves.
type membership struct {
	store   *store
	report  *reporter
	session *framework.Session
	labels  map[string]string
	keys    func() []uint32 // of this member's jobs of Placement Spread
	changed func()          // called when the members or their descriptions have changed

	name string          // of the node
	hold *framework.Hold // on it

	writing chan struct{} // taken while the description is written; a channel, as it is held while waiting
	written []byte        // the description that is stored and announced; nil if that is not known

	revised chan struct{} // buffered: descriptions have changed

	mu       sync.Mutex
	members  []member // by node
	outdated bool     // their descriptions are to be read again
}

func newMembership(store *store, report *reporter, session *framework.Session, name string) *membership {
	return &membership{
		store: store, report: report, session: session, name: name, writing: make(chan struct{}, 1), revised: make(chan struct{}, 1),
	}
}

// join creates the member node.
func (m *membership) join(ctx context.Context) (framework.Created, error) {
	data, err := m.describe()
	if err != nil {
		return framework.Created{}, err
	}
	created, err := m.session.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: m.store.nodes.members(), Name: m.name, Plain: true, Data: data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return framework.Created{}, err
	}
	m.written = data
	node := created.Nodes[0]
	m.hold, err = m.session.Primitives().Hold(context.Background(), node.Path)
	return node, err
}

// describe returns what this member stores of itself.
func (m *membership) describe() ([]byte, error) {
	return member{id: m.store.client.Config().Identity, labels: m.labels, keys: m.keys()}.encode()
}

// updateDescription stores the description and announces it, if it has changed. One caller at a time does, since a write is repeated if its
// reply is lost: it must store the latest.
func (m *membership) updateDescription(ctx context.Context) error {
	select {
	case m.writing <- struct{}{}:
		defer func() { <-m.writing }()
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
	data, err := m.describe()
	if err != nil || bytes.Equal(data, m.written) {
		return err
	}
	m.written = nil
	_, err = m.session.Set(ctx, m.store.nodes.member(m.name), data, framework.AnyVersion)
	if errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNoNode) {
		return nil // the membership is over, and the next one begins with the right description
	}
	if err == nil {
		err = m.store.announce(ctx)
	}
	if err == nil {
		m.written = data
	}
	return err
}

// updateUntilDone stores the description until that has succeeded or ctx ends. If it fails, the next member session's is right.
func (m *membership) updateUntilDone(ctx context.Context) {
	_ = m.store.onSession(ctx, func(*framework.Session) error { return m.updateDescription(ctx) })
}

// watch keeps up with the members until ctx ends.
func (m *membership) watch(ctx context.Context) {
	repeatStep(ctx, m.store.client, m.report, "the members cannot be read", func() error {
		names, _, w, err := m.session.WatchChildren(ctx, m.store.nodes.members())
		if err != nil {
			return err
		}
		defer w.Stop()
		if err := m.refresh(ctx, names); err != nil {
			return err
		}
		select {
		case <-w.C():
		case <-m.revised:
			m.mu.Lock()
			m.outdated = true
			m.mu.Unlock()
		case <-ctx.Done():
		}
		return nil
	})
}

// rereadDescriptions has the descriptions of all members read again.
func (m *membership) rereadDescriptions() {
	select {
	case m.revised <- struct{}{}:
	default:
	}
}

// refresh reads the descriptions of new members, or of all if they are outdated.
func (m *membership) refresh(ctx context.Context, names []string) error {
	slices.Sort(names)
	members := make([]member, 0, len(names))
	for _, name := range names {
		described, known := m.cached(name)
		if !known {
			data, _, err := m.session.Get(ctx, m.store.nodes.member(name))
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err == nil {
				described, err = decodeMember(name, data)
			}
			if errors.Is(err, ErrBadState) || errors.Is(err, ErrNewerState) {
				m.report.warn("the description of a member cannot be read, so it gets no jobs", "member", name, "error", err)
				continue
			}
			if err != nil {
				return err
			}
		}
		members = append(members, described)
	}
	m.mu.Lock()
	m.members, m.outdated = members, false
	m.mu.Unlock()
	m.changed()
	return nil
}

func (m *membership) cached(name string) (member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := slices.BinarySearchFunc(m.members, name, func(m member, name string) int { return strings.Compare(m.node, name) })
	if !known || m.outdated {
		return member{}, false
	}
	return m.members[i], true
}

// present returns the members that were there when they were last read.
func (m *membership) present() []member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members
}

// guard refuses a transaction once this member is not among the members.
func (m *membership) guard() framework.Op {
	return framework.CheckOp(m.store.nodes.member(m.name), framework.AnyVersion).When(m.hold.Err)
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
