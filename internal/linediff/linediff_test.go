package linediff

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommonLines(t *testing.T) {
	for _, c := range []struct {
		older, newer string
		head, tail   int
	}{
		{"", "", 0, 0}, {"", "a", 0, 0}, {"a b c", "a b c", 3, 0}, {"a b c", "a x c", 1, 1}, {"a c", "a b c", 1, 1},
		{"a a", "a a a", 2, 0}, {"a b", "c d", 0, 0}, {"x a b", "a b", 0, 2},
	} {
		head, tail := Common(strings.Fields(c.older), strings.Fields(c.newer))
		require.Equal(t, []int{c.head, c.tail}, []int{head, tail}, "%q, %q", c.older, c.newer)
	}
}
