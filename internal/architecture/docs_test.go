package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	named    = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// TestTheTablesNameTestsThatExist: a promise stands beside the tests that would fail without it, in a row's last cell.
func TestTheTablesNameTestsThatExist(t *testing.T) {
	exist := tests(t)
	for _, page := range []string{"guarantees.md", "curator.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		require.NoError(t, err)
		count := 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if len(cells) < 2 {
				continue
			}
			for _, name := range named.FindAllString(cells[len(cells)-1], -1) {
				require.True(t, exist[name], "%s: %s", page, name)
				count++
			}
		}
		require.Greater(t, count, 30, page)
	}
}

// tests are the names of all tests of the module.
func tests(t *testing.T) map[string]bool {
	exist := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			exist[string(m[1])] = true
		}
		return err
	})
	require.NoError(t, err)
	return exist
}

// TestThePictureNamesEachRoom: what is below internal, users cannot look up elsewhere.
func TestThePictureNamesEachRoom(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	rooms, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, room := range rooms {
		require.Contains(t, string(page), "\n  "+room.Name()+"/", "docs/architecture.md")
	}
}

// TestTheIndexOfDecisionsIsWhole: a decision that is not listed is not found.
func TestTheIndexOfDecisionsIsWhole(t *testing.T) {
	index, err := os.ReadFile("../../docs/adr/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../docs/adr/0*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 30)
	for _, page := range pages {
		require.Contains(t, string(index), "("+filepath.Base(page)+")")
	}
}
