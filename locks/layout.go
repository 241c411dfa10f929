package locks

import (
	"cmp"
	"slices"
	"strings"
)

// layout is a directory's children, sorted out by what they may be.
type layout struct {
	lines  map[LockKind][]place
	parts  []string // names that a semaphore's directories and its record have
	others []string
}

// lineKinds are the kinds of locks that are a line in their own directory, in the order of reports.
var lineKinds = []LockKind{MutexLock, ReadWriteLock, ElectionLock, KazooLock}

// sortOut sorts a directory's children out. It takes any names.
func sortOut(names []string) layout {
	l := layout{lines: map[LockKind][]place{}}
	for _, name := range names {
		kind, p := recognise(name)
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
		inOrder(line)
	}
	slices.Sort(l.others)
	return l
}

// size is the number of children that make locks.
func (l layout) size() (n int) {
	for _, line := range l.lines {
		n += len(line)
	}
	return n
}

// recognise tells what kind of lock a child makes of its directory. kazoo's contenders hold and wait by the
// same rules as readers and writers.
func recognise(name string) (LockKind, place) {
	p, ok := parse(name)
	if !ok {
		return NoLock, place{}
	}
	switch p.kind.family() {
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

// numbered reads a name that ends with a stem and a server's number.
func numbered(name, stem string, kind Kind) (p place, ok bool) {
	i := strings.LastIndex(name, stem)
	if i < 0 {
		return place{}, false
	}
	digits := name[i+len(stem):]
	if len(digits) != 10 && len(digits) != 11 {
		return place{}, false
	}
	seq, err := sequence(digits)
	return place{name, kind, seq}, err == nil
}

// inOrder sorts contenders, first come first. A writer comes before the reader that has its number.
func inOrder(line []place) {
	slices.SortStableFunc(line, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.seq-b.seq, 0), -cmp.Compare(a.kind, b.kind))
	})
}

// head tells holders from waiters: who stands in the line is asked about in its order.
type head struct{ first, writer *place }

// admits tells whether the next one holds. Only the first of all and the first that is not shared can
// stand in its way.
func (h *head) admits(p place) bool {
	blocked := h.first != nil && h.first.blocks(p) || h.writer != nil && h.writer.blocks(p)
	if h.first == nil {
		h.first = &p
	}
	if h.writer == nil && !p.kind.shared() {
		h.writer = &p
	}
	return !blocked
}

// mode is what a reader and a writer are called.
func (p place) mode() string {
	switch p.kind {
	case ReadKind:
		return "read"
	case WriteKind:
		return "write"
	}
	return ""
}
