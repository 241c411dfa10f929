package election

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPriority reads the names of waiting candidates' nodes, whoever has made them.
func FuzzPriority(f *testing.F) {
	for _, name := range []string{waitingName(0), "guid-" + waitingName(MaxPriority), "-p-1", "-p99999999999999999999",
		"-p", "a-p1-p2", "\xff-p3"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p := priorityOf(name)
		require.GreaterOrEqual(t, p, 0)
		require.LessOrEqual(t, p, MaxPriority)
		require.Equal(t, p, priorityOf("guid-"+waitingName(p)))
		before, after, found := cutAtLast(name, "-p")
		if found {
			require.Equal(t, name, before+"-p"+after)
			require.False(t, strings.Contains(after, "-p"))
		}
	})
}
