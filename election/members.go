package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Members is a group of processes that know of each other: who is there, who has joined, who has left.
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
type Members struct {
	client *framework.Client
	path   string
	err    error // of the arguments
}

// memberName is what the name of a member's node ends with.
const memberName = "member"

// NewMembers returns the group at path. Nothing is created before somebody joins. An argument that cannot be
// used makes every call return an error that says so.
func NewMembers(client *framework.Client, path string) *Members {
	return &Members{client: client, path: path, err: checkPlace(client, path)}
}

// Path is the group's directory.
func (m *Members) Path() string { return m.path }

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
func (m *Members) Join(ctx context.Context, id string, metadata Metadata) (*Membership, error) {
	err := m.err
	if err == nil {
		err = errors.Join(checkID(id), metadata.check())
	}
	if err != nil {
		return nil, framework.Wrap("join", m.path, err)
	}
	s, err := m.enrol(ctx, memberName, memberRecord{ID: id, Metadata: metadata.clone()})
	if err == nil {
		err = s.listed(ctx)
	}
	return s, framework.Wrap("join", m.path, err)
}

// List lists the members in the order in which they have joined, as the connected server knows it.
func (m *Members) List(ctx context.Context) ([]Member, error) {
	all, err := m.list(ctx)
	return all, framework.Wrap("members", m.path, err)
}

func (m *Members) list(ctx context.Context) ([]Member, error) {
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
		one, _, err := m.read(ctx, m.client, name)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
	inOrder(all)
	return all, nil
}

// getter is a client or a session.
type getter interface {
	Get(ctx context.Context, path string) ([]byte, framework.Stat, error)
}

// read reads one member.
func (m *Members) read(ctx context.Context, from getter, name string) (Member, memberRecord, error) {
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

func inOrder(all []Member) {
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.order, b.order) })
}
