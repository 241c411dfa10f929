package unused

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAWideDirectory has two million children. If each child's visit looked through all names, the
// test would not end within the time that go test gives it.
func TestAWideDirectory(t *testing.T) {
	const n, digits = 2_000_000, 8
	f := &finder{found: &Found{}, names: map[string][]string{"/app": {"orders"}}}
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "%0*d", digits, i)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = all.String()[i*digits : (i+1)*digits]
	}
	f.names["/app/orders"] = names
	require.Len(t, f.visit("/app/orders", names[:100]), 100)
	for _, name := range names {
		if below := f.visit("/app/orders/"+name, nil); len(below) > 0 {
			require.Empty(t, below)
		}
	}
	require.Empty(t, f.judgements)
}
