package pages

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	counted  = regexp.MustCompile(`\]\(([^)]+\.go)\) \| (\d+) \|`)
	versions = regexp.MustCompile("`(\\S+)` (v\\d+\\.\\d+\\.\\d+)")
)

// TestLinesOfProgramsAreCounted checks the numbers of lines in docs/programs.md.
func TestLinesOfProgramsAreCounted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "programs.md"))
	require.NoError(t, err)
	found := counted.FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, 19) // ten programs, and nine of other libraries
	for _, m := range found {
		file := filepath.Join(root, "docs", m[1])
		require.Equal(t, strconv.Itoa(linesOfCode(t, file)), m[2], m[1])
		if strings.HasPrefix(m[1], "../") {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NotContains(t, string(text), module+"/internal/", "%s: users cannot copy it", m[1])
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "docs", "programs", "go.mod"))
	require.NoError(t, err)
	named := versions.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		require.True(t, strings.Contains(string(mod), "\t"+m[1]+" "+m[2]+"\n"), "%s is not of %s", m[1], m[2])
	}
}

// TestExamplesImportNothingInternal: who reads an example on pkg.go.dev can copy it.
func TestExamplesImportNothingInternal(t *testing.T) {
	examples := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "internal" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "\nfunc Example") {
			return err
		}
		examples++
		if strings.Contains(string(text), module+"/internal/") {
			t.Errorf("%s imports an internal package, which users cannot", path)
		}
		return nil
	}))
	require.Greater(t, examples, 20)
}

// linesOfCode counts the lines of a program: without comments, empty lines, imports, and the
// example that calls it.
func linesOfCode(t *testing.T, name string) int {
	source, err := os.ReadFile(name)
	require.NoError(t, err)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, 0)
	require.NoError(t, err)
	left := map[int]bool{files.Position(parsed.Name.Pos()).Line: true}
	for _, d := range parsed.Decls {
		imports, isGroup := d.(*ast.GenDecl)
		f, isFunc := d.(*ast.FuncDecl)
		if isGroup && imports.Tok == token.IMPORT || isFunc && strings.HasPrefix(f.Name.Name, "Example") {
			for line := files.Position(d.Pos()).Line; line <= files.Position(d.End()).Line; line++ {
				left[line] = true
			}
		}
	}
	var s scanner.Scanner
	file := files.AddFile(name, -1, len(source))
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		for i := range 1 + strings.Count(strings.TrimSuffix(text, "\n"), "\n") { // raw strings have several lines
			if line := file.Line(pos) + i; !left[line] {
				lines[line] = true
			}
		}
	}
}

// TestLinesOfCode checks what counts.
func TestLinesOfCode(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.go")
	require.NoError(t, os.WriteFile(name, []byte(
		"// Package a.\npackage a\n\nimport \"fmt\"\n\n"+
			"// f prints.\nfunc f() {\n\t/* a\n\tb */\n\tfmt.Print(`c\nd`) // e\n}\n\n"+
			"func ExampleF() {\n\tf()\n}\n"), 0o600))
	require.Equal(t, 4, linesOfCode(t, name))
}
