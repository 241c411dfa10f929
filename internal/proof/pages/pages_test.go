// Package pages checks the pages that users read: their code, their commands and the exported names
// that they mention.
//
// A block of Go that begins with "package" is compiled as it is, and its tests run. Any other one
// is compiled, too: as declarations, or else as the body of a function that has ctx and client and
// returns an error. A comment <!-- declare: … --> right before such a block holds declarations that
// it needs. The comment <!-- sketch --> leaves a block out. The blocks of docs/testing.md are tests
// of package zktest.
package pages

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	imported = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.[A-Z]`)
	own      = []string{"barrier", "codec", "config", "election", "framework", "ids", "locks", "members", "monitor",
		"queue", "redislock", "registry", "scheduler", "ui", "workflow", "zktest"}
	others = map[string]string{"base64": "encoding/base64", "context": "context", "errors": "errors", "fmt": "fmt",
		"grpc": "google.golang.org/grpc", "http": "net/http", "log": "log", "net": "net", "os": "os",
		"redis": "github.com/redis/go-redis/v9", "registrygrpc": module + "/registry/registrygrpc",
		"sha1": "crypto/sha1", "slog": "log/slog", "sql": "database/sql", "synctest": "testing/synctest",
		"testing": "testing", "time": "time"}
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
	examples := ""
	for _, file := range []string{"example_test.go", "example_shop_test.go"} {
		text, err := os.ReadFile(filepath.Join(root, "zktest", file))
		require.NoError(t, err)
		examples += string(text)
	}
	var packages, tested []string
	for page, text := range pages(t) {
		for i, found := range block.FindAllStringSubmatch(text, -1) {
			if found[1] == "sketch" || found[2] != "go" {
				continue
			}
			if page == "docs/testing.md" {
				require.Contains(t, examples, found[3])
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
	body := strings.TrimPrefix(comment, "declare: ") + "\n\n"
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package block\n"+text, 0); err == nil {
		body += text
	} else {
		body += fmt.Sprintf("func _(ctx context.Context, client *framework.Client) (err error) {\n{\n%s\n%s}\nreturn err\n}\n",
			text, uses(text))
	}
	imports := map[string]bool{}
	for _, name := range imported.FindAllStringSubmatch(body, -1) {
		if slices.Contains(own, name[1]) {
			imports[module+"/"+name[1]] = true
		}
		if path, isKnown := others[name[1]]; isKnown {
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

// uses returns statements that use what a block of statements declares, so that a page need not.
func uses(text string) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", "package block\nfunc _() {\n"+text+"\n}", 0)
	if err != nil {
		return "" // the compiler says what is wrong
	}
	var statements strings.Builder
	for _, statement := range parsed.Decls[0].(*ast.FuncDecl).Body.List {
		if assign, isAssign := statement.(*ast.AssignStmt); isAssign && assign.Tok == token.DEFINE {
			for _, name := range assign.Lhs {
				if name := name.(*ast.Ident).Name; name != "_" {
					fmt.Fprintf(&statements, "_ = %s\n", name)
				}
			}
		}
	}
	return statements.String()
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

// TestRecordings checks the pictures that "make pictures" draws: they are small, follow the
// reader's scheme, load nothing, and are shown with a text that says what they show.
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
