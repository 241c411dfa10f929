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

// TestTablesNameExistingTests checks that the tests exist that the last cell of each row names.
func TestTablesNameExistingTests(t *testing.T) {
	exist := testNames(t)
	for _, page := range []string{"guarantees.md", "curator.md"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", page))
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

// link matches a link to another file, up to its anchor.
var link = regexp.MustCompile(`\]\(([^)#\s:"]+)[)#]`)

// TestLinksLeadToFiles checks the links of the pages in the root directory and below docs.
func TestLinksLeadToFiles(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../../*.md", "../../../docs/*.md", "../../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])) // a file or a directory
			require.NoError(t, err, page)
			count++
		}
	}
	require.Greater(t, count, 100)
}

// TestEachPageIsListed in docs/README.md; the decisions have a list of their own.
func TestEachPageIsListed(t *testing.T) {
	list, err := os.ReadFile("../../../docs/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../docs/*/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, more...) {
		name := strings.TrimPrefix(filepath.ToSlash(page), "../../../docs/")
		if name != "README.md" && !strings.HasPrefix(name, "adr/") {
			require.Contains(t, string(list), "]("+name+")")
		}
	}
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	exist := map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
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

// TestArchitecturePageNamesEachInternalPackage checks that docs/architecture.md names each package
// below internal.
func TestArchitecturePageNamesEachInternalPackage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	for _, above := range []string{"../..", "..", "../../testkit"} {
		dirs, err := os.ReadDir(above)
		require.NoError(t, err)
		for _, dir := range dirs {
			require.Regexp(t, `(?m)^(  |internal/)`+dir.Name()+"/ ", string(page), "docs/architecture.md")
		}
	}
}

// TestMakeTestNamesWhatItInstalls checks that "make test" and CONTRIBUTING.md name each package
// that the scripts install.
func TestMakeTestNamesWhatItInstalls(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("../../..", file))
		require.NoError(t, err)
		return string(text)
	}
	require.Regexp(t, `(?m)^test: about-test zookeeper test-tools$`, read("Makefile"))
	require.Regexp(t,
		`(?m)^\t@echo "As root on Debian or Ubuntu, apt-get installs what is missing of: `+
			`ZooKeeper, Java, Apache Curator, kazoo, Redis, Hugo, Chromium, npm, Spin, gcc, Prometheus\.`, read("Makefile"))
	for _, script := range []string{"scripts/install-zookeeper", "scripts/install-test-tools"} {
		found := regexp.MustCompile(`(?:packages|fetched)\+=\(([^)]+)\)`).FindAllStringSubmatch(read(script), -1)
		require.NotEmpty(t, found, script)
		for _, packages := range found {
			for _, name := range strings.Fields(packages[1]) {
				require.Contains(t, read("CONTRIBUTING.md"), "`"+name+"`", script)
			}
		}
	}
}

// TestPagesNameModulesAndExamples checks that docs/fx.md names each fx module, and
// docs/start/examples.md each example program.
func TestPagesNameModulesAndExamples(t *testing.T) {
	for page, pattern := range map[string]string{"fx.md": "*/*fx", "start/examples.md": "examples/*/main.go"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", page))
		require.NoError(t, err)
		found, err := filepath.Glob(filepath.Join("../../..", pattern))
		require.NoError(t, err)
		require.Greater(t, len(found), 5)
		for _, path := range found {
			name := filepath.Base(strings.TrimSuffix(path, "/main.go"))
			require.Regexp(t, "`"+name+"[.`]", string(text), page)
		}
	}
}

// TestDecisionIndexIsComplete checks that the index lists every decision.
func TestDecisionIndexIsComplete(t *testing.T) {
	index, err := os.ReadFile("../../../docs/adr/README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("../../../docs/adr/0*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 30)
	for _, page := range pages {
		require.Contains(t, string(index), "("+filepath.Base(page)+")")
	}
}
