package architecture

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layoutNames are string literals with names of nodes, by the package that alone has them.
var layoutNames = map[string]*regexp.Regexp{
	"internal/queuelayout": regexp.MustCompile("[\"`/](tickets|lanes|redo|cancels|places)[\"`/]|\"(i-|t-)\""),
	"internal/joblayout":   regexp.MustCompile("\"(past-|run-|jobs/)|/jobs/[^a-z]*(run|past)-"),
}

// TestALayoutIsKnownInOnePackage: whoever needs the name of a queue's or a scheduler's node asks
// that package.
func TestALayoutIsKnownInOnePackage(t *testing.T) {
	for layout, names := range layoutNames {
		requireOnlyIn(t, layout, names)
	}
}

func requireOnlyIn(t *testing.T, layout string, names *regexp.Regexp) {
	t.Helper()
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
			if name := names.FindString(code); name != "" {
				found++
				require.Equal(t, layout, f.Dir(), "%s: %s: %s", f.Path, name, line)
			}
		}
	}
	require.Positive(t, found)
}
