package architecture

import (
	"io/fs"
	"maps"
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
	// packageOrTest finds a package's path between backticks, or a test.
	packageOrTest = regexp.MustCompile("`[a-z][a-z/]*`|\\bTest[A-Z]\\w+")
)

// TestPromisesNameTheirTests checks that each promise of docs/guarantees.md that names tests names
// existing ones, each after its package.
func TestPromisesNameTheirTests(t *testing.T) {
	exist := testsOfPackages(t)
	text, err := os.ReadFile("../../../docs/guarantees.md")
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(text)) {
		_, tests, hasTests := strings.Cut(line, "<details><summary>Tests</summary>")
		if !hasTests {
			continue
		}
		require.Regexp(t, "^- .*[.)] $", strings.TrimSuffix(line, "<details><summary>Tests</summary>"+tests))
		of := "" // the package that was named last
		for _, word := range packageOrTest.FindAllString(tests, -1) {
			switch {
			case word == "`lockstep`":
				of = "."
			case strings.HasPrefix(word, "`"):
				of = strings.Trim(word, "`")
				if exist[of] == nil {
					t.Errorf("%s has no tests, in: %s", word, line)
				}
			default:
				count++
				if !exist[of][word] {
					t.Errorf("%s has no %s, in: %s", of, word, line)
				}
			}
		}
	}
	require.Greater(t, count, 500)
}

// TestCuratorsTestsHaveCounterparts checks that the tests exist that the last cell of each row of
// docs/curator.md names.
func TestCuratorsTestsHaveCounterparts(t *testing.T) {
	exist := map[string]bool{}
	for _, tests := range testsOfPackages(t) {
		maps.Copy(exist, tests)
	}
	text, err := os.ReadFile("../../../docs/curator.md")
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2 {
			continue
		}
		for _, name := range named.FindAllString(cells[len(cells)-1], -1) {
			require.True(t, exist[name], name)
			count++
		}
	}
	require.Greater(t, count, 30)
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

// testsOfPackages returns the names of the tests in each directory of the module, from its root.
func testsOfPackages(t *testing.T) map[string]map[string]bool {
	exist := map[string]map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel("../../..", filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			if exist[dir] == nil {
				exist[dir] = map[string]bool{}
			}
			exist[dir][string(m[1])] = true
		}
		return nil
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
