// Package release makes a release of the checkout and looks at what it consists of.
package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/modules"
)

// TestReleaseIsMadeTwiceAlike makes a release in two directories: both are the same bytes, and have
// what docs/releasing.md lists.
func TestReleaseIsMadeTwiceAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles goreleaser, which takes minutes of a processor: run make test")
	}
	first, second := newCheckout(t), newCheckout(t)
	buildRelease(t, first)
	buildRelease(t, second)
	sums := readFile(t, first, "bin/dist/SHA256SUMS")
	require.Equal(t, sums, readFile(t, second, "bin/dist/SHA256SUMS"))

	var want, got []string
	version := strings.TrimPrefix(modules.Version, "v")
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
		name := "lockstep_" + version + "_" + platform
		want = append(want, name+".cyclonedx.json")
		switch {
		case strings.HasPrefix(platform, "windows"):
			want = append(want, name+".zip")
		case strings.HasPrefix(platform, "linux"):
			want = append(want, name+".tar.gz", name+".deb", name+".rpm")
		default:
			want = append(want, name+".tar.gz")
		}
	}
	for line := range strings.Lines(sums) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, line)
		got = append(got, name)
		computed := sha256.Sum256([]byte(readFile(t, first, "bin/dist/"+name)))
		require.Equal(t, sum, hex.EncodeToString(computed[:]), name)
	}
	require.ElementsMatch(t, want, got)
	require.Contains(t, readFile(t, first, "bin/dist/notes.md"), "Notes of the test.")

	here := runtime.GOOS + "_" + runtime.GOARCH
	archive := unpack(t, "tar", "-xzf", first+"/bin/dist/lockstep_"+version+"_"+here+".tar.gz", "-C")
	require.Contains(t, run(t, archive, "./lockstep", "version"), "lockstep "+modules.Version+" ")
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "Containerfile", "man1/lockstep-lock.1.gz",
		"completions/lockstep.bash", "completions/_lockstep", "completions/lockstep.fish", "completions/lockstep.ps1"} {
		require.FileExists(t, filepath.Join(archive, file))
	}

	var list struct {
		Components []struct{ Name, Version string }
	}
	sbom := readFile(t, first, "bin/dist/lockstep_"+version+"_"+here+".cyclonedx.json")
	require.NoError(t, json.Unmarshal([]byte(sbom), &list))
	require.Contains(t, fmt.Sprint(list.Components), "github.com/go-zookeeper/zk v")

	t.Run("package for Debian", func(t *testing.T) {
		lookAtDebianPackage(t, first+"/bin/dist/lockstep_"+version+"_linux_"+runtime.GOARCH+".deb")
	})
}

// TestWhatAReleaseShipsExists looks for the files that goreleaser.yaml names, but for those that
// release/make-files writes.
func TestWhatAReleaseShipsExists(t *testing.T) {
	const root = "../../.."
	config := readFile(t, root, "release/goreleaser.yaml")
	shipped := regexp.MustCompile(`src: ([^,}\s]+)`).FindAllStringSubmatch(config, -1)
	require.Greater(t, len(shipped), 10)
	for _, found := range shipped {
		if !strings.HasPrefix(found[1], "bin/release/") {
			require.FileExists(t, filepath.Join(root, found[1]))
		}
	}
}

// lookAtDebianPackage installs nothing.
func lookAtDebianPackage(t *testing.T, deb string) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("dpkg-deb is missing")
		}
		t.Skip("dpkg-deb is not installed")
	}
	files := run(t, ".", "dpkg-deb", "--contents", deb)
	require.Regexp(t, `-rw-r----- root/root +\d+ .* \./etc/default/lockstep\n`, files, "it may hold secrets")
	require.Regexp(t, `-rwxr-xr-x root/root +\d+ .* \./usr/bin/lockstep\n`, files)
	require.NotRegexp(t, `(?m)^.....w|^........w`, files, "others may write it")

	dir := unpack(t, "dpkg-deb", "-x", deb)
	for _, file := range []string{"usr/share/man/man1/lockstep.1.gz", "usr/share/doc/lockstep/copyright",
		"usr/share/bash-completion/completions/lockstep", "usr/share/zsh/vendor-completions/_lockstep",
		"usr/share/fish/vendor_completions.d/lockstep.fish"} {
		require.FileExists(t, filepath.Join(dir, file))
	}
	unit := readFile(t, dir, "usr/lib/systemd/system/lockstep-monitor.service")
	require.Contains(t, unit, "ExecStart=/usr/bin/lockstep monitor")
	require.Contains(t, run(t, dir, "usr/bin/lockstep", "monitor", "--help"), "lockstep monitor [ROOT]")
}

// TestReleaseRefuses what would become a release that nobody can build again, or, without -short,
// that breaks users.
func TestReleaseRefuses(t *testing.T) {
	checkout := newCheckout(t)
	refuse := func(want string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "release/build")
		cmd.Dir = checkout
		out, err := cmd.CombinedOutput()
		require.Error(t, err, string(out))
		require.Contains(t, string(out), want)
		require.NoDirExists(t, filepath.Join(checkout, "bin/dist"))
	}

	writeFile(t, checkout, "ids/released.go", "package ids\n\nfunc Released() {}\n")
	refuse("changes that are not committed")
	commit(t, checkout, "Add a file")
	refuse("the commit has no tag vX.Y.Z")
	run(t, checkout, "git", "tag", "v1.1.0")
	refuse(`CHANGELOG.md has no section "## 1.1.0"`)
	writeFile(t, checkout, "CHANGELOG.md", "# Changelog\n\n## 1.1.1 (a day)\n\nNotes.\n")
	commit(t, checkout, "Write the notes")
	run(t, checkout, "git", "tag", "v1.1.1")
	refuse("the commit has no tag " + modules.Dirs[1] + "/v1.1.1")

	if testing.Short() {
		return // the comparison compiles both commits
	}
	require.NoError(t, os.Remove(filepath.Join(checkout, "ids/released.go")))
	commit(t, checkout, "Remove a function")
	cmd := exec.CommandContext(t.Context(), "release/api-changes")
	cmd.Dir = checkout
	out, err := cmd.CombinedOutput()
	require.Error(t, err, string(out))
	require.Contains(t, string(out), "Released: removed")
	require.Contains(t, string(out), "break programs that use v1.1.1")
}

// newCheckout copies the checkout to a repository of its own, whose commit and tags are the same in
// each copy.
func newCheckout(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	require.NoError(t, modules.CopyCheckout("../../..", dir))
	changes := readFile(t, dir, "CHANGELOG.md")
	notes := "## " + strings.TrimPrefix(modules.Version, "v") + "\n\nNotes of the test.\n\n## "
	require.Contains(t, changes, "\n## ")
	writeFile(t, dir, "CHANGELOG.md", strings.Replace(changes, "\n## ", "\n"+notes, 1))
	run(t, dir, "git", "init", "-q", "-b", "main")
	run(t, dir, "git", "remote", "add", "origin", "https://"+modules.Path)
	commit(t, dir, "Release "+modules.Version)
	for _, module := range modules.Dirs {
		run(t, dir, "git", "tag", strings.TrimPrefix(module+"/"+modules.Version, "./"))
	}
	return dir
}

func commit(t *testing.T, dir, subject string) {
	t.Helper()
	run(t, dir, "git", "add", "-A")
	run(t, dir, "git", "-c", "user.name=Test", "-c", "user.email=test@lockstep.invalid", "commit", "-q", "-m", subject)
}

// buildRelease tries three times, because the tools may have to be downloaded.
func buildRelease(t *testing.T, checkout string) {
	t.Helper()
	for try := 1; ; try++ {
		cmd := exec.CommandContext(t.Context(), "nice", "release/build")
		cmd.Dir, cmd.Env = checkout, environ()
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		require.Less(t, try, 3, string(out))
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, environ()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return string(out)
}

// environ is the same whatever the repository around this one, and dates commits alike.
func environ() []string {
	const day = "2026-01-01T00:00:00Z"
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_DATE="+day, "GIT_COMMITTER_DATE="+day)
}

func unpack(t *testing.T, command ...string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, command[0], append(command[1:], dir)...)
	return dir
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}
