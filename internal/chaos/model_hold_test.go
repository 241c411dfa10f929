//go:build linux

package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// act is the input of every model: what happens to a hold, an item or a stream at one moment.
type act struct {
	what verb
	id   string // of the hold
	who  string // for people

	kind          kind
	permits       int
	token, number int64

	stream  string // of an item; number is its place
	attempt int
	how     how  // of an end
	dead    bool // the item was found among the dead letters
}

type verb string

const (
	grant verb = "grant"
	end   verb = "end"
	put   verb = "put"
	empty verb = "empty" // the queue was seen to be empty
	purge verb = "purge" // it removes the item, or the item came while it ran
)

func (a act) String() string {
	switch a.what {
	case put:
		return fmt.Sprintf("%s puts %s #%d", a.who, a.stream, a.number)
	case empty:
		return "the queue is empty"
	case end:
		return fmt.Sprintf("%s: end (%s)", a.who, a.how)
	}
	switch a.kind {
	case taking:
		return fmt.Sprintf("%s: %s #%d, attempt %d", a.who, a.stream, a.number, a.attempt)
	case permits:
		return fmt.Sprintf("%s: %d permits", a.who, a.permits)
	}
	return fmt.Sprintf("%s: %s, token %d, number %d", a.who, a.kind, a.token, a.number)
}

// describe shows an act in a visualisation.
func describe(input, _ any) string { return input.(act).String() }

// rule says how a thing may be held.
type rule struct {
	limit    int  // permits; 0: one exclusive holder, or readers
	fenced   bool // tokens rise with every exclusive grant
	numbered bool // so do numbers
}

// holders is the state of a thing that is held.
type holders struct {
	all     []holder // by id
	fence   int64    // the highest token of an exclusive grant
	highest int64    // and of any
	number  int64
}

type holder struct {
	id      string
	kind    kind
	permits int
}

// holdModel is the sequential model of mutexes, read-write locks, semaphores and elections, from a state on.
func holdModel(r rule, from holders) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return from },
		Step:              func(s, in, _ any) (bool, any) { return r.step(s.(holders), in.(act)) },
		Equal:             func(a, b any) bool { return a.(holders).equal(b.(holders)) },
		DescribeOperation: describe,
		DescribeState:     func(s any) string { return s.(holders).String() },
	}
}

func (r rule) step(s holders, a act) (bool, any) {
	if a.what == end {
		return s.without(a.id)
	}
	if !r.room(s, a) || r.fenced && !s.rises(a) || r.numbered && a.number <= s.number {
		return false, s
	}
	i, _ := slices.BinarySearchFunc(s.all, a.id, byID)
	s.all = slices.Insert(slices.Clone(s.all), i, holder{a.id, a.kind, a.permits})
	s.highest, s.number = max(s.highest, a.token), max(s.number, a.number)
	if a.kind != shared {
		s.fence = max(s.fence, a.token)
	}
	return true, s
}

// room tells whether somebody may hold beside those who do.
func (r rule) room(s holders, a act) bool {
	if r.limit == 0 {
		return len(s.all) == 0 || a.kind == shared && !slices.ContainsFunc(s.all, func(h holder) bool { return h.kind != shared })
	}
	taken := a.permits
	for _, h := range s.all {
		taken += h.permits
	}
	return taken <= r.limit
}

// rises tells whether a token is above all that it must be above.
func (s holders) rises(a act) bool {
	if a.kind == shared {
		return a.token > s.fence
	}
	return a.token > s.highest
}

func (s holders) without(id string) (bool, any) {
	i, ok := slices.BinarySearchFunc(s.all, id, byID)
	if !ok {
		return false, s
	}
	s.all = slices.Delete(slices.Clone(s.all), i, i+1)
	return true, s
}

func byID(h holder, id string) int { return strings.Compare(h.id, id) }

func (s holders) equal(o holders) bool {
	return s.fence == o.fence && s.highest == o.highest && s.number == o.number && slices.Equal(s.all, o.all)
}

func (s holders) String() string {
	var ids []string
	for _, h := range s.all {
		ids = append(ids, fmt.Sprintf("%s (%s)", h.id, h.kind))
	}
	return fmt.Sprintf("held by [%s], fence %d, number %d", strings.Join(ids, ", "), s.fence, s.number)
}
