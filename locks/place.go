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

// order returns the contenders of one kind among names, first come first. It refuses a mixture.
func order(names []string, kind string) ([]place, error) {
	line := make([]place, 0, len(names))
	for _, name := range names {
		p, ok := parse(name)
		if !ok {
			continue
		}
		if p.kind != kind {
			return nil, fmt.Errorf("%w: %s beside %s#", ErrKindMixed, name, kind)
		}
		line = append(line, p)
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
