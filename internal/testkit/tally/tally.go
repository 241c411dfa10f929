// Package tally counts events by name, for the summaries of long runs.
package tally

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counters has a count for each name.
type Counters[K ~string] map[K]int

// Sum returns the sum of all counts.
func (c Counters[K]) Sum() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// String lists the counters, sorted by name: "cut 3, lost reply 1".
func (c Counters[K]) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(parts, ", ")
}
