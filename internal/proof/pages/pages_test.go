// Package pages checks the pages that users read: their code, their commands and the exported names
// that they mention.
//
// A block of Go that begins with "package" is compiled as it is, and its tests run. In README.md,
// docs/start and docs/guides any other one is compiled, too: as the body of a function that has ctx
// and client and returns an error. A comment <!-- declare: … --> right before such a block holds
// declarations that it needs. The comment <!-- sketch --> leaves a block out.
package pages

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	module = "github.com/lockstep-go/lockstep"
)

var (
	block = regexp.MustCompile("(?ms)^(?:<!-- (sketch|declare: .*?) -->\n)?```(go|sh)\n(.*?)^```$")
	// imported finds uses of packages, of the module and of the standard library.
	imported = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	own      = []string{"barrier", "codec", "config", "election", "framework", "ids", "locks", "members", "monitor",
		"queue", "registry", "scheduler", "workflow", "zktest"}
	standard = map[string]string{"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "os": "os",
		"time": "time", "slog": "log/slog", "sql": "database/sql", "testing": "testing", "synctest": "testing/synctest"}
	command = regexp.MustCompile(`(?m)^\s*(?:[A-Z_]+=\S+ )*(lockstep .*)$`)
	prompt  = regexp.MustCompile(`(?m)^\s+\$ (lockstep .*)$`) // before the output that a page shows
	flag    = regexp.MustCompile(`^--?[a-z]`)
)

// pages returns the pages with their texts, without the decisions and the generated ones.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{".", "start", "guides", "operate"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", dir, "*.md"))
		require.NoError(t, err)
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))] = string(text)
	}
	return texts
}

// TestBlocksOfGoCompile builds all blocks at once, from files that exist only for this build, and
// runs the tests among them.
func TestBlocksOfGoCompile(t *testing.T) {
	dir, overlay := t.TempDir(), map[string]string{}
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	var packages, tested []string
	for page, text := range pages(t) {
		for i, found := range block.FindAllStringSubmatch(text, -1) {
			isGuide := page == "README.md" || strings.HasPrefix(page, "docs/start/") ||
				strings.HasPrefix(page, "docs/guides/")
			isWhole := strings.HasPrefix(found[3], "package ")
			if found[1] == "sketch" || found[2] != "go" || !isGuide && !isWhole {
				continue
			}
			name := fmt.Sprintf("%s_%d", strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(page), i)
			file := filepath.Join(dir, name+".go")
			require.NoError(t, os.WriteFile(file, []byte(program(found[1], found[3])), 0o600))
			if strings.Contains(found[3], "\nfunc Test") {
				overlay[filepath.Join(here, name, "block_test.go")] = file
				tested = append(tested, name)
			} else {
				overlay[filepath.Join(here, name, "block.go")] = file
				packages = append(packages, "./"+name)
			}
		}
	}
	require.NotEmpty(t, packages)
	require.NotEmpty(t, tested)
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, text, 0o600))
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlayFile}, packages...)...)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "block N of a page is in a file that is named after both:\n%s", out)
	for _, name := range tested {
		binary := filepath.Join(dir, name+".test")
		out, err = exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlayFile,
			"-o", binary, "./"+name).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = exec.CommandContext(t.Context(), binary, "-test.timeout", "1m").CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}

// program returns a block as a file that can be compiled.
func program(comment, text string) string {
	if strings.HasPrefix(text, "package ") {
		return text
	}
	declarations := strings.TrimPrefix(comment, "declare: ")
	body := fmt.Sprintf("%s\n\nfunc _(ctx context.Context, client *framework.Client) (err error) {\n%s\nreturn err\n}\n",
		declarations, text)
	imports := map[string]bool{}
	for _, name := range imported.FindAllStringSubmatch(body, -1) {
		for _, ours := range own {
			if name[1] == ours {
				imports[module+"/"+ours] = true
			}
		}
		if path, isStandard := standard[name[1]]; isStandard {
			imports[path] = true
		}
	}
	if strings.Contains(body, "lockstep.") {
		imports[module] = true
	}
	var source strings.Builder
	source.WriteString("package block\n\n")
	for path := range imports {
		fmt.Fprintf(&source, "import %q\n", path)
	}
	return source.String() + body
}

// TestCommandsExist looks up each command and flag, of blocks of shell and of lines after a prompt,
// in the reference, which is generated from the source.
func TestCommandsExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/commands.md"))
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+string(text), "\n## ")[1:] {
		title, rest, _ := strings.Cut(section, "\n")
		sections[strings.Trim(title, "`")] = rest
	}
	count := 0
	for page, text := range pages(t) {
		shell := prompt.FindAllStringSubmatch(text, -1)
		for _, found := range block.FindAllStringSubmatch(text, -1) {
			if found[2] == "sh" {
				shell = append(shell, command.FindAllStringSubmatch(found[3], -1)...)
			}
		}
		for _, line := range shell {
			own, _, _ := strings.Cut(line[1], " -- ")
			own, _, _ = strings.Cut(own, " #")
			words := strings.Fields(own)
			section, known := sections[strings.Join(words[:min(3, len(words))], " ")]
			if !known {
				section, known = sections[strings.Join(words[:2], " ")]
			}
			require.True(t, known, "%s: no such command: %s", page, line[1])
			for _, word := range words[2:] {
				name, _, _ := strings.Cut(word, "=")
				if flag.MatchString(name) {
					require.Regexp(t, regexp.QuoteMeta(name)+`\b`, section+sections["Flags of commands with a connection"],
						"%s: no such flag: %s", page, line[1])
				}
			}
			count++
		}
	}
	require.Greater(t, count, 50)
}

// TestRecordings checks the pictures that "make pictures" draws: they are small, follow the reader's
// scheme, load nothing, and are shown with a text that says what they show.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := ""
	for _, text := range pages(t) {
		all += text
	}
	for _, file := range files {
		picture, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Less(t, len(picture), 60_000, file)
		require.Contains(t, string(picture), "prefers-color-scheme:dark", file)
		require.Contains(t, string(picture), "<text", file)
		require.NotRegexp(t, `href|src=|url\(|@import|<script|<image|<foreignObject`, string(picture), file)
		require.Regexp(t, `<img src="[./a-z]*pictures/`+filepath.Base(file)+`" alt="[^"]+">`, all, file)
	}
}
