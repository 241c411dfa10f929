package unused

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAWideDirectory has 300,000 children. If each child's visit looked through all names, it would
// take minutes.
func TestAWideDirectory(t *testing.T) {
	f := &finder{found: &Found{}, names: map[string][]string{"/app": {"orders"}}}
	var names []string
	for i := range 300_000 {
		names = append(names, fmt.Sprintf("order-%010d", i))
	}
	f.names["/app/orders"] = names
	require.Len(t, f.visit("/app/orders", names), len(names))
	for _, path := range childPaths("/app/orders", names) {
		require.Empty(t, f.visit(path, nil))
	}
	require.Empty(t, f.judgements)
}
