package members

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// View is a group at one moment, and the changes since the view that the watch yielded before.
type View struct {
	// Members are all members, in the order of joining.
	Members []Member `json:"members"`
	// Cordons are all cordons, ordered by ID, also those of members that are absent.
	Cordons []Cordon `json:"cordons,omitempty"`
	// Changes are the changes of members since the view before, in the order in which the servers
	// made them. In the first view of a watch, all members have joined. A view of List has none.
	Changes []Change `json:"changes,omitempty"`
	// Zxid is the moment of the view: the newest transaction on the group's directory that was
	// read. It does not fall from view to view. A watch shows a member or a cordon that changed
	// after that moment, while it was read, in its former state; the next view has the change.
	Zxid int64 `json:"zxid"`
}

// Change is a change of one member between two views. Several changes of one member between two
// views are one Change.
type Change struct {
	// Kind says whether the member has joined, left or changed.
	Kind ChangeKind `json:"event"`
	// Member is the member as it is in the view; if it has left, as it was in the view before.
	Member Member `json:"member"`
	// Before is the member as it was in the view before, or zero if it was not listed.
	Before Member `json:"before,omitzero"`
	// Zxid is the transaction that made the change. It is 0 if the nodes do not show that
	// transaction: when a member has left, when a cordon was removed, and when one of several nodes
	// with the member's ID is gone. Those changes come first in their view. The other values do not
	// fall, from change to change and from view to view.
	Zxid int64 `json:"zxid,omitempty"`
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes.
const (
	Joined ChangeKind = "joined"
	// it has a newer node than before: it has another session, or another process has joined with
	// its ID
	Rejoined ChangeKind = "rejoined"
	// also when the newest of several nodes with its ID is gone: it is shown with an older node
	Changed ChangeKind = "changed"
	Left    ChangeKind = "left"
)

// groupReader reads a group as of one moment.
//
// The moment of a list is its listZxid: the newest transaction in the directory's Stat. Each change
// of a member or a cordon by this package writes the directory in the same transaction. So a node
// with a newer transaction has changed after the list. The reader keeps the former state of such a
// node until the next list, so that no watch shows a change before an older one. If it does not
// know the node's former state, it lists again.
type groupReader struct {
	group     *Group
	anyMoment bool // take nodes in the state in which they are read, also a later one than the list's

	listZxid int64 // of the latest list
	// the directory's Mzxid in the latest list: while it is the same, no known node has changed
	dirMzxid int64
	nodes    map[string]groupNode // by name, as of listZxid
	// nodes without a known former state, which were read in a later state than the list's: the
	// next list may be as late
	laterStates map[string]groupNode
}

// groupNode is a node of the group's directory. It is decoded once; nobody changes what it has.
type groupNode struct {
	stat   framework.Stat
	member Member  // without cordon and state; the zero value for a cordon
	cordon *Cordon // nil for a member
}

func (r *groupReader) decodeNode(name string, data []byte, stat framework.Stat) groupNode {
	if strings.HasPrefix(name, cordonPrefix) {
		return groupNode{stat: stat, cordon: decodeCordon(name, data, stat)}
	}
	record := decodeMember(name, data)
	return groupNode{stat: stat, member: Member{
		ID: record.ID, Info: Info{record.Metadata, record.Version, record.Load}, Node: r.group.nodePath(name),
		Session: stat.EphemeralOwner,
		Joined:  stat.Ctime.UTC(), Changed: stat.Mtime.UTC(), Zxid: stat.Mzxid, czxid: stat.Czxid, mzxid: stat.Mzxid,
	}}
}

// decodeNew decodes a node that was read, unless known is of the same transactions.
func (r *groupReader) decodeNew(name string, n framework.Node, known groupNode) groupNode {
	if known.stat.Czxid == n.Stat.Czxid && known.stat.Mzxid == n.Stat.Mzxid {
		return known
	}
	return r.decodeNode(name, n.Data, n.Stat)
}

// errListAgain says that a node has changed since the list, and that its state at the list is not
// known.
var errListAgain = errors.New("the group has changed while it was read")

// errOlder says that a list is older than a former one.
var errOlder = errors.New("the server shows an older state of the group than was seen before")

// readGroup lists the directory and reads the nodes that may have changed. Without a directory the
// group is empty.
func (r *groupReader) readGroup(ctx context.Context, s *framework.Session) error {
	names, stat, err := s.Children(ctx, r.group.path)
	if errors.Is(err, framework.ErrNoNode) {
		r.clearGroup()
		return nil
	}
	if err != nil {
		return err
	}
	return r.readNodes(ctx, s, names, stat)
}

// clearGroup makes the group empty: there is no directory.
func (r *groupReader) clearGroup() { r.nodes, r.dirMzxid = nil, 0 }

// newestZxid returns the newest transaction that a directory's Stat has.
func newestZxid(stat framework.Stat) int64 { return max(stat.Czxid, stat.Mzxid, stat.Pzxid) }

// readNodes reads the nodes of a list of the directory: the new ones, or all of them if the
// directory was written after the list before. It returns errOlder or errListAgain if another list
// is needed; the reader's state is that of the list before then.
func (r *groupReader) readNodes(ctx context.Context, s *framework.Session, names []string, stat framework.Stat) error {
	listZxid := newestZxid(stat)
	if listZxid < r.listZxid {
		return errOlder
	}
	now, unread := make(map[string]groupNode, len(names)), []string(nil)
	for _, name := range names {
		if known, ok := r.nodes[name]; ok && stat.Mzxid == r.dirMzxid {
			now[name] = known
		} else {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	var later []string // nodes that were read in a later state than the list's
	found := map[string]groupNode{}
	paths := make([]string, len(unread))
	for i, name := range unread {
		paths[i] = r.group.nodePath(name)
	}
	all, err := s.GetAll(ctx, paths...)
	if err != nil {
		return err
	}
	for i, n := range all {
		name := unread[i]
		switch {
		case errors.Is(n.Err, framework.ErrNoNode): // deleted after the list
			later = append(later, name)
			continue
		case n.Err != nil:
			return n.Err
		}
		found[name] = r.decodeNew(name, n, r.nodes[name])
		if n.Stat.Mzxid > listZxid {
			later = append(later, name)
		}
	}
	maps.Copy(now, found)
	if len(later) > 0 && !r.anyMoment {
		if err := r.restoreEarlier(ctx, s, now, later, listZxid); err != nil {
			return err
		}
	}
	r.nodes, r.listZxid, r.dirMzxid = now, listZxid, stat.Mzxid
	return nil
}

// restoreEarlier puts the states as of listZxid back into now, for the nodes that were read in a
// later state. It does nothing if listZxid is still the newest of the directory: then another
// program, which does not write the directory, has changed the nodes.
func (r *groupReader) restoreEarlier(ctx context.Context, s *framework.Session, now map[string]groupNode,
	later []string, listZxid int64) error {
	stat, err := s.Exists(ctx, r.group.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if err == nil && newestZxid(stat) == listZxid {
		return nil
	}
	again := map[string]groupNode{}
	for _, name := range later {
		known, ok := r.nodes[name]
		if former, seen := r.laterStates[name]; !ok && seen && former.stat.Mzxid <= listZxid {
			known, ok = former, true
		}
		switch found, exists := now[name]; {
		case ok:
			now[name] = known
		case exists && found.stat.Czxid <= listZxid:
			again[name] = found
		default: // deleted after the list, perhaps created again: the next list shows it
			delete(now, name)
		}
	}
	r.laterStates = again
	if len(again) > 0 {
		return errListAgain
	}
	return nil
}

// makeView returns the view of the nodes that were read, without changes.
func (r *groupReader) makeView() View {
	v := View{Zxid: r.listZxid}
	for _, n := range r.nodes {
		if n.cordon != nil {
			v.Cordons = append(v.Cordons, *n.cordon.cloneCordon())
			continue
		}
		v.Members = append(v.Members, n.member)
	}
	slices.SortFunc(v.Cordons, func(a, b Cordon) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(v.Members,
		func(a, b Member) int { return cmp.Or(cmp.Compare(a.czxid, b.czxid), cmp.Compare(a.Node, b.Node)) })
	v.mergeNodes()
	return v
}

// mergeNodes keeps the newest node of each ID, counts the others, and adds the member's cordon and
// state.
func (v *View) mergeNodes() {
	nodes := map[string][]string{}
	for _, m := range v.Members {
		_, name := znode.Split(m.Node)
		nodes[m.ID] = append(nodes[m.ID], name)
	}
	newest := v.Members[:0]
	for _, m := range v.Members {
		_, name := znode.Split(m.Node)
		names := nodes[m.ID]
		if names[len(names)-1] == name {
			m.Others = len(names) - 1
			newest = append(newest, m)
		}
	}
	v.Members = newest
	cordons := map[string]*Cordon{}
	for i := range v.Cordons {
		cordons[v.Cordons[i].ID] = &v.Cordons[i]
	}
	for i := range v.Members {
		m := &v.Members[i]
		if c := cordons[m.ID]; c != nil {
			m.Cordon, m.Zxid = c.cloneCordon(), max(m.Zxid, c.zxid)
		}
		m.State = m.Cordon.stateOf(nodes[m.ID])
	}
}

// addChanges adds the changes since a former view. before is nil in the first view of a watch.
func (v *View) addChanges(before *View) {
	known := map[string]Member{}
	since := int64(0)
	if before != nil {
		since = before.Zxid
		for _, m := range before.Members {
			known[m.ID] = m
		}
	}
	for _, m := range v.Members {
		was, there := known[m.ID]
		delete(known, m.ID)
		if there && m.isSame(was) {
			continue
		}
		change := Change{Kind: Changed, Member: m.cloneMember(), Before: was.cloneMember()}
		switch {
		case !there:
			change.Kind = Joined
		case m.czxid > was.czxid:
			change.Kind = Rejoined
		}
		if m.Zxid > since {
			change.Zxid = m.Zxid
		}
		v.Changes = append(v.Changes, change)
	}
	for _, m := range known {
		v.Changes = append(v.Changes, Change{Kind: Left, Member: m.cloneMember(), Before: m.cloneMember()})
	}
	slices.SortFunc(v.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(a.Member.czxid, b.Member.czxid),
			cmp.Compare(a.Member.Node, b.Member.Node))
	})
}

// isSame reports whether a member is as it was in an earlier view. Its node and its cordon's node
// are the same if their transactions are.
func (m Member) isSame(was Member) bool {
	sameCordon := (m.Cordon == nil) == (was.Cordon == nil) && (m.Cordon == nil || m.Cordon.zxid == was.Cordon.zxid)
	return sameCordon && m.czxid == was.czxid && m.mzxid == was.mzxid && m.Others == was.Others && m.State == was.State
}

// cloneView returns a copy, which the caller may change.
func (v View) cloneView() View {
	v.Members, v.Cordons = slices.Clone(v.Members), slices.Clone(v.Cordons)
	for i := range v.Members {
		v.Members[i] = v.Members[i].cloneMember()
	}
	for i := range v.Cordons {
		v.Cordons[i] = *v.Cordons[i].cloneCordon()
	}
	return v
}

// findMember returns the member with an ID, or nil, and its cordon, or nil.
func (v View) findMember(id string) (*Member, *Cordon) {
	var member *Member
	var cordon *Cordon
	for i := range v.Members {
		if v.Members[i].ID == id {
			member = &v.Members[i]
		}
	}
	for i := range v.Cordons {
		if v.Cordons[i].ID == id {
			cordon = &v.Cordons[i]
		}
	}
	return member, cordon
}
