package queue

import (
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// Retried is what Inspect has seen of the items of a queue that were delivered and have come
// back: that consumers have returned, or that consumers had when they died. Consumers may have some
// of them again.
//
// Inspect reads few of them: the first items of each priority; of a parallel queue also the
// first returned items, and those delayed items that are due first and last, 32 in all. It reads no
// more after 256 kB.
type Retried struct {
	// Items is how many such items Inspect has read.
	Items int `json:"items"`
	// More says that there were items that Inspect has not read, and that may have come back.
	More bool `json:"more,omitempty"`
	// Attempts is the highest number of attempts that an item has behind it. A strict queue does
	// not store an item's first attempt.
	Attempts int `json:"attempts,omitempty"`
	// Node is the node of the item with the most attempts, or "".
	Node string `json:"node,omitempty"`
	// ID is the id that the producer gave that item, or "".
	ID string `json:"id,omitempty"`
	// LastError is the reason of that item's last failed attempt (Nack), or "".
	LastError string `json:"last_error,omitempty"`
}

// learn records an item that was read, and reports whether it has come back.
func (r *Retried) learn(node string, e queuelayout.Envelope, stat framework.Stat) bool {
	attempts := e.Attempt(stat.Version) - 1
	if attempts <= 0 {
		return false
	}
	r.Items++
	if attempts > r.Attempts {
		r.Attempts, r.Node, r.ID, r.LastError = attempts, node, e.Header.ID, e.Header.Error
	}
	return true
}

// The bounds of a search for returned items in one queue.
const (
	retriedReads = 32        // items that it reads
	retriedBytes = 256 << 10 // after so many it reads no more
	// returned items, and delayed items that are due first, and last, whose directories it lists
	retriedAtEnds   = 16
	maxRetriedNames = 10_000 // names in a directory that it lists
)

// filledDir is a directory and how many items it has.
type filledDir struct {
	path  string
	items int
}

// retriedSearch chooses which items of a queue to read, to find those that have come back. The
// items due last are among them: their attempts may have failed the most often, since pauses
// between attempts grow.
type retriedSearch struct {
	dirs  []string    // to list: of returned items, of those due last, and of those due first
	kinds [3]int      // how many of dirs are of each kind
	items int         // that there are in all such directories of the queue
	nodes [3][]string // of listed items that were not read, by kind

	read, bytes, largest int // of the items that were read
}

// The kinds of items, in the order in which their first ones are read.
const (
	returnedItems = iota
	dueLast
	dueFirst
)

// newRetriedSearch searches directories of returned items and of delayed items, each in order.
func newRetriedSearch(returned, delayed []filledDir) *retriedSearch {
	s := &retriedSearch{}
	for _, d := range slices.Concat(returned, delayed) {
		s.items += d.items
	}
	s.choose(returnedItems, returned)
	backwards := slices.Clone(delayed)
	slices.Reverse(backwards)
	last := s.choose(dueLast, backwards)
	s.choose(dueFirst, delayed[:len(delayed)-last])
	return s
}

// choose adds the first directories to those to list, as many as have enough items. It returns how
// many directories it has gone through.
func (s *retriedSearch) choose(kind int, dirs []filledDir) (passed int) {
	for enough := retriedAtEnds; passed < len(dirs) && enough > 0; passed++ {
		if d := dirs[passed]; d.items <= maxRetriedNames {
			s.dirs = append(s.dirs, d.path)
			s.kinds[kind]++
			enough -= d.items
		}
	}
	return passed
}

// addNames records the names in the directory with a number among dirs.
func (s *retriedSearch) addNames(n int, names []string) {
	kind, dir := 0, s.dirs[n]
	for ; n >= s.kinds[kind]; kind++ {
		n -= s.kinds[kind]
	}
	numbers := queuelayout.ItemNumbersIn(names)
	if kind == dueLast {
		slices.Reverse(numbers)
	}
	for _, number := range numbers {
		if len(s.nodes[kind]) < retriedReads {
			s.nodes[kind] = append(s.nodes[kind], queuelayout.ItemPath(dir, number))
		}
	}
}

// next returns the items to read next, or none if the search is over: three times as many as
// were read so far, and no more than should fit into the bounds.
func (s *retriedSearch) next() (items []string) {
	most := min(max(2, 3*s.read), retriedReads-s.read, (retriedBytes-s.bytes)/max(1, s.largest))
	for progress := true; progress && len(items) < most; {
		progress = false
		for kind, nodes := range s.nodes {
			if len(nodes) > 0 && len(items) < most {
				items, s.nodes[kind], progress = append(items, nodes[0]), nodes[1:], true
			}
		}
	}
	return items
}

// learn records items that next has returned. It returns the first error of a read.
func (s *retriedSearch) learn(found *Retried, items []string, read []framework.Node) (failed error) {
	for i, n := range read {
		s.read++
		s.bytes += len(n.Data)
		s.largest = max(s.largest, len(n.Data))
		if e, err := queuelayout.DecodeItem(n.Data, n.Stat); n.Err == nil && err == nil {
			found.learn(items[i], e, n.Stat)
		} else if failed == nil && !errors.Is(n.Err, framework.ErrNoNode) {
			failed = n.Err
		}
	}
	found.More = s.read < s.items
	return failed
}
