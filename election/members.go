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
)

// Group is a group of processes that know of each other: who is there, who has joined, who has left.
//
//	<path>                     container, removed by the server when empty
//	<path>/_c_<uuid>-member    ephemeral, one for each membership; data: JSON {"v":1,"id","metadata"}
//
// Guarantee: a member is listed until it leaves, or its session ends; it joins again by itself on its next
// session. Not guaranteed: that who is listed still runs: a crashed process stays for a session timeout. What
// was told may have changed by the time it is read, and two processes may be told at different times, so
// a list of members excludes nobody from anything.
//
// Other children, such as those of Apache Curator's GroupMember, are shown by their names.
type Group struct {
	client *framework.Client
	path   string
	err    error // of the arguments
}

// memberName is what the name of a member's node ends with.
const memberName = "member"

// NewGroup returns the group at path. Nothing is created before somebody joins. An argument that cannot be
// used makes every call return an error that says so.
func NewGroup(client *framework.Client, path string) *Group {
	return &Group{client: client, path: path, err: checkClientAndPath(client, path)}
}

// Path is the group's directory.
func (m *Group) Path() string { return m.path }

// Member is one member, as anybody can see it.
type Member struct {
	// ID is what it is called. Two may be called the same: a process that was started again is there beside
	// its former self until that one's session has ended.
	ID string
	// Metadata is what it has joined with.
	Metadata Metadata
	// Node is the path of its node, which is its own for as long as it stays.
	Node string
	// Session is the number of the session that it lives with.
	Session int64
	// Joined is when it joined, by the clock of the ensemble's leader.
	Joined time.Time

	order int64 // in which they have joined
}

// Join joins the group under an id and returns once it is listed. The membership lasts, over lost
// sessions, until it is left or the client is closed. The error wraps what is wrong with the id or the
// metadata, framework.ErrClosed or framework.ErrNoAuth, or is that of ctx; nothing stays behind then.
func (m *Group) Join(ctx context.Context, id string, metadata Metadata) (*Membership, error) {
	err := m.err
	if err == nil {
		err = errors.Join(checkID(id), metadata.check())
	}
	if err != nil {
		return nil, framework.Wrap("join", m.path, err)
	}
	s, err := m.startMembership(ctx, memberName, memberRecord{ID: id, Metadata: metadata.clone()})
	if err == nil {
		err = s.waitUntilListed(ctx)
	}
	return s, framework.Wrap("join", m.path, err)
}

// List lists the members in the order in which they have joined, as the connected server knows it.
func (m *Group) List(ctx context.Context) ([]Member, error) {
	all, err := m.listMembers(ctx)
	return all, framework.Wrap("members", m.path, err)
}

func (m *Group) listMembers(ctx context.Context) ([]Member, error) {
	if m.err != nil {
		return nil, m.err
	}
	names, _, err := m.client.Children(ctx, m.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, name := range names {
		one, _, err := m.readMember(ctx, m.client, name)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
	compareMembers(all)
	return all, nil
}

// getter is a client or a session.
type getter interface {
	Get(ctx context.Context, path string) ([]byte, framework.Stat, error)
}

// readMember reads one member.
func (m *Group) readMember(ctx context.Context, from getter, name string) (Member, memberRecord, error) {
	node := framework.Join(m.path, name)
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

func compareMembers(all []Member) {
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.order, b.order) })
}

// Membership is one member's place in a group. It lasts until Leave, or the client's end.
type Membership struct {
	group *Group
	name  string
	data  []byte

	leave context.CancelFunc
	first sync.Once
	in    chan struct{} // closed once it is listed
	gone  chan struct{} // closed when it has ended
	err   error         // why, to be read after gone
}

// startMembership begins a membership, whose node's name ends with name, and does not wait.
func (m *Group) startMembership(ctx context.Context, name string, r memberRecord) (*Membership, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	s := &Membership{group: m, name: name, data: data, in: make(chan struct{}), gone: make(chan struct{})}
	ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	go s.keepListed(ctx)
	return s, nil
}

// waitUntilListed waits until the member is listed. When it never will be, nothing stays behind.
func (s *Membership) waitUntilListed(ctx context.Context) error {
	select {
	case <-s.in:
		return nil
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		s.leave()
		return framework.Ended(ctx)
	}
}

// Leave takes the member out of the group. It waits until its node is gone, or ctx ends; then that is
// finished in the background, and Client.Close waits for it. The error is nil in either case. Leaving again is
// harmless.
func (s *Membership) Leave(ctx context.Context) error {
	s.leave()
	select {
	case <-s.gone:
	case <-ctx.Done():
	}
	return nil
}

// keepListed keeps the member listed.
func (s *Membership) keepListed(ctx context.Context) {
	defer close(s.gone)
	c := s.group.client
	back := c.Backoff()
	for {
		s.err = onSessions(ctx, c, s.stayOnSession)
		if ctx.Err() != nil || errors.Is(s.err, framework.ErrClosed) || errors.Is(s.err, framework.ErrAuthFailed) || !s.wasListed() {
			return
		}
		c.Logger().Warn("a member was taken out of its group and joins again", "path", s.group.path, "error", s.err)
		if back.Pause(ctx) != nil {
			return
		}
	}
}

func (s *Membership) wasListed() bool {
	select {
	case <-s.in:
		return true
	default:
		return false
	}
}

// stayOnSession is the membership on one session. It ends with ctx, the session, or the node.
func (s *Membership) stayOnSession(ctx context.Context, sess *framework.Session) error {
	made, err := sess.Primitives().CreateProtected(ctx, framework.ProtectedCreate{
		Dir: s.group.path, Name: s.name, Data: s.data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return err
	}
	defer func() { <-sess.Primitives().Discard(nil, made.Nodes[0].Path).Done() }()
	s.first.Do(func() { close(s.in) })
	for {
		_, _, w, err := sess.WatchData(ctx, made.Nodes[0].Path)
		if errors.Is(err, framework.ErrNoNode) {
			return framework.ErrNodeGone
		}
		if err == nil {
			err = waitForWatch(ctx, sess, w)
		}
		if err != nil {
			return err
		}
	}
}
