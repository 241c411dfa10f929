package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Group is a group of processes that know of each other: which members it has, which have joined, which have left.
//
//	<path>                     container, removed by the server when empty
//	<path>/_c_<uuid>-member    ephemeral, one for each membership; data: JSON {"v":1,"id","metadata"}
//
// Guarantee: a member is listed until it leaves, or its session ends; it joins again by itself on its next session. Not guaranteed: that a
// listed member still runs: a crashed process stays for a session timeout. The list may have changed by the time it is read, and two
// processes may see changes at different times, so a list of members excludes no process from anything.
//
// Other children, such as those of Apache Curator's GroupMember, are shown by their names.
type Group struct {
	client *framework.Client
	path   string
	err    error // of the arguments; every call returns it
}

// memberName is what the name of a member's node ends with.
const memberName = "member"

// NewGroup returns the group at path.
func NewGroup(client *framework.Client, path string) *Group {
	return &Group{client: client, path: path, err: checkPath(client, path)}
}

// Path is the group's directory.
func (g *Group) Path() string { return g.path }

// Member is one member of a group.
type Member struct {
	// ID is the member's name. Two members may have one ID: a restarted process is listed beside its former self until the former
	// session has ended.
	ID string
	// Metadata is what it has joined with.
	Metadata Metadata
	// Node is the path of its node, which stays the same until the member leaves or its session ends.
	Node string
	// Session is the number of its session.
	Session int64
	// Joined is when it joined, by the clock of the ensemble's leader.
	Joined time.Time

	order int64 // of joining
}

// Join joins the group under an id and returns once the member is listed. The membership survives lost sessions. It lasts until Leave, or
// until the client is closed. The error describes a wrong id or wrong metadata, wraps framework.ErrClosed or framework.ErrNoAuth, or is that
// of ctx. No node stays behind then.
func (g *Group) Join(ctx context.Context, id string, metadata Metadata) (*Membership, error) {
	err := g.err
	if err == nil {
		err = errors.Join(checkID(id), metadata.check())
	}
	if err != nil {
		return nil, framework.Wrap("join", g.path, err)
	}
	m, err := g.startMembership(ctx, memberName, memberRecord{ID: id, Metadata: metadata.clone()})
	if err == nil {
		err = m.waitUntilListed(ctx)
	}
	return m, framework.Wrap("join", g.path, err)
}

// List lists the members in the order of joining, in the view of the connected server.
func (g *Group) List(ctx context.Context) ([]Member, error) {
	all, err := g.listMembers(ctx)
	return all, framework.Wrap("members", g.path, err)
}

func (g *Group) listMembers(ctx context.Context) ([]Member, error) {
	if g.err != nil {
		return nil, g.err
	}
	names, _, err := g.client.Children(ctx, g.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, name := range names {
		m, _, err := g.readMember(ctx, g.client, name)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, m)
	}
	sortMembers(all)
	return all, nil
}

// getter is a client or a session.
type getter interface {
	Get(ctx context.Context, path string) ([]byte, framework.Stat, error)
}

// readMember reads one member.
func (g *Group) readMember(ctx context.Context, from getter, name string) (Member, memberRecord, error) {
	node := framework.Join(g.path, name)
	data, st, err := from.Get(ctx, node)
	if err != nil {
		return Member{}, memberRecord{}, err
	}
	r, ours, err := decodeMember(data)
	if err != nil {
		return Member{}, memberRecord{}, fmt.Errorf("%s: %w", node, err)
	}
	if !ours {
		r = memberRecord{ID: name}
	}
	return Member{ID: r.ID, Metadata: r.Metadata, Node: node, Session: st.EphemeralOwner, Joined: st.Ctime, order: st.Czxid}, r, nil
}

func sortMembers(all []Member) {
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.order, b.order) })
}

// Membership is one member's membership of a group. It lasts until Leave, or until the client is closed.
type Membership struct {
	group *Group
	name  string
	data  []byte

	leave  context.CancelFunc
	first  sync.Once
	listed chan struct{} // closed once the member is listed
	gone   chan struct{} // closed when the membership has ended
	err    error         // why; read it after gone
}

// startMembership starts a membership in the background. name is the end of its node's name.
func (g *Group) startMembership(ctx context.Context, name string, r memberRecord) (*Membership, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	m := &Membership{group: g, name: name, data: data, listed: make(chan struct{}), gone: make(chan struct{})}
	ctx, m.leave = context.WithCancel(context.WithoutCancel(ctx))
	go m.keepListed(ctx)
	return m, nil
}

// waitUntilListed waits until the member is listed. When ctx ends before, the membership ends too.
func (m *Membership) waitUntilListed(ctx context.Context) error {
	select {
	case <-m.listed:
		return nil
	case <-m.gone:
		return m.err
	case <-ctx.Done():
		m.leave()
		return framework.Ended(ctx)
	}
}

// Leave takes the member out of the group. It waits until its node is gone, or ctx ends. After that the deletion goes on in the background,
// and Client.Close waits for it. The error is nil in either case. A second call is harmless.
func (m *Membership) Leave(ctx context.Context) error {
	m.leave()
	select {
	case <-m.gone:
	case <-ctx.Done():
	}
	return nil
}

// keepListed keeps the member listed, on session after session, until ctx ends or the client is closed.
func (m *Membership) keepListed(ctx context.Context) {
	defer close(m.gone)
	c := m.group.client
	pauses := recipe.NewBackoff(c)
	for {
		m.err = recipe.OnSession(ctx, c, func(s *framework.Session) error { return m.stayOnSession(ctx, s) })
		if ctx.Err() != nil || errors.Is(m.err, framework.ErrClosed) || errors.Is(m.err, framework.ErrAuthFailed) || !m.wasListed() {
			return
		}
		c.Logger().Warn("a member was removed from its group and joins again", "path", m.group.path, "error", m.err)
		if pauses.Pause(ctx) != nil {
			return
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

// stayOnSession is the membership on one session. It ends with ctx, the session, or the node.
func (m *Membership) stayOnSession(ctx context.Context, s *framework.Session) error {
	created, err := s.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: m.group.path, Name: m.name, Data: m.data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return err
	}
	defer func() { <-s.Primitives().Discard(nil, created.Nodes[0].Path).Done() }()
	m.first.Do(func() { close(m.listed) })
	for {
		_, _, w, err := s.WatchData(ctx, created.Nodes[0].Path)
		if errors.Is(err, framework.ErrNoNode) {
			return framework.ErrNodeGone
		}
		if err == nil {
			_, err = recipe.WaitForWatch(ctx, s, w)
		}
		if err != nil {
			return err
		}
	}
}
