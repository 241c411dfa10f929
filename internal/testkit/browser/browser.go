//go:build unix

// Package browser opens pages in a headless Chromium, for tests.
package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Size is that of a window, in CSS pixels.
type Size struct{ Width, Height int }

// Narrow and Wide are the windows in which pages are looked at. Chromium makes none narrower than
// 500 pixels.
var (
	Narrow = Size{500, 900}
	Wide   = Size{1440, 1000}
)

// Require skips the test if there is no Chromium, or fails it in CI.
func Require(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("chromium is missing: make test-tools installs it")
	}
	t.Skip("chromium is not installed: make test-tools")
}

// Open opens a page, in the background, until the end of the test or until it is closed. flags are
// further ones of Chromium.
func Open(t testing.TB, url string, size Size, dark bool, flags ...string) (closePage func()) {
	t.Helper()
	flags = append(append(arguments(t, size, dark), flags...), "--remote-debugging-port=0", url)
	cmd := exec.Command("chromium", flags...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	closePage = sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it has started others
		_ = cmd.Wait()
	})
	t.Cleanup(closePage)
	return closePage
}

// Dump loads a page, runs its scripts until they have nothing to do, and returns the document as
// HTML.
func Dump(t *testing.T, url string, size Size, dark bool) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "chromium",
		append(arguments(t, size, dark), "--virtual-time-budget=20000", "--dump-dom", url)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return string(out)
}

func arguments(t testing.TB, size Size, dark bool) []string {
	profile, err := os.MkdirTemp("", "browser-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir=" + profile, fmt.Sprintf("--window-size=%d,%d", size.Width, size.Height)}
	if dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	return args
}

// axeResult is the element that a page's examination leaves behind.
var axeResult = regexp.MustCompile(`(?s)<pre id="axe-result">(.*?)</pre>`)

// Violation is what axe-core finds in a page.
type Violation struct {
	ID    string   `json:"id"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"`
}

// Axe examines a page that is a file for accessibility with axe-core, which
// scripts/install-test-tools puts into bin. It writes a copy of the page beside it.
func Axe(t *testing.T, root, page string, size Size, dark bool) []Violation {
	t.Helper()
	axe, err := filepath.Abs(filepath.Join(root, "bin", "axe.min.js"))
	require.NoError(t, err)
	require.FileExists(t, axe, "make test-tools")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	script := `<script src="file://` + axe + `"></script><script>axe.run().then((r) => {
	const pre = document.createElement("pre");
	pre.id = "axe-result";
	const found = r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => n.html)}));
	pre.textContent = JSON.stringify(found);
	document.body.append(pre);
})</script></body>`
	require.Contains(t, string(text), "</body>")
	examined := strings.TrimSuffix(page, ".html") + ".axe.html"
	require.NoError(t, os.WriteFile(examined, []byte(strings.Replace(string(text), "</body>", script, 1)), 0o644))
	defer func() { _ = os.Remove(examined) }()
	result := axeResult.FindStringSubmatch(Dump(t, "file://"+examined, size, dark))
	require.NotNil(t, result, "axe-core has not run")
	var found []Violation
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(result[1])), &found))
	return found
}
