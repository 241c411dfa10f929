package architecture

import (
	"io/fs"
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
	text, err := os.ReadFile("../../../docs/" + name)
	require.NoError(t, err)
	return string(text)
}

// TestGuideCodeIsTested checks that the code in docs/testing.md is code that the tests of zktest
// run.
func TestGuideCodeIsTested(t *testing.T) {
	source, err := os.ReadFile("../../../zktest/example_test.go")
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(page(t, "testing.md"), -1)
	require.Greater(t, len(blocks), 3)
	for _, b := range blocks {
		require.Contains(t, string(source), b[1])
	}
}

// TestFuzzTargetTable checks that docs/proof.md names each fuzz target of each package.
func TestFuzzTargetTable(t *testing.T) {
	named := map[string][]string{}
	for _, row := range fuzzRow.FindAllStringSubmatch(page(t, "proof.md"), -1) {
		named[row[1]] = slices.Sorted(slices.Values(strings.Split(row[2], ", ")))
	}
	require.Equal(t, fuzzTargets(t), named)
}

// fuzzTargets returns the sorted fuzz targets of each package that has any.
func fuzzTargets(t *testing.T) map[string][]string {
	targets := map[string][]string{}
	require.NoError(t, filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../../")
		for _, m := range fuzzNamed.FindAllStringSubmatch(string(source), -1) {
			targets[dir] = append(targets[dir], m[1])
		}
		return err
	}))
	for _, names := range targets {
		slices.Sort(names)
	}
	return targets
}
