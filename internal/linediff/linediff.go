// Package linediff compares two versions of a text.
package linediff

// Common returns how many lines two texts share at their beginning, and how many at their end. The
// lines between are those that differ; a line is counted once.
func Common(older, newer []string) (head, tail int) {
	shorter := min(len(older), len(newer))
	for head < shorter && older[head] == newer[head] {
		head++
	}
	for tail < shorter-head && older[len(older)-1-tail] == newer[len(newer)-1-tail] {
		tail++
	}
	return head, tail
}
