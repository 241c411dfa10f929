package unused

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Kind is the kind of a leftover.
type Kind string

// The kinds.
const (
	// EmptyDirectory is a directory that had contenders or write markers, and has none now.
	EmptyDirectory Kind = "empty directory"
	// Semaphore is the record and the directories of a semaphore that no client holds or waits for.
	Semaphore Kind = "semaphore"
	// Orphan is a contender that belongs to no session: a copy, for example from a backup.
	Orphan Kind = "orphan"
	// RemovedJob is the record of a job that was removed more than a day ago.
	RemovedJob Kind = "removed job"
	// WriteMarker is a counter's write marker that no process has written for more than a day.
	WriteMarker Kind = "write marker"
	// DroppedQueue is the rest of a queue whose removal was interrupted.
	DroppedQueue Kind = "dropped queue"
)

// Leftover is one unused thing: one or more nodes that Delete deletes together.
type Leftover struct {
	Path string
	Kind Kind
	// Since is a time after which it was not used. It is zero if no such time is known.
	Since time.Time
	// Reason says why no client uses it.
	Reason string
	// Nodes are the nodes to delete, children before their directories.
	Nodes []string

	seen   map[string]framework.Stat // the stats of Nodes when Find read them
	inner  bool                      // the last of Nodes had children, which are leftovers too
	absent []string                  // nodes that were missing, and must be missing when Nodes are deleted
	mark   string                    // unless it is "", a node that must exist when Nodes are deleted
}

// Options are the options of Find.
type Options struct {
	// OlderThan is how long a leftover must not have been used.
	OlderThan time.Duration
	// Now is the ensemble's time.
	Now time.Time
	// NoClock says that the ensemble's time is not known. Then Find leaves out the kinds that must
	// be unused for a day.
	NoClock bool
	// MaxNodes limits how many nodes Find looks at; 0 means 100,000.
	MaxNodes int
}

// Found is the result of Find.
type Found struct {
	// Leftovers are in the order of their paths. Delete them from the last to the first, since a
	// directory comes before those below it.
	Leftovers []Leftover
	// Recent is the number of leftovers that are not listed because they were used lately, or may
	// have been.
	Recent int
	// Refused are the nodes that could not be read, because the client has no permission or because
	// they are too large.
	Refused []string
	// LeftOut is the first path that Find has not looked at because of MaxNodes, or "".
	LeftOut string
	// Looked is the number of nodes that Find has looked at.
	Looked int
}

const (
	defaultMaxNodes = 100_000
	atOnce          = 500 // nodes that are listed together
	dayOfRest       = 24 * time.Hour
)

// Find looks for leftovers at and below root, and writes nothing. It ignores nodes that are deleted
// meanwhile. If the connection or the session is lost, it reads again. It returns either all
// leftovers or an error. The error wraps framework.ErrNoNode if root does not exist.
func Find(ctx context.Context, client *framework.Client, root string, o Options) (*Found, error) {
	if o.MaxNodes == 0 {
		o.MaxNodes = defaultMaxNodes
	}
	f := &finder{
		client: client, options: o, found: &Found{},
		names: map[string][]string{}, nodes: map[string]framework.Node{}, ownACL: map[string]bool{},
	}
	err := recipe.OnSession(ctx, client, func(s *framework.Session) error { return s.Sync(ctx, root) },
		failure.IsTransient)
	if err == nil {
		_, err = client.Exists(ctx, root)
	}
	if err == nil {
		err = f.listTree(ctx, root)
	}
	if err == nil {
		err = f.readCandidates(ctx)
	}
	if err == nil {
		f.judgeAll()
		err = f.findOwnACLs(ctx)
	}
	if err != nil {
		return nil, failure.Wrap("find unused nodes below", root, err)
	}
	f.judgeAll()
	slices.SortFunc(f.found.Leftovers, func(a, b Leftover) int { return strings.Compare(a.Path, b.Path) })
	return f.found, nil
}

// finder searches a tree.
type finder struct {
	client  *framework.Client
	options Options
	found   *Found

	order []string                  // the listed paths, directories before their children
	names map[string][]string       // the names of children, sorted, by listed path
	nodes map[string]framework.Node // the nodes that were read, by path

	judgements []func()        // decide for each candidate, after all were read
	reads      []string        // the paths to read
	stamps     []stamp         // from the nodes that were read, sorted by transaction
	ownACL     map[string]bool // directories with an ACL of their own
	unused     map[string]bool // the nodes of leftovers
}

// stamp is a transaction and its time.
type stamp struct {
	zxid int64
	at   time.Time
}

// listTree lists the children at and below root, and collects candidates.
func (f *finder) listTree(ctx context.Context, root string) error {
	ahead := []string{root}
	for len(ahead) > 0 {
		if f.found.Looked >= f.options.MaxNodes {
			f.found.LeftOut = ahead[len(ahead)-1]
			return nil
		}
		n := min(atOnce, len(ahead), f.options.MaxNodes-f.found.Looked)
		batch := slices.Clone(ahead[len(ahead)-n:])
		slices.Reverse(batch)
		lists, err := recipe.ListMany(ctx, f.client, batch)
		if err != nil {
			return err
		}
		ahead = ahead[:len(ahead)-n]
		f.found.Looked += n
		var below []string
		for i, path := range batch {
			switch {
			case errors.Is(lists[i].Err, framework.ErrNoAuth), errors.Is(lists[i].Err, framework.ErrTooLarge):
				f.found.Refused = append(f.found.Refused, path)
			case lists[i].Err == nil:
				slices.Sort(lists[i].Names)
				f.order, f.names[path] = append(f.order, path), lists[i].Names
				below = append(below, f.visit(path, lists[i].Names)...)
			}
		}
		slices.Reverse(below) // ahead is a stack: the next path is the last
		ahead = append(ahead, below...)
	}
	return nil
}

// readCandidates reads the nodes that the candidates have asked for.
func (f *finder) readCandidates(ctx context.Context) error {
	slices.Sort(f.reads)
	f.reads = slices.Compact(f.reads)
	nodes, err := recipe.GetMany(ctx, f.client, f.reads)
	if err != nil {
		return err
	}
	for i, node := range nodes {
		f.nodes[f.reads[i]] = node
		if errors.Is(node.Err, framework.ErrNoAuth) || errors.Is(node.Err, framework.ErrTooLarge) {
			f.found.Refused = append(f.found.Refused, f.reads[i])
		}
		if node.Err == nil {
			f.stamps = append(f.stamps, stamp{node.Stat.Czxid, node.Stat.Ctime},
				stamp{node.Stat.Mzxid, node.Stat.Mtime})
		}
	}
	slices.SortFunc(f.stamps, func(a, b stamp) int { return cmp.Compare(a.zxid, b.zxid) })
	return nil
}

// judgeAll decides anew which candidates are leftovers, children before their directories.
func (f *finder) judgeAll() {
	f.found.Leftovers, f.found.Recent, f.unused = nil, 0, map[string]bool{}
	for _, judge := range slices.Backward(f.judgements) {
		judge()
	}
}

// timeAfter returns a time at which a transaction had been applied: the time of that transaction or
// of the next one that is known. It returns false if none is known.
func (f *finder) timeAfter(zxid int64) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(f.stamps, zxid, func(s stamp, zxid int64) int {
		if s.zxid < zxid {
			return -1
		}
		return 1
	})
	if i == len(f.stamps) {
		return time.Time{}, false
	}
	return f.stamps[i].at, true
}

// lastUse returns a time after which none of the nodes was used. It returns false if no such time
// is known.
func (f *finder) lastUse(nodes []string) (latest time.Time, known bool) {
	for _, path := range nodes {
		stat := f.nodes[path].Stat
		children, ok := f.timeAfter(stat.Pzxid)
		if !ok {
			return time.Time{}, false
		}
		for _, t := range []time.Time{stat.Ctime, stat.Mtime, children} {
			if t.After(latest) {
				latest = t
			}
		}
	}
	return latest.UTC(), true
}

// add adds a leftover, unless it was used lately. needsDay says that it is a leftover only after it
// was not used for a day.
func (f *finder) add(l Leftover, needsDay bool) {
	wait := f.options.OlderThan
	if needsDay {
		wait = max(wait, dayOfRest)
	}
	var known bool
	if l.Since, known = f.lastUse(l.Nodes); needsDay && f.options.NoClock ||
		wait > 0 && (!known || f.options.Now.Sub(l.Since) <= wait) {
		f.found.Recent++
		return
	}
	l.seen = map[string]framework.Stat{}
	for _, path := range l.Nodes {
		f.unused[path] = true
		l.seen[path] = f.nodes[path].Stat
	}
	f.found.Leftovers = append(f.found.Leftovers, l)
}

// String names a leftover.
func (l Leftover) String() string { return fmt.Sprintf("%s %s", l.Kind, l.Path) }

// isBelow reports whether path is strictly below dir.
func isBelow(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") && path != dir
}

func childPaths(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.Join(dir, name)
	}
	return paths
}
