// Package architecture makes the house's rules a failing test: which package may import which,
// which files may import which library, and how long files and functions may be. It reads the
// source tree and nothing else.
//
// A new package, or a new arrow between two, is added to the table in arrows.go, with a reason
// in docs/adr.
package architecture
