package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Module is the path of the module.
const Module = "github.com/lockstep-go/lockstep"

// File is what the rules need to know about a Go file.
type File struct {
	Path      string // from the module's root, with slashes
	Imports   []string
	Lines     int
	Wide      []int // the lines that are too wide and could be broken
	Functions []Function
}

// Function is a declared function or method.
type Function struct {
	Name  string
	Lines int // from its signature to its closing brace
}

// Dir returns the directory of the file's package, from the module's root; "." is the root itself.
func (f File) Dir() string { return path.Dir(f.Path) }

// Base returns the file's name.
func (f File) Base() string { return path.Base(f.Path) }

// IsTest reports whether only "go test" compiles the file.
func (f File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Load parses all Go files of a module, without those that the go tool ignores: below testdata,
// vendor and directories whose names begin with a dot or an underscore. It leaves out what "make"
// writes into bin, and the module of programs with other libraries (docs/adr/0126).
func Load(module fs.FS) ([]File, error) {
	var files []File
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (ignored(d.Name()) || name == "bin" || name == "docs/programs"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := load(module, name)
		files = append(files, f)
		return err
	})
	return files, err
}

func ignored(dir string) bool {
	return dir == "testdata" || dir == "vendor" || dir != "." && strings.HasPrefix(dir, ".") ||
		strings.HasPrefix(dir, "_")
}

func load(module fs.FS, name string) (File, error) {
	source, err := fs.ReadFile(module, name)
	if err != nil {
		return File{}, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("architecture: %w", err)
	}
	f := File{Path: name, Lines: bytes.Count(source, []byte("\n")), Wide: wideLines(source)}
	for _, i := range parsed.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return File{}, fmt.Errorf("architecture: import in %s: %w", name, err)
		}
		f.Imports = append(f.Imports, imported)
	}
	for _, d := range parsed.Decls {
		if function, ok := d.(*ast.FuncDecl); ok {
			lines := set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1
			f.Functions = append(f.Functions, Function{Name: function.Name.Name, Lines: lines})
		}
	}
	return f, nil
}

// longString is the length of a string that may make its line too wide: to split it would make it
// hard to find.
const longString = 60

// wideLines returns the numbers of the lines that are wider than MostColumns, or as comments than
// MostCommentColumns, a tab taken as four columns. It leaves out lines of raw strings, lines that a
// long string makes too wide, preformatted comments, the output of examples, and directives.
func wideLines(source []byte) (wide []int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	fixed := map[int]bool{}
	output := 0 // the latest line of an example's output
	for at, kind, text := s.Scan(); kind != token.EOF; at, kind, text = s.Scan() {
		line := file.Line(at)
		switch {
		case kind == token.STRING && text[0] == '`':
			for i := range strings.Count(text, "\n") + 1 {
				fixed[line+i] = true
			}
		case kind == token.STRING:
			until := set.Position(at).Column + len(text)
			fixed[line] = fixed[line] || until >= MostColumns-longString && len(text) >= longString
		case kind == token.COMMENT && strings.HasSuffix(text, "utput:"), kind == token.COMMENT && line == output+1:
			output, fixed[line] = line, true
		case kind == token.COMMENT && (strings.HasPrefix(text, "//\t") || strings.HasPrefix(text, "//nolint")):
			fixed[line] = true
		}
	}
	number := 0
	for line := range strings.Lines(string(source)) {
		number++
		most := MostColumns
		if strings.HasPrefix(strings.TrimSpace(line), "// ") {
			most = MostCommentColumns
		}
		columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) + 3*strings.Count(line, "\t")
		if columns > most && !fixed[number] {
			wide = append(wide, number)
		}
	}
	return wide
}
