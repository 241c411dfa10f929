//go:build linux

package chaos

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// itemState is the state of one item of a parallel queue.
type itemState struct {
	phase   itemPhase
	holder  string
	attempt int
	purged  bool // purged while it was held
}

type itemPhase string

const (
	itemAbsent    itemPhase = ""
	itemQueued    itemPhase = "queued"
	itemHeld      itemPhase = "held"      // delivered
	itemUncertain itemPhase = "uncertain" // a failed acknowledgement, a purge or a failed cancel: queued or gone
	itemCancelled itemPhase = "cancelled" // never delivered again, and perhaps still in its place
	itemGone      itemPhase = "gone"
)

// itemModel is the sequential model of an item: after a put, it has one holder at a time, with
// rising attempts, until it is acknowledged or cancelled. Then it is not delivered again. A
// cancelled item can be cancelled again until it has left its place in the queue; the history does
// not show when a consumer removes it.
var itemModel = porcupine.Model{
	Init:              func() any { return itemState{} },
	Step:              func(s, in, _ any) (bool, any) { return s.(itemState).step(in.(modelInput)) },
	DescribeOperation: describeInput,
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

func (i itemState) step(a modelInput) (bool, any) {
	switch a.op {
	case opPut:
		return i.phase == itemAbsent, itemState{phase: itemQueued}
	case opGrant:
		return (i.phase == itemQueued || i.phase == itemUncertain) && a.attempt > i.attempt,
			itemState{phase: itemHeld, holder: a.id, attempt: a.attempt}
	case opEnd:
		next := phaseAfter(a.reason)
		if i.purged && next == itemQueued {
			next = itemUncertain
		}
		return i.phase == itemHeld && i.holder == a.id, itemState{phase: next, attempt: i.attempt}
	case opPurge:
		i.purged = i.phase == itemHeld
		if i.phase == itemQueued {
			i.phase = itemUncertain
		}
		return true, i
	case opCancel:
		// it takes a queued item; one that a purge has removed below its holder may be reported as
		// cancelled, too
		if i.phase == itemHeld {
			return i.purged, i
		}
		return i.phase == itemQueued || i.phase == itemUncertain || i.phase == itemCancelled,
			itemState{phase: itemCancelled, attempt: i.attempt}
	}
	if a.deadLetter {
		return i.phase == itemQueued || i.phase == itemUncertain, i
	}
	if i.phase == itemCancelled { // an empty queue has no item in its place
		return true, itemState{phase: itemGone, attempt: i.attempt}
	}
	return i.phase != itemHeld && i.phase != itemQueued, i
}

// phaseAfter returns the phase of an item after a delivery.
func phaseAfter(h endReason) itemPhase {
	switch h {
	case endAcked:
		return itemGone
	case endUncertain:
		return itemUncertain
	}
	return itemQueued
}

// streamState is the state of one producer's items in a strict queue.
type streamState struct {
	lastPut       int64 // number of the last put
	next          int64 // number of the first item that is not acknowledged
	nextUncertain bool  // next may be acknowledged, so that the first is the one after it
	holder        string
	attempt       int // of next
}

// streamModel returns the sequential model of a producer's items in a strict queue: they start in
// the order of their puts, each after the previous one was acknowledged. first is the number of the
// first item.
func streamModel(first int64) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return streamState{lastPut: first - 1, next: first} },
		Step:              func(s, in, _ any) (bool, any) { return s.(streamState).step(in.(modelInput)) },
		DescribeOperation: describeInput,
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func (s streamState) step(a modelInput) (bool, any) {
	switch a.op {
	case opPut:
		ok := a.number == s.lastPut+1
		s.lastPut = a.number
		return ok, s
	case opGrant:
		return s.deliver(a)
	case opEnd:
		return s.endDelivery(a)
	}
	left := s.lastPut - s.next + 1
	return s.holder == "" && (left <= 0 || s.nextUncertain && left == 1), s
}

func (s streamState) deliver(a modelInput) (bool, any) {
	if s.nextUncertain && a.number == s.next+1 { // the uncertain acknowledgement was done
		s.next, s.attempt = a.number, 0
	}
	ok := s.holder == "" && a.number == s.next && a.number <= s.lastPut && a.attempt > s.attempt
	s.nextUncertain, s.holder, s.attempt = false, a.id, a.attempt
	return ok, s
}

func (s streamState) endDelivery(a modelInput) (bool, any) {
	ok := s.holder == a.id
	s.holder = ""
	switch phaseAfter(a.reason) {
	case itemGone:
		s.next, s.attempt = s.next+1, 0
	case itemUncertain:
		s.nextUncertain = true
	}
	return ok, s
}
