// Package terminal colours what people read, and leaves what programs read plain.
package terminal
