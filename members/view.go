package members

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// View is a group at one moment, and what has changed since the view that was yielded before.
type View struct {
	// Members are all members, in the order of joining.
	Members []Member
	// Cordons are all cordons, ordered by ID, also those of members that are absent.
	Cordons []Cordon
	// Changes are what happened to members since the view before, in the order in which it happened. In the first view, all have joined.
	Changes []Change
	// Zxid is the moment: the newest transaction on the group that the view knows of. It rises from view to view. A member or a cordon that changed while it was read is shown as it was
	// before, and the change is told in the next view.
	Zxid int64
}

// Change is what happened to one member between two views. Several changes of one member between two views are one.
type Change struct {
	// Kind is what happened.
	Kind Kind
	// Member is the member as it is in the view; if it has left, as it was.
	Member Member
	// Before is the member as it was in the view before; zero if it was not there.
	Before Member
	// Zxid is the transaction that made Member what it is. It is 0 when no read tells it: of a member that has left, and of a cordon that was removed. Those come first in their
	// view. The others rise, from change to change and from view to view.
	Zxid int64
}

// Kind is what happened to a member.
type Kind string

// The kinds of changes.
const (
	Joined   Kind = "joined"
	Rejoined Kind = "rejoined" // it has left and come back: another session, or another process with its ID
	Changed  Kind = "changed"
	Left     Kind = "left"
)

// groupReader reads a group as of one moment.
//
// A list of the directory is of one moment: the newest transaction that its Stat tells. Each change of a member or a cordon by this package writes the directory in its transaction, so a
// node with a later transaction than that has changed since. Then the reader keeps what it knew of the node until the next list, so that no change is told before an older one. Of a
// node that it did not know, it needs another list.
type groupReader struct {
	group *Group
	any   bool // take nodes as they are read, whatever their moment

	moment  int64                // of the latest list
	written int64                // the directory's Mzxid at that moment: later than any change of a known node
	nodes   map[string]groupNode // by name, as of the moment
	early   map[string]groupNode // nodes that were not known before and were read in a later state than that of their list
}

// groupNode is a node of the group's directory.
type groupNode struct {
	data []byte
	stat framework.Stat
}

// errListAgain says that a node that was not known has changed since the list.
var errListAgain = errors.New("the group has changed while it was read")

// errOlder says that a list is older than one before.
var errOlder = errors.New("the server shows an older state of the group than was seen before")

// readGroup lists the directory and reads the nodes that may have changed.
func (r *groupReader) readGroup(ctx context.Context, s *framework.Session) error {
	names, st, err := s.Children(ctx, r.group.path)
	if errors.Is(err, framework.ErrNoNode) {
		r.clearGroup()
		return nil
	}
	if err != nil {
		return err
	}
	return r.readNodes(ctx, s, names, st)
}

// clearGroup takes in that there is no directory.
func (r *groupReader) clearGroup() { r.nodes, r.written = nil, 0 }

// momentOf is the newest transaction on the directory.
func momentOf(st framework.Stat) int64 { return max(st.Czxid, st.Mzxid, st.Pzxid) }

// readBatch is how many nodes one request reads.
const readBatch = 500

// readNodes takes in a list of the directory. It reads what is new, or everything if the directory was written since.
func (r *groupReader) readNodes(ctx context.Context, s *framework.Session, names []string, st framework.Stat) error {
	moment := momentOf(st)
	if moment < r.moment {
		return errOlder
	}
	now, unread := make(map[string]groupNode, len(names)), []string(nil)
	for _, name := range names {
		if known, ok := r.nodes[name]; ok && st.Mzxid == r.written {
			now[name] = known
		} else {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	var later []string // read in a later state
	found := map[string]groupNode{}
	for batch := range slices.Chunk(unread, readBatch) {
		paths := make([]string, len(batch))
		for i, name := range batch {
			paths[i] = r.group.nodePath(name)
		}
		all, err := s.GetAll(ctx, paths...)
		if err != nil {
			return err
		}
		for i, n := range all {
			switch {
			case errors.Is(n.Err, framework.ErrNoNode): // since the list
				later = append(later, batch[i])
				continue
			case n.Err != nil:
				return n.Err
			}
			found[batch[i]] = groupNode{n.Data, n.Stat}
			if n.Stat.Mzxid > moment {
				later = append(later, batch[i])
			}
		}
	}
	maps.Copy(now, found)
	if len(later) > 0 && !r.any {
		if err := r.restoreEarlier(ctx, s, now, later, moment); err != nil {
			return err
		}
	}
	r.nodes, r.moment, r.written = now, moment, st.Mzxid
	return nil
}

// restoreEarlier puts back what was known of nodes that have changed since the list, unless another program has changed them: that does not write the directory.
func (r *groupReader) restoreEarlier(ctx context.Context, s *framework.Session, now map[string]groupNode, later []string, moment int64) error {
	st, err := s.Exists(ctx, r.group.path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if err == nil && momentOf(st) == moment {
		return nil
	}
	again := map[string]groupNode{}
	for _, name := range later {
		known, ok := r.nodes[name]
		if early, seen := r.early[name]; !ok && seen && early.stat.Mzxid <= moment {
			known, ok = early, true
		}
		switch found, exists := now[name]; {
		case ok:
			now[name] = known
		case exists && found.stat.Czxid <= moment:
			again[name] = found
		default: // deleted, and another may have its name: the next list tells
			delete(now, name)
		}
	}
	r.early = again
	if len(again) > 0 {
		return errListAgain
	}
	return nil
}

// makeView makes a view of what was read, without changes.
func (r *groupReader) makeView() *View {
	v := &View{Zxid: r.moment}
	for name, n := range r.nodes {
		if strings.HasPrefix(name, cordonPrefix) {
			v.Cordons = append(v.Cordons, *decodeCordon(name, n.data, n.stat))
			continue
		}
		record := decodeMember(name, n.data)
		v.Members = append(v.Members, Member{
			ID: record.ID, Info: Info{record.Metadata, record.Version, record.Load}, Node: r.group.nodePath(name), Session: n.stat.EphemeralOwner,
			Joined: n.stat.Ctime.UTC(), Changed: n.stat.Mtime.UTC(), Zxid: n.stat.Mzxid, order: n.stat.Czxid,
		})
	}
	slices.SortFunc(v.Cordons, func(a, b Cordon) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(v.Members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Node, b.Node)) })
	v.mergeNodes()
	return v
}

// mergeNodes leaves the newest node of each ID, and adds the member's cordon.
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
	for i := range v.Members {
		m := &v.Members[i]
		for _, c := range v.Cordons {
			if c.ID == m.ID {
				m.Cordon, m.Zxid = c.cloneCordon(), max(m.Zxid, c.zxid)
			}
		}
		m.State = m.Cordon.stateOf(nodes[m.ID])
	}
}

// addChanges adds what has changed since another view, which may be nil.
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
		change := Change{Kind: Changed, Member: m.cloneMember(), Before: was.cloneMember()}
		switch {
		case !there:
			change.Kind = Joined
		case m.order > was.order:
			change.Kind = Rejoined
		case reflect.DeepEqual(m, was):
			continue
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
		return cmp.Or(cmp.Compare(a.Zxid, b.Zxid), cmp.Compare(a.Member.order, b.Member.order), cmp.Compare(a.Member.Node, b.Member.Node))
	})
}

// cloneView is a copy that a reader may change.
func (v *View) cloneView() *View {
	copied := *v
	copied.Members, copied.Cordons = slices.Clone(v.Members), slices.Clone(v.Cordons)
	for i := range copied.Members {
		copied.Members[i] = copied.Members[i].cloneMember()
	}
	for i := range copied.Cordons {
		copied.Cordons[i] = *copied.Cordons[i].cloneCordon()
	}
	return &copied
}

// findMember returns the member with an ID, or nil, and its cordon, or nil.
func (v *View) findMember(id string) (*Member, *Cordon) {
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
