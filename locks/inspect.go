package locks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// MaxEntries is how many nodes Inspect reads of one lock, one after the other.
const MaxEntries = 1000

// MaxChildren is how many children a directory may have to be listed: a list is one answer, and all of it
// is held in memory.
const MaxChildren = 250_000

// Inspect tells who holds the lock at path and who waits for it, whatever kind it is and whoever made it:
// what Curator and kazoo write is shown as it is. It takes part in nothing and leaves no watch.
//
// A path that does not exist, or is no lock, has a report of kind NoLock. Nodes that vanish meanwhile are
// left out. The connected server answers, which may be a little behind the others. The error wraps
// framework.ErrTooLarge if a directory has more than MaxChildren children, framework.ErrNoAuth or
// framework.ErrInvalidPath, or is that of ctx.
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

// inspection is one look at one path.
type inspection struct {
	client *framework.Client
	path   string
	report *Report
	left   int      // nodes that may still be read
	below  []string // children that are no part of the lock
	others []string // what else is no part of it, in a semaphore's directories
}

func newInspection(client *framework.Client, path string) *inspection {
	// Lists are never null in JSON.
	r := &Report{Path: path, Kind: NoLock, Holders: []Entry{}, Waiters: []Entry{}}
	return &inspection{client: client, path: path, report: r, left: MaxEntries}
}

// inspectPath finds out what lies at the path and reads the contenders.
func (i *inspection) inspectPath(ctx context.Context) error {
	st, err := i.client.Exists(ctx, i.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err != nil:
		return err
	case st.EphemeralOwner != 0 && st.NumChildren == 0:
		if _, name := framework.Split(i.path); strings.HasPrefix(name, framework.ProtectedPrefix) {
			return nil // one of several, such as a member: a claim's name is its own
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

// addOthers notes children that are no part of the lock.
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

// listChildren lists a directory whose Stat is known, unless there are too many.
func (i *inspection) listChildren(ctx context.Context, dir string, st framework.Stat) ([]string, error) {
	if st.NumChildren == 0 {
		return nil, nil
	}
	if st.NumChildren > MaxChildren {
		return nil, framework.Wrap("list", dir,
			fmt.Errorf("%w: %d children, at most %d are listed", framework.ErrTooLarge, st.NumChildren, MaxChildren))
	}
	names, _, err := i.client.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// readClaim reads a node that is a lock by itself.
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

// readLine reads contenders in their order. A node that is gone is in nobody's way.
func (i *inspection) readLine(ctx context.Context, dir string, kind LockKind, line []position, holds func(position) bool) error {
	for _, p := range line {
		e, err := i.readEntry(ctx, framework.Join(dir, p.name), kind)
		if err != nil {
			return err
		}
		if e != nil {
			e.Mode = p.modeName()
			i.report.addEntry(holds(p), *e)
		}
	}
	return nil
}

// readEntry reads one node; nil if it is gone, or one too many.
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

// readOthers reads what is no part of the lock, as far as there is room.
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

// permitsIn reads a semaphore's record as far as it can be understood; 0 if it cannot.
func permitsIn(record []byte) int {
	var p struct{ Permits int }
	if err := json.Unmarshal(record, &p); err != nil {
		return 0
	}
	return max(p.Permits, 0)
}

// The names below a semaphore's path.
const (
	locksPart   = "locks"
	leasesPart  = "leases"
	permitsPart = "permits"
)

var semaphoreParts = []string{locksPart, leasesPart, permitsPart}

// readSemaphore reads the semaphore at the path, if there is one. Servers delete its directories while they are
// empty, and any of the names may be somebody's lock: it is a semaphore if there is a lease, a record
// of permits, or both directories with nothing that contradicts. Else its parts are children as
// others are.
func (i *inspection) readSemaphore(ctx context.Context, l directoryLayout) error {
	leases, strange, err := i.readLeases(ctx, l)
	if err != nil {
		return err
	}
	permits, err := i.readPermits(ctx, l)
	if err != nil {
		return err
	}
	both := slices.Contains(l.parts, locksPart) && slices.Contains(l.parts, leasesPart)
	if len(leases) == 0 && permits == 0 && !(both && len(strange) == 0) {
		i.addOthers(l.parts)
		return nil
	}
	i.report.addKind(SemaphoreLock)
	i.report.Permits = permits
	i.others = strange
	i.report.Count += len(leases)
	if err := i.readLine(ctx, framework.Join(i.path, leasesPart), SemaphoreLock, leases, func(position) bool { return true }); err != nil {
		return err
	}
	i.groupPermits()
	return i.readWaiters(ctx)
}

// readLeases lists the leases, and the other children of their directory.
func (i *inspection) readLeases(ctx context.Context, l directoryLayout) (leases []position, strange []string, err error) {
	if !slices.Contains(l.parts, leasesPart) {
		return nil, nil, nil
	}
	dir := framework.Join(i.path, leasesPart)
	names, err := i.listDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if p, ok := parseNumbered(name, leaseName, MutexKind); ok {
			leases = append(leases, p)
		} else {
			strange = append(strange, framework.Join(dir, name))
		}
	}
	sortBySequence(leases)
	slices.Sort(strange)
	return leases, strange, nil
}

// readPermits reads the number of permits, 0 if there is none to be found.
func (i *inspection) readPermits(ctx context.Context, l directoryLayout) (int, error) {
	if !slices.Contains(l.parts, permitsPart) {
		return 0, nil
	}
	data, _, err := i.client.Get(ctx, framework.Join(i.path, permitsPart))
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
		return 0, nil
	}
	return permitsIn(data), err
}

// groupPermits makes one holder of permits that were granted together: by one transaction.
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

// readWaiters reads who waits for permits.
func (i *inspection) readWaiters(ctx context.Context) error {
	dir := framework.Join(i.path, locksPart)
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
	return i.readLine(ctx, dir, SemaphoreLock, waiting, func(position) bool { return false })
}

// directoryLayout is a directory's children, sorted out by what they may be.
type directoryLayout struct {
	lines  map[LockKind][]position
	parts  []string // names that a semaphore's directories and its record have
	others []string
}

// lineKinds are the kinds of locks that are a line in their own directory, in the order of reports.
var lineKinds = []LockKind{MutexLock, ReadWriteLock, ElectionLock, KazooLock}

// parseLayout sorts a directory's children out. It takes any names.
func parseLayout(names []string) directoryLayout {
	l := directoryLayout{lines: map[LockKind][]position{}}
	for _, name := range names {
		kind, p := kindOfChild(name)
		switch {
		case kind != NoLock:
			l.lines[kind] = append(l.lines[kind], p)
		case slices.Contains(semaphoreParts, name):
			l.parts = append(l.parts, name)
		default:
			l.others = append(l.others, name)
		}
	}
	for _, line := range l.lines {
		sortBySequence(line)
	}
	slices.Sort(l.others)
	return l
}

// childCount is the number of children that make locks.
func (l directoryLayout) childCount() (n int) {
	for _, line := range l.lines {
		n += len(line)
	}
	return n
}

// kindOfChild tells what kind of lock a child makes of its directory. kazoo's contenders hold and wait by the
// same rules as readers and writers.
func kindOfChild(name string) (LockKind, position) {
	p, ok := parsePosition(name)
	if !ok {
		return NoLock, position{}
	}
	switch p.kind.familyName() {
	case MutexKind:
		return MutexLock, p
	case LatchKind:
		return ElectionLock, p
	case WriteKind:
		return ReadWriteLock, p
	}
	if p.kind == kazooReadKind {
		p.kind = ReadKind
	} else {
		p.kind = WriteKind
	}
	return KazooLock, p
}

// parseNumbered reads a name that ends with a stem and a server's number.
func parseNumbered(name, stem string, kind Kind) (p position, ok bool) {
	i := strings.LastIndex(name, stem)
	if i < 0 {
		return position{}, false
	}
	digits := name[i+len(stem):]
	if len(digits) != 10 && len(digits) != 11 {
		return position{}, false
	}
	seq, err := parseSequence(digits)
	return position{name, kind, seq}, err == nil
}

// sortBySequence sorts contenders, first come first. A writer comes before the reader that has its number.
func sortBySequence(line []position) {
	slices.SortStableFunc(line, func(a, b position) int {
		return cmp.Or(cmp.Compare(a.seq-b.seq, 0), -cmp.Compare(a.kind, b.kind))
	})
}

// holderFilter tells holders from waiters: who stands in the line is asked about in its order.
type holderFilter struct{ first, writer *position }

// admits reports whether the next one holds. Only the first of all and the first that is not shared can
// stand in its way.
func (h *holderFilter) admits(p position) bool {
	blocked := h.first != nil && h.first.mustWaitForThis(p) || h.writer != nil && h.writer.mustWaitForThis(p)
	if h.first == nil {
		h.first = &p
	}
	if h.writer == nil && !p.kind.isShared() {
		h.writer = &p
	}
	return !blocked
}

// modeName is what a reader and a writer are called.
func (p position) modeName() string {
	switch p.kind {
	case ReadKind:
		return "read"
	case WriteKind:
		return "write"
	}
	return ""
}
