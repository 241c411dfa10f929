package locks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTableOfCounterpartsNamesTests that exist.
func TestTheTableOfCounterpartsNamesTests(t *testing.T) {
	table, err := os.ReadFile("../docs/curator.md")
	require.NoError(t, err)
	exist := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../framework/*_test.go", "../internal/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
				exist[string(m[1])] = true
			}
		}
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(table), -1)
	require.Greater(t, len(named), 80)
	for _, name := range named {
		theirs := strings.HasPrefix(name, "TestInterProcess") || strings.HasPrefix(name, "TestLockACLs") || strings.HasPrefix(name, "TestLockInternals")
		require.True(t, exist[name] || theirs, name)
	}
}
