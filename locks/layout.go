package locks

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/waitline"
)

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

// kindOfChild returns the kind of lock that a child contends for. kazoo's contenders hold and wait
// by the same rules as readers and writers.
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

// admitsPosition reports whether the next contender holds the lock. Only the first contender and
// the first writer can block the next one.
func (h *holderFilter) admitsPosition(p waitline.Position) bool {
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
