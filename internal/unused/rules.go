package unused

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// places are directories of the command line below which each directory has only contenders or
// members.
var places = []string{"/lockstep/locks", "/lockstep/elections", "/lockstep/services", "/lockstep/groups"}

// asideSuffixes are the suffixes of the directories that recipes have beside a lock, an election
// and a counter. Other nodes have no such names.
var asideSuffixes = []string{"~waits", "~waiting", "~writers"}

const (
	markersSuffix = "~writers"
	termSuffix    = "~term"
)

// visit looks at a listed directory for candidates, and returns the paths to list next.
func (f *finder) visit(path string, names []string) (below []string) {
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case queuelayout.IsDropped(names):
		return f.visitDropped(path, names)
	case f.isWithinDropped(path):
		return childPaths(path, names)
	case queuelayout.IsQueue(names),
		has("runs") && has("queues"), // runs of workflows
		has("by") && has("at"),       // a latch
		// a double barrier
		has("round") && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "in-") }):
		return nil
	case joblayout.HasLayout(names):
		return []string{joblayout.Scheduler(path).Jobs()}
	case f.hasJobs(path):
		return childPaths(path, names) // visit looks at each job after it was listed
	case f.isJob(path):
		f.visitJob(path, names)
		return nil
	case has(waitline.PermitsPart):
		f.visitSemaphore(path, names)
	case strings.HasSuffix(path, markersSuffix) && len(names) > 0:
		f.visitWriteMarkers(path, names)
		return nil
	case f.isDirectoryOfLine(path, names):
		f.visitDirectory(path, names)
	}
	for _, name := range names {
		child := znode.Join(path, name)
		if !strings.HasPrefix(name, znode.ProtectedPrefix) {
			below = append(below, child)
			continue
		}
		f.found.Looked++
		if _, inLine := waitline.ParsePosition(name); inLine || strings.HasSuffix(path, "~waits") {
			f.visitContender(child)
		}
	}
	return below
}

// judgeLater adds nodes to those to read. judgeAll calls decide after all were read.
func (f *finder) judgeLater(nodes []string, decide func()) {
	f.reads = append(f.reads, nodes...)
	f.judgements = append(f.judgements, decide)
}

// isPlain reports whether a node was read, belongs to no session, has no data, and is not known to
// have an ACL of its own.
func (f *finder) isPlain(path string) bool {
	n, read := f.nodes[path]
	return read && n.Err == nil && n.Stat.EphemeralOwner == 0 && n.Stat.DataLength == 0 && !f.ownACL[path]
}

// isDirectoryOfLine reports whether a directory is that of a line, by its path or by the nodes
// beside it. An empty node elsewhere may have any purpose.
func (f *finder) isDirectoryOfLine(path string, names []string) bool {
	dir, name := znode.Split(path)
	if slices.Contains(waitline.SemaphoreParts, name) && f.hasChild(dir, waitline.PermitsPart) {
		return false // visitSemaphore decides
	}
	for _, place := range places {
		if isBelow(path, place) {
			return true
		}
	}
	for _, suffix := range asideSuffixes {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return true
		}
	}
	return len(names) == 0 && f.hasChild(dir, name+termSuffix)
}

// hasChild reports whether a listed directory has a child. It takes little time also in a wide
// directory, since it is asked for each child.
func (f *finder) hasChild(dir, name string) bool {
	_, has := slices.BinarySearch(f.names[dir], name)
	return has
}

// visitDirectory adds a directory of a line to the candidates. It is a leftover if it is empty, or
// if all its children are leftovers.
func (f *finder) visitDirectory(path string, names []string) {
	f.judgeLater([]string{path}, func() {
		if !f.isPlain(path) || f.nodes[path].Stat.NumChildren != int32(len(names)) {
			return
		}
		for _, child := range childPaths(path, names) {
			if !f.unused[child] {
				return
			}
		}
		f.add(Leftover{Path: path, Kind: EmptyDirectory, Nodes: []string{path}, inner: len(names) > 0,
			Reason: "no client holds or waits below it, and the next one creates it again"}, false)
	})
}

// visitSemaphore adds a semaphore with a record to the candidates. It is a leftover if its
// directories of waiters and of permits are empty or missing.
func (f *finder) visitSemaphore(path string, names []string) {
	record := znode.Join(path, waitline.PermitsPart)
	dirs := []string{znode.Join(path, waitline.LeasesPart), znode.Join(path, waitline.LocksPart)}
	f.judgeLater(append([]string{record, path}, dirs...), func() {
		var p struct {
			Declared int `json:"declared"`
			Permits  int `json:"permits"`
		}
		n := f.nodes[record]
		unknown, err := recipe.Decode(n.Data, 1, &p)
		if n.Err != nil || n.Stat.EphemeralOwner != 0 || n.Stat.NumChildren != 0 || err != nil || len(unknown) > 0 ||
			p.Declared < 1 {
			return
		}
		if p.Declared != p.Permits { // an operator has resized the semaphore, and programs do not know the new number
			return
		}
		l := Leftover{Path: path, Kind: Semaphore,
			Reason: "no client holds a permit or waits for one, and the next one declares the number again"}
		for _, dir := range dirs {
			switch d := f.nodes[dir]; {
			case d.Err == nil && d.Stat.NumChildren == 0 && f.isPlain(dir):
				l.Nodes = append(l.Nodes, dir)
			case d.Err == nil:
				return
			default:
				l.absent = append(l.absent, dir)
			}
		}
		l.Nodes = append(l.Nodes, record)
		if f.isPlain(path) && len(names) == int(f.nodes[path].Stat.NumChildren) &&
			!slices.ContainsFunc(names,
				func(name string) bool { return !slices.Contains(waitline.SemaphoreParts, name) }) {
			l.Nodes = append(l.Nodes, path)
		}
		f.add(l, false)
	})
}

// visitContender adds a contender to the candidates. It is a leftover if it belongs to no session
// and has Lockstep's record, since Lockstep creates contenders for a session only. Contenders of
// other programs stay.
func (f *finder) visitContender(path string) {
	f.judgeLater([]string{path}, func() {
		n := f.nodes[path]
		var owner struct {
			recipe.Owner
			Since *time.Time `json:"since"`
		}
		if n.Err != nil || n.Stat.EphemeralOwner != 0 || n.Stat.NumChildren != 0 {
			return
		}
		if _, err := recipe.Decode(n.Data, 1, &owner); err != nil || owner.Identity == "" || owner.PID == 0 ||
			owner.Since == nil {
			return
		}
		f.add(Leftover{Path: path, Kind: Orphan, Nodes: []string{path},
			Reason: "it belongs to no session, so no process holds by it, and it makes others wait"}, false)
	})
}

// visitWriteMarkers adds a counter's write markers to the candidates. One is a leftover a day after
// its last write. Other writers of the counter delete such markers, too (package ids).
func (f *finder) visitWriteMarkers(path string, names []string) {
	for _, marker := range childPaths(path, names) {
		f.judgeLater([]string{marker}, func() {
			n := f.nodes[marker]
			if _, err := strconv.ParseInt(string(n.Data), 10, 64); err != nil && len(n.Data) > 0 || n.Err != nil ||
				n.Stat.EphemeralOwner != 0 || n.Stat.NumChildren != 0 {
				return
			}
			f.add(Leftover{Path: marker, Kind: WriteMarker, Nodes: []string{marker},
				Reason: "no process has written it for a day; other writers of the counter would delete it, too"}, true)
		})
	}
}

// hasJobs reports whether a directory holds the jobs of a scheduler.
func (f *finder) hasJobs(path string) bool {
	scheduler, ok := joblayout.SchedulerOf(path)
	return ok && joblayout.HasLayout(f.names[string(scheduler)])
}

// isJob reports whether a node is a job of a scheduler.
func (f *finder) isJob(path string) bool {
	dir, _ := znode.Split(path)
	return f.hasJobs(dir) && f.names[dir] != nil
}

// visitJob adds a job to the candidates. It is a leftover if it was removed more than a day ago, no
// run of it is active, and no tick that was run, registration or change of the schedule is later
// than now. The members of the scheduler delete it by the same rule. The age of its node covers a
// registration that created the node.
func (f *finder) visitJob(path string, names []string) {
	past := childPaths(path, names)
	if slices.ContainsFunc(names, func(name string) bool { return !joblayout.IsPastRun(name) }) {
		return // a run is active, or another program has created a node here
	}
	f.judgeLater(append(past, path), func() {
		var job struct {
			Removed, Paused         time.Time
			Registered, Since, Last time.Time
			Running, Pending        []json.RawMessage
			Replaced                []struct{ Last time.Time }
		}
		n := f.nodes[path]
		if n.Err != nil || n.Stat.EphemeralOwner != 0 || int(n.Stat.NumChildren) != len(names) ||
			!decodeJob(n.Data, &job) {
			return
		}
		now := f.options.Now
		ahead := slices.ContainsFunc([]time.Time{job.Registered, job.Since, job.Last},
			func(at time.Time) bool { return at.After(now) }) ||
			slices.ContainsFunc(job.Replaced, func(r struct{ Last time.Time }) bool { return r.Last.After(now) })
		if job.Removed.IsZero() || job.Paused.IsZero() || len(job.Running) > 0 || now.Sub(job.Removed) < dayOfRest ||
			ahead {
			return
		}
		f.add(Leftover{Path: path, Kind: RemovedJob, Nodes: append(past, path),
			Reason: "the job was removed more than a day ago, and no run of it is active"}, true)
	})
}

// decodeJob decodes the fields of a job's state that visitJob needs. It ignores the case of their
// names.
func decodeJob(data []byte, into any) bool {
	var head struct{}
	_, err := recipe.Decode(data, 1, &head)
	return err == nil && json.Unmarshal(data, into) == nil
}

// visitDropped adds a queue whose removal was begun to the candidates, and returns its children, so
// that all nodes below it are listed. It is a leftover while it has the mark of the removal.
func (f *finder) visitDropped(path string, names []string) []string {
	queue := queuelayout.New(path)
	mark := queue.DroppedNode
	f.judgeLater([]string{path, mark}, func() {
		n := f.nodes[path]
		if n.Err != nil || f.nodes[mark].Err != nil || !queuelayout.SaysDropped(n.Data) {
			return
		}
		var writers, others []string
		for _, node := range slices.Backward(f.order) {
			switch {
			case node == mark || !isBelow(node, path):
			case node == queue.WritersDir || isBelow(node, queue.WritersDir):
				// deleted first, so that no put succeeds after that
				writers = append(writers, node)
			default:
				others = append(others, node)
			}
		}
		f.addDropped(path, mark, append(writers, others...))
	})
	return childPaths(path, names)
}

// addDropped adds a queue with its nodes, which deleteDropped deletes in several transactions.
func (f *finder) addDropped(path, mark string, parts []string) {
	l := Leftover{Path: path, Kind: DroppedQueue, Nodes: []string{mark, path}, mark: mark,
		Reason: "its removal was begun and not finished"}
	before := len(f.found.Leftovers)
	if f.add(l, false); len(f.found.Leftovers) > before {
		added := &f.found.Leftovers[before]
		added.Nodes = append(parts, added.Nodes...)
	}
}

// isWithinDropped reports whether a path is below a queue whose removal was begun.
func (f *finder) isWithinDropped(path string) bool {
	for dir, _ := znode.Split(path); dir != "/"; dir, _ = znode.Split(dir) {
		if queuelayout.IsDropped(f.names[dir]) {
			return true
		}
	}
	return false
}
