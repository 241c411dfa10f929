package architecture

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxCycle is how many files of a package may depend on each other in one cycle. A file outside of
// cycles can be understood by itself. The bounds are the present sizes; lower them when a cycle
// becomes smaller. Packages without an entry are not checked.
var maxCycle = map[string]int{
	"barrier": 1, "cmd/lockstep": 2, "framework": 3, "queue": 3, "scheduler": 2,
	"config": 1, "election": 1, "ids": 1, "locks": 1, "members": 1, "internal/link": 1, "internal/waitline": 1,
	"workflow": 1, "monitor": 1,
	"internal/cli": 1, "internal/cli/barrier": 1, "internal/cli/config": 1, "internal/cli/cron": 2,
	"internal/cli/doctor": 3,
	"internal/cli/elect":  1, "internal/cli/hold": 1, "internal/cli/lock": 1, "internal/cli/queue": 1,
	"internal/cli/top": 1, "internal/cli/workflow": 1,
	"internal/procguard": 4, "internal/watchdog": 2, "internal/wire": 3, "internal/zkserver": 3, "zktest": 2,
}

// mayHide are the members that may hide a member of an embedded type. Do not add any: a reader of
// x.run cannot see which run is meant.
var mayHide []string

// packageInside is one package, type-checked without its imports.
type packageInside struct {
	dir   string
	files []string
	uses  map[string]map[string]bool // file to the files that declare what it uses
	hides []string                   // "Type.member", members that hide one of an embedded type
}

// Inside returns the packages whose cycles of files are too large, and the members that hide
// others. It also returns bounds and exceptions that are no longer needed.
func Inside(module fs.FS, files []File) (wrong []string, err error) {
	var dirs []string
	for _, f := range files {
		if _, bounded := maxCycle[f.Dir()]; bounded && !f.IsTest() && !slices.Contains(dirs, f.Dir()) {
			dirs = append(dirs, f.Dir())
		}
	}
	var hidden []string
	for _, dir := range dirs {
		p, err := parsePackage(module, dir)
		if err != nil {
			return nil, err
		}
		if cycle := p.largestCycle(); len(cycle) > maxCycle[dir] {
			wrong = append(wrong, fmt.Sprintf("%s: %d files are in one cycle of uses, at most %d may be: %s",
				dir, len(cycle), maxCycle[dir], strings.Join(cycle, " ")))
		}
		hidden = append(hidden, p.hides...)
	}
	for _, h := range hidden {
		if !slices.Contains(mayHide, h) {
			wrong = append(wrong, h+" hides a member of an embedded type")
		}
	}
	for _, h := range mayHide {
		if !slices.Contains(hidden, h) {
			wrong = append(wrong, h+" hides nothing any more: remove it from mayHide")
		}
	}
	return wrong, nil
}

// parsePackage reads a package, without tests.
func parsePackage(module fs.FS, dir string) (*packageInside, error) {
	parsed, set, err := parseFiles(module, dir)
	if err != nil {
		return nil, err
	}
	p := &packageInside{dir: dir, uses: map[string]map[string]bool{}}
	for _, f := range parsed {
		p.files = append(p.files, set.Position(f.Package).Filename)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}, DisableUnusedImportCheck: true}
	checked, _ := config.Check(dir, set, parsed, info) // it cannot know what is imported
	for ident, object := range info.Uses {
		if object.Pkg() != checked || !object.Pos().IsValid() {
			continue
		}
		from, to := set.Position(ident.Pos()).Filename, set.Position(object.Pos()).Filename
		if from == to || object.Parent() != nil && object.Parent() != checked.Scope() {
			continue
		}
		if p.uses[from] == nil {
			p.uses[from] = map[string]bool{}
		}
		p.uses[from][to] = true
	}
	p.hides = hiding(checked)
	return p, nil
}

// noImports leaves all imported packages unknown.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }

// hiding returns the fields and methods of a package's structs that hide a member of an embedded
// type of the package.
func hiding(p *types.Package) (hides []string) {
	for _, name := range p.Scope().Names() {
		declared, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		named, ok := declared.Type().(*types.Named)
		if !ok {
			continue
		}
		fields, ok := named.Underlying().(*types.Struct)
		if !ok {
			continue
		}
		own := map[string]bool{}
		for i := range named.NumMethods() {
			own[named.Method(i).Name()] = true
		}
		embedded := map[string]bool{}
		for i := range fields.NumFields() {
			if field := fields.Field(i); field.Embedded() {
				maps.Copy(embedded, members(field.Type()))
			} else {
				own[field.Name()] = true
			}
		}
		for _, member := range slices.Sorted(maps.Keys(own)) {
			if embedded[member] {
				hides = append(hides, fmt.Sprintf("%s: %s.%s", p.Path(), name, member))
			}
		}
	}
	return hides
}

// members returns the fields and methods of a type, and those of the types that it embeds.
func members(t types.Type) map[string]bool {
	out := map[string]bool{}
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		for i := range named.NumMethods() {
			out[named.Method(i).Name()] = true
		}
	}
	switch under := t.Underlying().(type) {
	case *types.Struct:
		for i := range under.NumFields() {
			out[under.Field(i).Name()] = true
			if under.Field(i).Embedded() {
				maps.Copy(out, members(under.Field(i).Type()))
			}
		}
	case *types.Interface:
		for i := range under.NumMethods() {
			out[under.Method(i).Name()] = true
		}
	}
	return out
}

// largestCycle returns the files of the largest strongly connected component: each file depends on
// each other, directly or through others; see Tarjan, Depth-first search and linear graph
// algorithms, 1972.
func (p *packageInside) largestCycle() (largest []string) {
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(f string) {
		index[f], low[f] = len(index)+1, len(index)+1
		stack, onStack[f] = append(stack, f), true
		for _, to := range slices.Sorted(maps.Keys(p.uses[f])) {
			switch {
			case index[to] == 0:
				visit(to)
				low[f] = min(low[f], low[to])
			case onStack[to]:
				low[f] = min(low[f], index[to])
			}
		}
		if low[f] != index[f] {
			return
		}
		at := slices.Index(stack, f)
		cycle := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, member := range cycle {
			onStack[member] = false
		}
		if len(cycle) > len(largest) {
			largest = cycle
		}
	}
	for _, f := range p.files {
		if index[f] == 0 {
			visit(f)
		}
	}
	slices.Sort(largest)
	return largest
}

// parseFiles parses the files of a package, without tests.
func parseFiles(module fs.FS, dir string) (parsed []*ast.File, set *token.FileSet, err error) {
	set = token.NewFileSet()
	names, err := fs.Glob(module, path.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return nil, nil, err
		}
		f, err := parser.ParseFile(set, path.Base(name), source, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, fmt.Errorf("architecture: %w", err)
		}
		parsed = append(parsed, f)
	}
	return parsed, set, nil
}
