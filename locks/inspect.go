package locks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// MaxEntries is how many nodes Inspect reads of one lock, one after the other.
const MaxEntries = 1000

// maxChildren is how many children a directory may have to be listed: a list is one answer, and all of it is held in memory.
const maxChildren = 250_000

// Inspect reports the holders of the lock at path and its waiters. It knows the layouts of all kinds of locks, and those of Curator and
// kazoo. It only reads, and leaves no watch.
//
// A path that does not exist, or is no lock, has a report of kind NoLock. Nodes that vanish meanwhile are left out. The connected server
// answers, which may be a little behind the others. The error wraps framework.ErrTooLarge if a directory has more than 250,000 children,
// framework.ErrNoAuth or framework.ErrInvalidPath, or is that of ctx.
func Inspect(ctx context.Context, client *framework.Client, path string) (*Report, error) {
	if client == nil {
		return nil, errors.New("inspect: the client is nil")
	}
	i := newInspection(client, path)
	err := i.inspectPath(ctx)
	if err == nil {
		err = i.readOthers(ctx)
	}
	if err != nil {
		return nil, framework.Wrap("inspect", path, err)
	}
	return i.report, nil
}

// List yields a report of every lock at and below root: a directory before its children, names in their order. It reads one node after
// the other, and sends no request before the caller has taken the former report. It does not descend into the nodes of a lock. It descends
// into other nodes in the lock's directory, and reports their locks apart.
//
// The servers do not know what an ephemeral node is for: List reports a single one as a claim.
//
// List yields an error for a directory that it may not read, or that has more than 250,000 children (framework.ErrNoAuth,
// framework.ErrTooLarge), and goes on. After any other error it ends. It leaves out nodes that vanish meanwhile, and perhaps those that are
// created meanwhile.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[*Report, error] {
	return func(yield func(*Report, error) bool) {
		if client == nil {
			yield(nil, errors.New("list: the client is nil"))
			return
		}
		ahead := []string{root}
		for len(ahead) > 0 {
			last := len(ahead) - 1
			i := newInspection(client, ahead[last])
			ahead = ahead[:last]
			if !i.visitPath(ctx, yield) {
				return
			}
			slices.Reverse(i.below)
			ahead = append(ahead, i.below...)
		}
	}
}

// visitPath yields the report of one path, and reports whether to go on.
func (i *inspection) visitPath(ctx context.Context, yield func(*Report, error) bool) bool {
	err := i.inspectPath(ctx)
	switch {
	case err == nil:
		return i.report.Kind == NoLock || yield(i.report, nil)
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
		return yield(nil, framework.Wrap("list", i.path, err))
	}
	yield(nil, framework.Wrap("list", i.path, err))
	return false
}

// inspection inspects one path.
type inspection struct {
	client *framework.Client
	path   string
	report *Report
	left   int      // how many more nodes may be read
	below  []string // children that are not part of the lock
	others []string // the same in a semaphore's directories
}

func newInspection(client *framework.Client, path string) *inspection {
	// Lists are empty in JSON, not null.
	r := &Report{Path: path, Kind: NoLock, Holders: []Entry{}, Waiters: []Entry{}}
	return &inspection{client: client, path: path, report: r, left: MaxEntries}
}

// inspectPath finds out what kind of lock is at the path, and reads its contenders.
func (i *inspection) inspectPath(ctx context.Context) error {
	st, err := i.client.Exists(ctx, i.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err != nil:
		return err
	case st.EphemeralOwner != 0 && st.NumChildren == 0:
		if _, name := framework.Split(i.path); strings.HasPrefix(name, framework.ProtectedPrefix) {
			return nil // one of several, such as a member: a claim has a name without a UUID
		}
		return i.readClaim(ctx)
	}
	names, err := i.listChildren(ctx, i.path, st)
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

// addOthers notes children that are not part of the lock.
func (i *inspection) addOthers(names []string) {
	for _, name := range names {
		i.below = append(i.below, framework.Join(i.path, name))
	}
	slices.Sort(i.below)
}

// listDir lists a directory; a missing one is empty.
func (i *inspection) listDir(ctx context.Context, dir string) ([]string, error) {
	st, err := i.client.Exists(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return i.listChildren(ctx, dir, st)
}

// listChildren lists a directory with this Stat, unless it is too large.
func (i *inspection) listChildren(ctx context.Context, dir string, st framework.Stat) ([]string, error) {
	if st.NumChildren == 0 {
		return nil, nil
	}
	if st.NumChildren > maxChildren {
		return nil, framework.Wrap("list", dir,
			fmt.Errorf("%w: %d children, at most %d are listed", framework.ErrTooLarge, st.NumChildren, maxChildren))
	}
	names, _, err := i.client.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// readClaim reads a single node.
func (i *inspection) readClaim(ctx context.Context) error {
	i.report.Count++
	e, err := i.readEntry(ctx, i.path, ClaimLock)
	if err == nil && e != nil {
		i.report.addKind(ClaimLock)
		i.report.addEntry(true, *e)
	}
	return err
}

// readLines reads the lines in the directory itself.
func (i *inspection) readLines(ctx context.Context, l directoryLayout) error {
	i.report.Count += l.childCount()
	for _, kind := range lineKinds {
		if len(l.lines[kind]) == 0 {
			continue
		}
		i.report.addKind(kind)
		if err := i.readLine(ctx, i.path, kind, l.lines[kind], new(holderFilter).admits); err != nil {
			return err
		}
	}
	return nil
}

// readLine reads contenders in their order. It skips nodes that are gone.
func (i *inspection) readLine(ctx context.Context, dir string, kind LockKind, line []waitline.Position, holds func(waitline.Position) bool) error {
	for _, p := range line {
		e, err := i.readEntry(ctx, framework.Join(dir, p.Name), kind)
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
func (i *inspection) readEntry(ctx context.Context, node string, kind LockKind) (*Entry, error) {
	if i.left == 0 {
		i.report.Truncated = true
		return nil, nil
	}
	i.left--
	data, st, err := i.client.Get(ctx, node)
	hidden := errors.Is(err, framework.ErrNoAuth)
	if hidden {
		st, err = i.client.Exists(ctx, node)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := entryOf(node, kind, data, st)
	if hidden {
		e.Hidden, e.Foreign = true, false
	}
	return &e, nil
}

// readOthers reads the nodes that are not part of the lock, up to MaxEntries in all.
func (i *inspection) readOthers(ctx context.Context) error {
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

// readSemaphore reads the semaphore at the path, if there is one. Servers delete its directories while they are empty, and each of the names
// may be another lock's. So it is a semaphore if there is a lease or a record of permits, or if both directories exist and contain no other
// nodes. Otherwise its parts are other children.
func (i *inspection) readSemaphore(ctx context.Context, l directoryLayout) error {
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
	if err := i.readLine(ctx, framework.Join(i.path, waitline.LeasesPart), SemaphoreLock, leases, func(waitline.Position) bool { return true }); err != nil {
		return err
	}
	i.groupPermits()
	return i.readWaiters(ctx)
}

// readLeases lists the leases, and the other children of their directory.
func (i *inspection) readLeases(ctx context.Context, l directoryLayout) (leases []waitline.Position, strange []string, err error) {
	if !slices.Contains(l.parts, waitline.LeasesPart) {
		return nil, nil, nil
	}
	dir := framework.Join(i.path, waitline.LeasesPart)
	names, err := i.listDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if p, ok := waitline.ParseNumbered(name, leaseName, waitline.Mutex); ok {
			leases = append(leases, p)
		} else {
			strange = append(strange, framework.Join(dir, name))
		}
	}
	waitline.Sort(leases)
	slices.Sort(strange)
	return leases, strange, nil
}

// readPermits reads the number of permits, or 0 if there is no record.
func (i *inspection) readPermits(ctx context.Context, l directoryLayout) (int, error) {
	if !slices.Contains(l.parts, waitline.PermitsPart) {
		return 0, nil
	}
	data, _, err := i.client.Get(ctx, framework.Join(i.path, waitline.PermitsPart))
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
		return 0, nil
	}
	return permitsIn(data), err
}

// groupPermits merges permits that one transaction has granted into one holder.
func (i *inspection) groupPermits() {
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
func (i *inspection) readWaiters(ctx context.Context) error {
	dir := framework.Join(i.path, waitline.LocksPart)
	names, err := i.listDir(ctx, dir)
	if err != nil {
		return err
	}
	l := parseLayout(names)
	waiting := l.lines[MutexLock]
	for _, name := range names {
		if kind, _ := kindOfChild(name); kind != MutexLock {
			i.others = append(i.others, framework.Join(dir, name))
		}
	}
	i.report.Count += len(waiting)
	return i.readLine(ctx, dir, SemaphoreLock, waiting, func(waitline.Position) bool { return false })
}

// directoryLayout is a directory's children by the lock that they belong to.
type directoryLayout struct {
	lines  map[LockKind][]waitline.Position
	parts  []string // the names of a semaphore's directories and record
	others []string
}

// lineKinds are the kinds of locks that are a line in their own directory, in the order of reports.
var lineKinds = []LockKind{MutexLock, ReadWriteLock, ElectionLock, KazooLock}

// parseLayout sorts the children of a directory by their names, which may be any.
func parseLayout(names []string) directoryLayout {
	l := directoryLayout{lines: map[LockKind][]waitline.Position{}}
	for _, name := range names {
		kind, p := kindOfChild(name)
		switch {
		case kind != NoLock:
			l.lines[kind] = append(l.lines[kind], p)
		case slices.Contains(waitline.SemaphoreParts, name):
			l.parts = append(l.parts, name)
		default:
			l.others = append(l.others, name)
		}
	}
	for _, line := range l.lines {
		waitline.Sort(line)
	}
	slices.Sort(l.others)
	return l
}

// childCount is the number of children that are contenders.
func (l directoryLayout) childCount() (n int) {
	for _, line := range l.lines {
		n += len(line)
	}
	return n
}

// kindOfChild returns the kind of lock that a child contends for. kazoo's contenders hold and wait by the same rules as readers and
// writers.
func kindOfChild(name string) (LockKind, waitline.Position) {
	p, ok := waitline.ParsePosition(name)
	if !ok {
		return NoLock, waitline.Position{}
	}
	switch p.Kind.Family() {
	case waitline.Mutex:
		return MutexLock, p
	case waitline.Latch:
		return ElectionLock, p
	case waitline.Write:
		return ReadWriteLock, p
	}
	if p.Kind == waitline.KazooRead {
		p.Kind = waitline.Read
	} else {
		p.Kind = waitline.Write
	}
	return KazooLock, p
}

// holderFilter separates holders from waiters. It takes contenders in the order of the line.
type holderFilter struct{ first, writer *waitline.Position }

// admits reports whether the next contender holds. Only the first contender and the first writer can block it.
func (h *holderFilter) admits(p waitline.Position) bool {
	blocked := h.first != nil && h.first.Blocks(p) || h.writer != nil && h.writer.Blocks(p)
	if h.first == nil {
		h.first = &p
	}
	if h.writer == nil && !p.Kind.IsShared() {
		h.writer = &p
	}
	return !blocked
}

// modeName is the Entry's mode of a reader or writer.
func modeName(p waitline.Position) string {
	switch p.Kind {
	case waitline.Read:
		return "read"
	case waitline.Write:
		return "write"
	}
	return ""
}
