package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	goBlock   = regexp.MustCompile("(?s)```go\n(.*?)```")
	fuzzRow   = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| ((?:Fuzz\\w+(?:, )?)+) \\|")
	fuzzNamed = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
)

func page(t *testing.T, name string) string {
	text, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	return string(text)
}

// TestTheGuidesCodeRuns: what docs/testing.md shows is what the tests of zktest run.
func TestTheGuidesCodeRuns(t *testing.T) {
	source, err := os.ReadFile("../../zktest/example_test.go")
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(page(t, "testing.md"), -1)
	require.Greater(t, len(blocks), 3)
	for _, b := range blocks {
		require.Contains(t, string(source), b[1])
	}
}

// TestTheTableOfFuzzTargets: docs/proof.md names each fuzz target of the packages that it lists.
func TestTheTableOfFuzzTargets(t *testing.T) {
	rows := fuzzRow.FindAllStringSubmatch(page(t, "proof.md"), -1)
	require.Greater(t, len(rows), 10)
	for _, row := range rows {
		named := strings.Split(row[2], ", ")
		slices.Sort(named)
		require.Equal(t, fuzzTargets(t, row[1]), named, row[1])
	}
}

// fuzzTargets are those of a package.
func fuzzTargets(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range fuzzNamed.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}
