// Package counts counts things by name, for what long runs tell of themselves.
package counts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// By is how often there was what, by its name.
type By[K ~string] map[K]int

// Sum is how often there was anything.
func (c By[K]) Sum() (n int) {
	for _, times := range c {
		n += times
	}
	return n
}

// String lists all by name: "cut 3, lost reply 1".
func (c By[K]) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(parts, ", ")
}
