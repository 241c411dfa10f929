package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"strings"
)

// typedModule type-checks packages of the module, with the packages of the module that they import.
// Of other packages it knows the sequences of iter.
type typedModule struct {
	module  fs.FS
	checked map[string]*typedPackage // by directory
}

// typedPackage is a package without its tests.
type typedPackage struct {
	*types.Package
	files []*ast.File
	info  *types.Info
}

func newTypedModule(module fs.FS) *typedModule {
	return &typedModule{module, map[string]*typedPackage{}}
}

// check type-checks the package in a directory.
func (m *typedModule) check(dir string) (*typedPackage, error) {
	if p := m.checked[dir]; p != nil {
		return p, nil
	}
	files, set, err := parseFiles(m.module, dir)
	if err != nil {
		return nil, err
	}
	p := &typedPackage{files: files, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	config := types.Config{Importer: m, Error: func(error) {}, DisableUnusedImportCheck: true}
	p.Package, _ = config.Check(Module+"/"+dir, set, files, p.info) // it cannot know all that is imported
	m.checked[dir] = p
	return p, nil
}

// sequences is package iter as far as signatures need it.
const sequences = `package iter
type Seq[V any] func(yield func(V) bool)
type Seq2[K, V any] func(yield func(K, V) bool)`

// Import implements types.Importer.
func (m *typedModule) Import(path string) (*types.Package, error) {
	if path == "iter" {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "iter.go", sequences, 0)
		if err != nil {
			return nil, err
		}
		return new(types.Config).Check(path, set, []*ast.File{file}, nil)
	}
	dir, within := strings.CutPrefix(path, Module+"/")
	if !within {
		return noImports{}.Import(path)
	}
	p, err := m.check(dir)
	if err != nil {
		return nil, err
	}
	return p.Package, nil
}

// isPublic reports whether a type is exported by a public package of the module.
func isPublic(t *types.TypeName) bool {
	if t.Pkg() == nil || !t.Exported() {
		return false
	}
	dir, within := strings.CutPrefix(t.Pkg().Path(), Module+"/")
	_, public := budget[dir]
	return within && public
}

// exportedFunctions calls f for each exported function and method of exported types.
func (p *typedPackage) exportedFunctions(f func(name string, d *ast.FuncDecl)) {
	for _, file := range p.files {
		for _, d := range file.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || !d.Name.IsExported() {
				continue
			}
			name := d.Name.Name
			if d.Recv != nil {
				receiver := receiverName(d.Recv.List[0].Type)
				if !token.IsExported(receiver) {
					continue
				}
				name = receiver + "." + name
			}
			f(name, d)
		}
	}
}
