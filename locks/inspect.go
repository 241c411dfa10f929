package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Inspect reports the holders of the lock at path and its waiters. It knows the layouts of all
// kinds of locks, and those of Curator and kazoo. It only reads, and leaves no watch.
//
// A path that does not exist, or is no lock, has a report of kind NoLock. Nodes that vanish
// meanwhile are left out. The connected server answers, which may be a little behind the others.
// The error wraps framework.ErrTooLarge if a directory has more than 250,000 children,
// framework.ErrNoAuth or framework.ErrInvalid, or is that of ctx.
func Inspect(ctx context.Context, client *framework.Client, path string) (Report, error) {
	if client == nil {
		return Report{}, errors.New("inspect: the client is nil")
	}
	nodes := newBulkReader(client)
	_, err := nodes.readAhead(ctx, []string{path})
	i := newInspection(nodes, path)
	if err == nil {
		err = i.inspectPath(ctx)
	}
	if err == nil {
		others := slices.Concat(i.below, i.others)
		err = nodes.readNodes(ctx, others[:min(maxEntries, len(others))])
	}
	if err == nil {
		err = i.readOthers(ctx)
	}
	if err != nil {
		return Report{}, failure.Wrap("inspect", path, err)
	}
	return i.report, nil
}

// pathInspection inspects one path.
type pathInspection struct {
	nodes  *bulkReader
	path   string
	report Report
	left   int      // how many more nodes may be read
	below  []string // children that are not part of the lock
	others []string // the same in a semaphore's directories
}

func newInspection(nodes *bulkReader, path string) *pathInspection {
	// Lists are empty in JSON, not null.
	r := Report{Path: path, Kind: NoLock, Holders: []Entry{}, Waiters: []Entry{}}
	return &pathInspection{nodes: nodes, path: path, report: r, left: maxEntries}
}

// inspectPath finds out what kind of lock is at the path, and reads its contenders.
func (i *pathInspection) inspectPath(ctx context.Context) error {
	stat, err := i.nodes.exists(ctx, i.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err != nil:
		return err
	case stat.EphemeralOwner != 0 && stat.NumChildren == 0:
		if _, name := znode.Split(i.path); strings.HasPrefix(name, znode.ProtectedPrefix) {
			return nil // one of several, such as a member: a claim has a name without a UUID
		}
		return i.readClaim(ctx)
	}
	names, err := i.listChildren(ctx, i.path, stat)
	if err != nil {
		return err
	}
	l := parseLayout(names)
	i.addOthers(l.others)
	if err := i.readSemaphore(ctx, l); err != nil {
		return err
	}
	return i.readLines(ctx, l)
}

// readClaim reads a single node.
func (i *pathInspection) readClaim(ctx context.Context) error {
	i.report.Count++
	e, err := i.readEntry(ctx, i.path, ClaimLock)
	if err == nil && e != nil {
		i.report.addKind(ClaimLock)
		i.report.addEntry(true, *e)
	}
	return err
}

// readSemaphore reads the semaphore at the path, if there is one. Servers delete its directories
// while they are empty, and each of the names may be another lock's. So it is a semaphore if there
// is a lease or a record of permits, or if both directories exist and contain no other nodes.
// Otherwise its parts are other children.
func (i *pathInspection) readSemaphore(ctx context.Context, l directoryLayout) error {
	leases, strange, err := i.readLeases(ctx, l)
	if err != nil {
		return err
	}
	permits, err := i.readPermits(ctx, l)
	if err != nil {
		return err
	}
	both := slices.Contains(l.parts, waitline.LocksPart) && slices.Contains(l.parts, waitline.LeasesPart)
	if len(leases) == 0 && permits == 0 && !(both && len(strange) == 0) {
		i.addOthers(l.parts)
		return nil
	}
	i.report.addKind(SemaphoreLock)
	i.report.Permits = permits
	i.others = strange
	i.report.Count += len(leases)
	if err := i.readLine(ctx, znode.Join(i.path, waitline.LeasesPart), SemaphoreLock, leases,
		func(waitline.Position) bool { return true }); err != nil {
		return err
	}
	i.groupPermits()
	return i.readWaiters(ctx)
}

// readLeases lists the leases, and the other children of their directory.
func (i *pathInspection) readLeases(ctx context.Context,
	l directoryLayout) (leases []waitline.Position, strange []string, err error) {
	if !slices.Contains(l.parts, waitline.LeasesPart) {
		return nil, nil, nil
	}
	dir := znode.Join(i.path, waitline.LeasesPart)
	names, err := i.listDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if p, ok := waitline.ParseNumbered(name, leaseName, waitline.Mutex); ok {
			leases = append(leases, p)
		} else {
			strange = append(strange, znode.Join(dir, name))
		}
	}
	waitline.Sort(leases)
	slices.Sort(strange)
	return leases, strange, nil
}

// readPermits reads the number of permits, or 0 if there is no record.
func (i *pathInspection) readPermits(ctx context.Context, l directoryLayout) (int, error) {
	if !slices.Contains(l.parts, waitline.PermitsPart) {
		return 0, nil
	}
	data, _, err := i.nodes.get(ctx, znode.Join(i.path, waitline.PermitsPart))
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
		return 0, nil
	}
	return waitline.PermitsIn(data), err
}

// groupPermits merges permits that one transaction has granted into one holder.
func (i *pathInspection) groupPermits() {
	var holders []Entry
	for _, e := range i.report.Holders {
		e.Permits = 1
		if last := len(holders) - 1; last >= 0 && holders[last].Token == e.Token {
			holders[last].Permits++
			continue
		}
		holders = append(holders, e)
	}
	i.report.Holders = append([]Entry{}, holders...)
}

// readWaiters reads the waiters for permits.
func (i *pathInspection) readWaiters(ctx context.Context) error {
	dir := znode.Join(i.path, waitline.LocksPart)
	names, err := i.listDir(ctx, dir)
	if err != nil {
		return err
	}
	l := parseLayout(names)
	waiting := l.lines[MutexLock]
	for _, name := range names {
		if kind, _ := kindOfChild(name); kind != MutexLock {
			i.others = append(i.others, znode.Join(dir, name))
		}
	}
	i.report.Count += len(waiting)
	return i.readLine(ctx, dir, SemaphoreLock, waiting, func(waitline.Position) bool { return false })
}

// readLines reads the lines in the directory itself.
func (i *pathInspection) readLines(ctx context.Context, l directoryLayout) error {
	i.report.Count += l.childCount()
	for _, kind := range lineKinds {
		if len(l.lines[kind]) == 0 {
			continue
		}
		i.report.addKind(kind)
		if err := i.readLine(ctx, i.path, kind, l.lines[kind], new(holderFilter).admitsPosition); err != nil {
			return err
		}
	}
	return nil
}

// readLine reads contenders in their order. It skips nodes that are gone.
func (i *pathInspection) readLine(ctx context.Context, dir string, kind LockKind, line []waitline.Position,
	holds func(waitline.Position) bool) error {
	for _, p := range line {
		e, err := i.readEntry(ctx, znode.Join(dir, p.Name), kind)
		if err != nil {
			return err
		}
		if e != nil {
			e.Mode = modeName(p)
			i.report.addEntry(holds(p), *e)
		}
	}
	return nil
}

// readEntry reads one node. It returns nil if the node is gone, or if too many were read.
func (i *pathInspection) readEntry(ctx context.Context, node string, kind LockKind) (*Entry, error) {
	if i.left == 0 {
		i.report.Truncated = true
		return nil, nil
	}
	i.left--
	data, stat, err := i.nodes.get(ctx, node)
	hidden := errors.Is(err, framework.ErrNoAuth)
	if hidden {
		stat, err = i.nodes.exists(ctx, node)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := entryOf(node, kind, data, stat)
	if hidden {
		e.Hidden, e.Foreign = true, false
	}
	return &e, nil
}

// listDir lists a directory; a missing one is empty.
func (i *pathInspection) listDir(ctx context.Context, dir string) ([]string, error) {
	stat, err := i.nodes.exists(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return i.listChildren(ctx, dir, stat)
}

// listChildren lists a directory with this Stat, unless it is too large.
func (i *pathInspection) listChildren(ctx context.Context, dir string, stat framework.Stat) ([]string, error) {
	if stat.NumChildren == 0 {
		return nil, nil
	}
	if stat.NumChildren > maxChildren {
		return nil, failure.Wrap("list", dir,
			fmt.Errorf("%w: %d children, at most %d are listed", framework.ErrTooLarge, stat.NumChildren, maxChildren))
	}
	names, err := i.nodes.children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// addOthers counts children that are not part of the lock.
func (i *pathInspection) addOthers(names []string) {
	for _, name := range names {
		i.below = append(i.below, znode.Join(i.path, name))
	}
	slices.Sort(i.below)
}

// readOthers reads the nodes that are not part of the lock, up to maxEntries in all.
func (i *pathInspection) readOthers(ctx context.Context) error {
	others := slices.Concat(i.below, i.others)
	i.report.Count += len(others)
	for _, node := range others {
		e, err := i.readEntry(ctx, node, NoLock)
		if err != nil {
			return err
		}
		if e != nil {
			i.report.Others = append(i.report.Others, *e)
		}
		if i.report.Truncated {
			return nil
		}
	}
	return nil
}
