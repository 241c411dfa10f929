// Package terminal colours the output on a terminal, and shows full-screen views on it. Output to
// files and pipes stays plain.
package terminal
