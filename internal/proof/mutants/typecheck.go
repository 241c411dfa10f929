package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// TypeChecker checks the types of changed packages, without compiling them. It is not safe for
// concurrent use.
type TypeChecker struct {
	root     string
	packages map[string]listedPackage // by absolute directory
	importer types.Importer
	files    *token.FileSet
	parsed   map[parsedFile]*ast.File // unchanged files
}

// parsedFile is a file by its absolute path, with or without the bodies of its functions.
type parsedFile struct {
	path    string
	outline bool
}

// listedPackage is what "go list" says of a package.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string // the file of its compiled types
	Module     *struct{ GoVersion string }
}

// NewTypeChecker returns a checker for these changes. It compiles what the changed packages import,
// unless the go command's cache has it.
func NewTypeChecker(root string, changes []Change) (*TypeChecker, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	directories := map[string]bool{}
	for _, change := range changes {
		directories["./"+path.Dir(change.File)] = true
	}
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export,Module"},
		slices.Sorted(maps.Keys(directories))...)
	command := exec.Command("go", args...)
	command.Dir = absolute
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaints.Bytes())
	}
	c := &TypeChecker{root: absolute, packages: map[string]listedPackage{}, files: token.NewFileSet(),
		parsed: map[parsedFile]*ast.File{}}
	exports := map[string]string{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		c.packages[p.Dir] = p
	}
	c.importer = importer.ForCompiler(c.files, "gc",
		func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	return c, nil
}

// Check returns the first error that a compiler would report in the changed package. A change
// inside functions cannot break other files, so it checks these without their functions' bodies
// then.
func (c *TypeChecker) Check(change Change) error {
	changed := filepath.Join(c.root, change.File)
	directory := filepath.Dir(changed)
	p, listed := c.packages[directory]
	if !listed {
		return fmt.Errorf("%s has no change that NewTypeChecker was told of", directory)
	}
	source, err := change.Apply(c.root)
	if err != nil {
		return err
	}
	file, err := c.parse(changed, source)
	if err != nil {
		return err
	}
	files := []*ast.File{file}
	outlines, err := c.declaresTheSame(changed, source)
	if err != nil {
		return err
	}
	for _, name := range p.GoFiles {
		full := filepath.Join(directory, name)
		if full == changed {
			continue
		}
		file, err := c.unchanged(full, outlines)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	var first error
	config := types.Config{Importer: c.importer, Sizes: types.SizesFor("gc", "amd64"), Error: func(err error) {
		var at types.Error
		if errors.As(err, &at) && outlines && c.files.Position(at.Pos).Filename != changed {
			return // an import that only the bodies use
		}
		if first == nil {
			first = err
		}
	}}
	if p.Module != nil {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	_, _ = config.Check(p.ImportPath, c.files, files, nil)
	return first
}

func (c *TypeChecker) parse(full string, source any) (*ast.File, error) {
	return parser.ParseFile(c.files, full, source, parser.SkipObjectResolution)
}

// unchanged parses a file with or without the bodies of its functions, or returns what it has
// parsed before.
func (c *TypeChecker) unchanged(full string, outline bool) (*ast.File, error) {
	key := parsedFile{full, outline}
	if c.parsed[key] == nil {
		file, err := c.parse(full, nil)
		if err != nil {
			return nil, err
		}
		if outline {
			removeBodies(file)
		}
		c.parsed[key] = file
	}
	return c.parsed[key], nil
}

// declaresTheSame reports whether a changed file differs from the file in its imports and in the
// bodies of its functions only.
func (c *TypeChecker) declaresTheSame(full string, source []byte) (bool, error) {
	was, err := c.unchanged(full, true)
	if err != nil {
		return false, err
	}
	is, err := c.parse(full, source)
	if err != nil {
		return false, err
	}
	removeBodies(is)
	before, err := c.printDeclarations(was)
	if err != nil {
		return false, err
	}
	after, err := c.printDeclarations(is)
	return bytes.Equal(before, after), err
}

// printDeclarations prints a file's declarations without imports. Each is printed by itself, so
// that lines between them make no difference.
func (c *TypeChecker) printDeclarations(file *ast.File) ([]byte, error) {
	var b bytes.Buffer
	for _, d := range file.Decls {
		if g, is := d.(*ast.GenDecl); is && g.Tok == token.IMPORT {
			continue
		}
		if err := format.Node(&b, c.files, d); err != nil {
			return nil, err
		}
		b.WriteString("\n")
	}
	return b.Bytes(), nil
}

// removeBodies replaces the bodies of a file's functions by one that fits each of them.
func removeBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			f.Body = &ast.BlockStmt{Lbrace: f.Body.Lbrace, Rbrace: f.Body.Lbrace, List: []ast.Stmt{
				&ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("panic"),
					Args: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: "0"}}}},
			}}
		}
	}
}
