package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// budget bounds the exported names of each public package: functions, types, methods, constants and
// variables. Raise a bound with a reason in docs/adr/0120-a-budget-of-public-names.md.
var budget = map[string]int{
	".":                     20,
	"codec":                 4,
	"framework":             185,
	"locks":                 105,
	"election":              50,
	"scheduler":             114,
	"queue":                 124,
	"barrier":               47,
	"config":                42,
	"ids":                   38,
	"registry":              51,
	"members":               50,
	"redislock":             30,
	"workflow":              122,
	"monitor":               57,
	"ui":                    36,
	"zktest":                98,
	"framework/configfile":  6,
	"framework/frameworkfx": 5,
	"election/electionfx":   3,
	"scheduler/schedulerfx": 3,
	"queue/queuefx":         1,
	"config/configfx":       2,
	"registry/registryfx":   4,
	"registry/registrygrpc": 3,
	"members/membersfx":     3,
	"workflow/workflowfx":   3,
	"monitor/monitorfx":     2,
	"queue/curatorqueue":    8,
}

// mayNameInternal are the exported declarations that name a type of an internal package. ADR 120
// says why they do, and how each could stop.
var mayNameInternal = []string{
	"framework: OpError", "framework: Op", "zktest: Option",
}

// Surface returns the public packages that have more exported names than their budget, the exported
// declarations that name a type of an internal package, and the exported types of integers that do
// not print their values by name. It also returns entries of budget and mayNameInternal that are no
// longer needed.
//
// It looks at declared types only: not at values of constants and variables.
func Surface(module fs.FS) (wrong []string, err error) {
	var internal []string
	for dir, most := range budget {
		files, _, err := parseFiles(module, dir)
		if err != nil {
			return nil, err
		}
		names, named := surfaceOf(files)
		if len(names) == 0 {
			wrong = append(wrong, dir+" exports nothing: remove it from budget")
		}
		if len(names) > most {
			wrong = append(wrong, fmt.Sprintf("%s exports %d names, its budget is %d", dir, len(names), most))
		}
		for _, name := range named {
			internal = append(internal, dir+": "+name)
		}
		for _, name := range integersWithoutString(files, names) {
			wrong = append(wrong, fmt.Sprintf("%s: %s has no method String", dir, name))
		}
	}
	for _, name := range internal {
		if !slices.Contains(mayNameInternal, name) {
			wrong = append(wrong, name+" names a type of an internal package")
		}
	}
	for _, name := range mayNameInternal {
		if !slices.Contains(internal, name) {
			wrong = append(wrong, name+" names no internal type any more: remove it from mayNameInternal")
		}
	}
	slices.Sort(wrong)
	return wrong, nil
}

// surfaceOf returns the exported names of a package, and those of them whose declared types name a
// type of an internal package.
func surfaceOf(files []*ast.File) (names, internal []string) {
	for _, f := range files {
		hidden := internalImports(f)
		add := func(name string, types ...ast.Node) {
			names = append(names, name)
			if slices.ContainsFunc(types, func(t ast.Node) bool { return namesPackage(t, hidden) }) {
				internal = append(internal, name)
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					receiver := receiverName(d.Recv.List[0].Type)
					if !ast.IsExported(receiver) {
						continue
					}
					name = receiver + "." + name
				}
				if d.Name.IsExported() {
					add(name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							add(spec.Name.Name, spec)
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								add(name.Name, spec.Type)
							}
						}
					}
				}
			}
		}
	}
	return names, internal
}

// integersWithoutString returns the exported types of integers without a method String.
func integersWithoutString(files []*ast.File, names []string) (found []string) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || spec.Assign.IsValid() {
				return true
			}
			underlying, ok := spec.Type.(*ast.Ident)
			if ok && strings.Contains(underlying.Name, "int") && !slices.Contains(names, spec.Name.Name+".String") {
				found = append(found, spec.Name.Name)
			}
			return true
		})
	}
	return found
}

// internalImports are the names under which a file imports internal packages of this module.
func internalImports(f *ast.File) (names []string) {
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.Contains(imported, "/internal/") {
			continue
		}
		if name := path.Base(imported); spec.Name == nil {
			names = append(names, name)
		} else {
			names = append(names, spec.Name.Name)
		}
	}
	return names
}

// namesPackage reports whether a declared type names a type of one of some packages, except in
// fields that are not exported.
func namesPackage(declared ast.Node, packages []string) (found bool) {
	if declared == nil {
		return false // a value without a declared type
	}
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				exported := slices.ContainsFunc(field.Names, (*ast.Ident).IsExported)
				found = found || (exported || len(field.Names) == 0) && namesPackage(field.Type, packages)
			}
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && slices.Contains(packages, of.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}

// receiverName is the name of the type of a method's receiver.
func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return token.ILLEGAL.String()
}
