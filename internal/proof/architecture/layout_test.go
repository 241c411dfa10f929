package architecture

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// queueNames are string literals with names of a queue's nodes.
var queueNames = regexp.MustCompile("[\"`/](tickets|lanes|redo|cancels|places)[\"`/]|\"(i-|t-)\"")

// TestQueueLayoutIsKnownInOnePackage: whoever needs the name of a queue's node asks
// internal/queuelayout.
func TestQueueLayoutIsKnownInOnePackage(t *testing.T) {
	const root = "../../.."
	files, err := loadModule()
	require.NoError(t, err)
	found := 0
	for _, f := range files {
		if f.IsTest() || strings.HasPrefix(f.Path, "internal/proof/") {
			continue
		}
		source, err := os.ReadFile(root + "/" + f.Path)
		require.NoError(t, err)
		for line := range strings.Lines(string(source)) {
			code, _, _ := strings.Cut(line, "//")
			if name := queueNames.FindString(code); name != "" {
				found++
				require.Equal(t, "internal/queuelayout", f.Dir(), "%s: %s: %s", f.Path, name, line)
			}
		}
	}
	require.Positive(t, found)
}
