//go:build unix

// Package site builds the site and looks at its pages.
package site

import (
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/internal/testkit/browser"
)

const root = "../../.."

var (
	references = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
	ids        = regexp.MustCompile(`\sid="([^"]+)"`)
	// question finds the link and the words of a row of docs/questions.md.
	question = regexp.MustCompile(`<td><a href="([^"]+)">[^<]*</a></td>\s*<td><code>([^<]+)</code></td>`)
	external = regexp.MustCompile(`<(?:script|img|link|iframe|source)\s[^>]*(?:src|href)="(?:[a-z]+:)?//`)
)

// TestLinksOfTheSite checks that each link within the site has a page and an anchor, and that no
// page loads anything from elsewhere.
func TestLinksOfTheSite(t *testing.T) {
	dir := build(t)
	pages := map[string]map[string]bool{} // the ids of each page
	texts := map[string]string{}
	for _, file := range files(t, dir) {
		if path.Ext(file) == ".html" {
			text, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			texts[file], pages[file] = string(text), map[string]bool{"": true}
			for _, id := range ids.FindAllStringSubmatch(string(text), -1) {
				pages[file][html.UnescapeString(id[1])] = true
			}
		}
	}
	require.Greater(t, len(pages), 100)
	links := 0
	for file, text := range texts {
		require.NotRegexp(t, external, text, file)
		for _, match := range references.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(html.UnescapeString(match[1]))
			require.NoError(t, err, "%s links to %s", file, match[1])
			if to.IsAbs() {
				continue
			}
			links++
			target := file
			if to.Path != "" {
				target = path.Join(path.Dir(file), to.Path)
			}
			if anchors, isPage := pages[target]; isPage {
				require.True(t, anchors[to.Fragment], "%s links to %s, which has no such anchor", file, match[1])
				continue
			}
			require.FileExists(t, filepath.Join(dir, target), "%s links to %s", file, match[1])
		}
	}
	require.Greater(t, links, 1000)
}

// TestEachPageIsInTheMenu except the decisions, which have a list of their own.
func TestEachPageIsInTheMenu(t *testing.T) {
	text, err := os.ReadFile(root + "/site/data/menu.yaml")
	require.NoError(t, err)
	var menu []struct{ Pages []any }
	require.NoError(t, yaml.Unmarshal(text, &menu))
	var listed []string
	for _, section := range menu {
		for _, page := range section.Pages {
			if named, isNamed := page.(map[string]any); isNamed {
				for file := range named {
					listed = append(listed, file)
				}
				continue
			}
			listed = append(listed, page.(string))
		}
	}
	want := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/adr/README.md"}
	for _, file := range files(t, root+"/docs") {
		if path.Ext(file) == ".md" && !strings.HasPrefix(file, "adr/") {
			want = append(want, "docs/"+file)
		}
	}
	require.ElementsMatch(t, want, listed, "site/data/menu.yaml")
}

// TestPagesInABrowser opens pages of each kind from a folder: they are accessible, in both schemes
// and in narrow and wide windows.
func TestPagesInABrowser(t *testing.T) {
	browser.Require(t)
	dir := build(t)
	for _, page := range []string{"index.html", "docs/guarantees.html", "docs/timeouts.html", "docs/adr/README.html",
		"docs/operate/run-book.html", "docs/reference/commands.html"} {
		for i, size := range []browser.Size{browser.Narrow, browser.Wide} {
			dark := i == 0
			t.Run(fmt.Sprintf("%s %d dark %t", page, size.Width, dark), func(t *testing.T) {
				require.Empty(t, browser.Axe(t, root, filepath.Join(dir, page), size, dark))
			})
		}
	}
}

// TestNothingIsWiderThanAPhone opens all pages in frames of 360 pixels: nothing but tables and code
// is wider, and those scroll by themselves.
func TestNothingIsWiderThanAPhone(t *testing.T) {
	browser.Require(t)
	dir := build(t)
	const measure = `<script>addEventListener("load", () => {
	const wide = [...document.querySelectorAll("body *")].filter((e) =>
		e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre"));
	if (document.documentElement.scrollWidth > innerWidth + 1) wide.unshift(document.documentElement);
	parent.postMessage(wide.map((e) => location.pathname + ": " + e.outerHTML.slice(0, 100)), "*");
})</script></body>`
	frames := strings.Builder{}
	count := 0
	for _, page := range files(t, dir) {
		if path.Ext(page) != ".html" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, page))
		require.NoError(t, err)
		measured := strings.Replace(string(text), "</body>", measure, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, page), []byte(measured), 0o644))
		fmt.Fprintf(&frames, "<iframe width=360 height=700 style=border:0 src=%q></iframe>\n", page)
		count++
	}
	all := filepath.Join(dir, "all.html")
	require.NoError(t, os.WriteFile(all, []byte(`<!doctype html><p id="pages"></p><pre id="wide"></pre><script>
let pages = 0;
addEventListener("message", (e) => {
	document.getElementById("pages").textContent = ++pages;
	document.getElementById("wide").textContent += e.data.join("\n");
})</script>`+frames.String()), 0o644))
	dump := browser.Dump(t, "file://"+all, browser.Wide, false)
	require.Contains(t, dump, fmt.Sprintf(`<p id="pages">%d</p>`, count))
	require.Contains(t, dump, `<pre id="wide"></pre>`)
}

// TestSearch types the words of docs/questions.md into a page that was opened from a folder: the
// answer is among the first three sections that the search finds.
func TestSearch(t *testing.T) {
	browser.Require(t)
	dir := build(t)
	page := filepath.Join(dir, "docs/questions.html")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	rows := question.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, 20)
	var typed []string
	for _, row := range rows {
		typed = append(typed, html.UnescapeString(row[2]))
	}
	words, err := json.Marshal(typed)
	require.NoError(t, err)
	script := fmt.Sprintf(`<script>addEventListener("load", () => { const q = document.getElementById("query"); q.focus();
	document.getElementById("index").addEventListener("load", () => { for (const words of %s) {
	q.value = words; q.dispatchEvent(new Event("input"));
	const list = document.createElement("ol"); list.className = "answers";
	list.append(...[...document.querySelectorAll("#found a")].slice(0, 3).map((a) => a.cloneNode()));
	document.body.append(list); } }); })</script></body>`, words)
	require.NoError(t, os.WriteFile(page, []byte(strings.Replace(string(text), "</body>", script, 1)), 0o644))
	dump := browser.Dump(t, "file://"+page, browser.Wide, false)
	found := regexp.MustCompile(`(?s)<ol class="answers">(.*?)</ol>`).FindAllStringSubmatch(dump, -1)
	require.Len(t, found, len(rows))
	for i, row := range rows {
		want := path.Join("docs", html.UnescapeString(row[1]))
		require.Contains(t, found[i][1], "/"+want+`"`, "the search for %q", typed[i])
	}
	require.Regexp(t, `id="count"[^>]*>\d+ found<`, dump)
}

// build writes the site into a directory of the test.
func build(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("hugo"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("hugo is missing: make test-tools installs it")
		}
		t.Skip("hugo is not installed: make test-tools")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "hugo", "--noBuildLock", "--source", root+"/site", "--destination",
		dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// files returns the files below a directory, with slashes.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, name)
		}
		return err
	}))
	slices.Sort(all)
	return all
}
