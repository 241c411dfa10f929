//go:build linux

package chaos

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// item is the state of one item of a parallel queue.
type item struct {
	phase   phase
	holder  string
	attempt int
	purged  bool // while it was held
}

type phase string

const (
	absent phase = ""      // not put yet
	free   phase = "free"  // in the queue
	held   phase = "held"  // delivered
	loose  phase = "loose" // acknowledged with an error, or purged: in the queue or gone
	gone   phase = "gone"
)

// itemModel: an item that was put is delivered to one holder at a time, each time with a higher attempt, until it is
// acknowledged, and then never again.
var itemModel = porcupine.Model{
	Init:              func() any { return item{} },
	Step:              func(s, in, _ any) (bool, any) { return s.(item).step(in.(act)) },
	DescribeOperation: describe,
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

func (i item) step(a act) (bool, any) {
	switch a.what {
	case put:
		return i.phase == absent, item{phase: free}
	case grant:
		return (i.phase == free || i.phase == loose) && a.attempt > i.attempt, item{phase: held, holder: a.id, attempt: a.attempt}
	case end:
		next := afterwards(a.how)
		if i.purged && next == free {
			next = loose
		}
		return i.phase == held && i.holder == a.id, item{phase: next, attempt: i.attempt}
	case purge:
		i.purged = i.phase == held
		if i.phase == free {
			i.phase = loose
		}
		return true, i
	}
	return i.phase != held && (i.phase != free || a.dead), i
}

// afterwards is where an item is after a delivery.
func afterwards(h how) phase {
	switch h {
	case acked:
		return gone
	case inDoubt:
		return loose
	}
	return free
}

// stream is the state of what one producer has put into a strict queue, one item after the other.
type stream struct {
	put     int64 // the last one
	next    int64 // the first that is not acknowledged
	loose   bool  // or it is, and it is the one after
	holder  string
	attempt int // of next
}

// streamModel: a producer's items start in the order in which they were put, each when the one before was
// acknowledged. first is the number of the first item.
func streamModel(first int64) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return stream{put: first - 1, next: first} },
		Step:              func(s, in, _ any) (bool, any) { return s.(stream).step(in.(act)) },
		DescribeOperation: describe,
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func (s stream) step(a act) (bool, any) {
	switch a.what {
	case put:
		ok := a.number == s.put+1
		s.put = a.number
		return ok, s
	case grant:
		return s.start(a)
	case end:
		return s.stop(a)
	}
	left := s.put - s.next + 1
	return s.holder == "" && (left <= 0 || s.loose && left == 1), s
}

func (s stream) start(a act) (bool, any) {
	if s.loose && a.number == s.next+1 { // the acknowledgement was done
		s.next, s.attempt = a.number, 0
	}
	ok := s.holder == "" && a.number == s.next && a.number <= s.put && a.attempt > s.attempt
	s.loose, s.holder, s.attempt = false, a.id, a.attempt
	return ok, s
}

func (s stream) stop(a act) (bool, any) {
	ok := s.holder == a.id
	s.holder = ""
	switch afterwards(a.how) {
	case gone:
		s.next, s.attempt = s.next+1, 0
	case loose:
		s.loose = true
	}
	return ok, s
}
