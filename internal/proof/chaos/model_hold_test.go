//go:build linux

package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// modelInput is the input of each model: one step of a hold, an item or a stream.
type modelInput struct {
	op    inputOp
	id    string // of the hold
	label string // for pictures

	kind          requestKind
	permits       int
	token, number int64

	stream     string // of an item, at the place number
	attempt    int
	reason     endReason // of an end
	deadLetter bool      // the item is a dead letter
}

type inputOp string

const (
	opGrant     inputOp = "grant"
	opEnd       inputOp = "end"
	opPut       inputOp = "put"
	opSeenEmpty inputOp = "empty" // the queue was seen empty
	opPurge     inputOp = "purge" // removes the item if it is queued, or it was put meanwhile
	opCancel    inputOp = "cancel"
)

func (a modelInput) String() string {
	switch a.op {
	case opPut:
		return fmt.Sprintf("%s puts %s #%d", a.label, a.stream, a.number)
	case opCancel:
		return fmt.Sprintf("%s cancels %s #%d", a.label, a.stream, a.number)
	case opSeenEmpty:
		return "the queue is empty"
	case opEnd:
		return fmt.Sprintf("%s: end (%s)", a.label, a.reason)
	}
	switch a.kind {
	case kindDelivery:
		return fmt.Sprintf("%s: %s #%d, attempt %d", a.label, a.stream, a.number, a.attempt)
	case kindPermits:
		return fmt.Sprintf("%s: %d permits", a.label, a.permits)
	}
	return fmt.Sprintf("%s: %s, token %d, number %d", a.label, a.kind, a.token, a.number)
}

// describeInput labels an input in porcupine's picture.
func describeInput(input, _ any) string { return input.(modelInput).String() }

// holdRule says how many may hold at the same time, and which values must rise.
type holdRule struct {
	permits  int  // the limit of a semaphore; 0: one exclusive holder, or any number of readers
	fenced   bool // tokens rise with every exclusive grant
	numbered bool // term numbers rise with every grant
}

// holdState is the state of a held path.
type holdState struct {
	holders          []holder // sorted by id
	highestExclusive int64    // the highest token of an exclusive grant
	highestToken     int64    // the highest token of any grant
	highestNumber    int64
}

type holder struct {
	id      string
	kind    requestKind
	permits int
}

// holdModel is the sequential model of mutexes, read-write locks, semaphores and elections. It
// starts from a state.
func holdModel(r holdRule, from holdState) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return from },
		Step:              func(s, in, _ any) (bool, any) { return r.step(s.(holdState), in.(modelInput)) },
		Equal:             func(a, b any) bool { return a.(holdState).equal(b.(holdState)) },
		DescribeOperation: describeInput,
		DescribeState:     func(s any) string { return s.(holdState).String() },
	}
}

func (r holdRule) step(s holdState, a modelInput) (bool, any) {
	if a.op == opEnd {
		return s.remove(a.id)
	}
	if !r.admits(s, a) || r.fenced && !s.tokenRises(a) || r.numbered && a.number <= s.highestNumber {
		return false, s
	}
	i, _ := slices.BinarySearchFunc(s.holders, a.id, byID)
	s.holders = slices.Insert(slices.Clone(s.holders), i, holder{a.id, a.kind, a.permits})
	s.highestToken, s.highestNumber = max(s.highestToken, a.token), max(s.highestNumber, a.number)
	if a.kind != kindReadLock {
		s.highestExclusive = max(s.highestExclusive, a.token)
	}
	return true, s
}

// admits reports whether a request may be granted while the present holders hold.
func (r holdRule) admits(s holdState, a modelInput) bool {
	if r.permits == 0 {
		return len(s.holders) == 0 || a.kind == kindReadLock &&
			!slices.ContainsFunc(s.holders, func(h holder) bool { return h.kind != kindReadLock })
	}
	taken := a.permits
	for _, h := range s.holders {
		taken += h.permits
	}
	return taken <= r.permits
}

// tokenRises reports whether a token is above all tokens that it must exceed.
func (s holdState) tokenRises(a modelInput) bool {
	if a.kind == kindReadLock {
		return a.token > s.highestExclusive
	}
	return a.token > s.highestToken
}

func (s holdState) remove(id string) (bool, any) {
	i, ok := slices.BinarySearchFunc(s.holders, id, byID)
	if !ok {
		return false, s
	}
	s.holders = slices.Delete(slices.Clone(s.holders), i, i+1)
	return true, s
}

func byID(h holder, id string) int { return strings.Compare(h.id, id) }

func (s holdState) equal(o holdState) bool {
	return s.highestExclusive == o.highestExclusive && s.highestToken == o.highestToken &&
		s.highestNumber == o.highestNumber && slices.Equal(s.holders, o.holders)
}

func (s holdState) String() string {
	var ids []string
	for _, h := range s.holders {
		ids = append(ids, fmt.Sprintf("%s (%s)", h.id, h.kind))
	}
	return fmt.Sprintf("held by [%s], highest exclusive token %d, highest number %d", strings.Join(ids, ", "),
		s.highestExclusive, s.highestNumber)
}
