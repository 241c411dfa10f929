package locks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kinds are the names that contenders have between their protection and their number, here and in
// Apache Curator. Everything else below a lock directory is foreign and never counted.
var kinds = []string{"lock-", "latch-", "__READ__", "__WRIT__"}

// place is one contender's place in the line.
type place struct {
	name string
	kind string
	seq  int32
}

// parse reads a child's name; ok is false for a foreign one.
func parse(name string) (p place, ok bool) {
	for _, kind := range kinds {
		i := strings.LastIndex(name, kind)
		if i < 0 {
			continue
		}
		if seq, err := sequence(name[i+len(kind):]); err == nil {
			return place{name, kind, seq}, true
		}
	}
	return place{}, false
}

// sequence reads the number that a server has appended: ten characters, an int32 that may have wrapped
// to negative ones (eleven characters at most).
func sequence(digits string) (int32, error) {
	if len(digits) < 10 || len(digits) > 11 || digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err
}

// before orders sequence numbers on the circle of int32, so that the order holds where they wrap:
// compared as strings, the wrapped one would come first, and two clients would hold the lock.
func (p place) before(q place) bool { return p.seq-q.seq < 0 }

// each calls f with the contenders among names. It refuses a mixture of kinds.
func each(names []string, kind string, f func(place)) error {
	for _, name := range names {
		p, ok := parse(name)
		if !ok {
			continue
		}
		if p.kind != kind {
			return fmt.Errorf("%w: %s beside %s#", ErrKindMixed, name, kind)
		}
		f(p)
	}
	return nil
}

// order returns the contenders of one kind among names, first come first. It refuses a mixture.
func order(names []string, kind string) ([]place, error) {
	line := make([]place, 0, len(names))
	if err := each(names, kind, func(p place) { line = append(line, p) }); err != nil {
		return nil, err
	}
	slices.SortFunc(line, func(a, b place) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return line, nil
}

// view is what a contender sees of the line.
type view struct {
	ahead     int   // contenders before it
	near, far place // the last of them, and the one before that
	mine      bool  // the contender itself is there
}

// see looks at the line from one place, without sorting it: lists may be long.
func see(names []string, from place) (v view, err error) {
	err = each(names, from.kind, func(p place) {
		switch {
		case p.name == from.name:
			v.mine = true
		case !p.before(from):
		case v.ahead == 0 || v.near.before(p):
			v.ahead, v.near, v.far = v.ahead+1, p, v.near
		case v.ahead == 1 || v.far.before(p):
			v.ahead, v.far = v.ahead+1, p
		default:
			v.ahead++
		}
	})
	return v, err
}
