package locks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// place is one contender's place in the line.
type place struct {
	name string
	kind Kind
	seq  int32
}

// parse reads a child's name; ok is false for a foreign one.
func parse(name string) (p place, ok bool) {
	for _, digits := range [...]int{10, 11} { // an int32 that may have wrapped to negative ones
		if cut := len(name) - digits; cut > 0 {
			if kind, ok := kindOf(name[:cut]); ok {
				seq, err := sequence(name[cut:])
				return place{name, kind, seq}, err == nil
			}
		}
	}
	return place{}, false
}

// kindOf returns the kind that a name without its number ends with.
func kindOf(stem string) (Kind, bool) {
	for _, kind := range kinds {
		if strings.HasSuffix(stem, string(kind)) {
			return kind, true
		}
	}
	return "", false
}

// sequence reads the number that a server has appended.
func sequence(digits string) (int32, error) {
	if digits[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err
}

// digits is the number as the server has written it.
func (p place) digits() string {
	return p.name[strings.LastIndex(p.name, string(p.kind))+len(p.kind):]
}

// before orders sequence numbers on the circle of int32, so that the order holds where they wrap:
// compared as strings, the wrapped one would come first, and two clients would hold the lock.
func (p place) before(q place) bool { return p.seq-q.seq < 0 }

// blocks tells whether q must wait for p.
func (p place) blocks(q place) bool {
	return p.before(q) && !(p.kind.shared() && q.kind.shared())
}

// each calls f with the contenders among names. It refuses a mixture of kinds, for which f may have been
// called by then.
func each(names []string, co company, f func(place)) error {
	var parts []string
	for _, name := range names {
		p, ok := parse(name)
		switch {
		case ok && !co.admits(p.kind):
			return fmt.Errorf("%w: %s beside %s#", ErrKindMixed, name, co.kind)
		case ok:
			f(p)
		case slices.Contains(semaphoreParts, name):
			parts = append(parts, name)
		}
	}
	if len(parts) > 1 { // one alone may be another lock's directory
		return fmt.Errorf("%w: a semaphore's %s beside %s#", ErrKindMixed, strings.Join(parts, " and "), co.kind)
	}
	return nil
}

// order returns the contenders among names, first come first. It refuses a mixture of kinds. A
// writer comes before the reader that has its number.
func order(names []string, co company) ([]place, error) {
	line := make([]place, 0, len(names))
	if err := each(names, co, func(p place) { line = append(line, p) }); err != nil {
		return nil, err
	}
	inOrder(line)
	return line, nil
}
