package architecture

import (
	"go/ast"
	"go/types"
	"io/fs"
	"maps"
	"slices"
)

// PointersToReports returns the exported functions of public packages that return a pointer to a
// struct which only tells something: none of its exported methods needs a pointer. Also an element
// of a sequence or a slice counts as returned.
func PointersToReports(module fs.FS) (found []string, err error) {
	m := newTypedModule(module)
	for _, dir := range slices.Sorted(maps.Keys(budget)) {
		p, err := m.check(dir)
		if err != nil {
			return nil, err
		}
		p.exportedFunctions(func(name string, d *ast.FuncDecl) {
			if d.Type.Results == nil {
				return
			}
			ast.Inspect(d.Type.Results, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncType:
					return false
				case *ast.StarExpr:
					if onlyTells(p.info.TypeOf(n.X)) {
						found = append(found, dir+": "+name)
					}
				}
				return true
			})
		})
	}
	return found, nil
}

// onlyTells reports whether a type is a struct of a public package without exported methods that
// need a pointer, its own or those of an embedded type.
func onlyTells(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || !isPublic(named.Obj()) {
		return false
	}
	if _, ok := named.Underlying().(*types.Struct); !ok {
		return false
	}
	for method := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		_, needsPointer := method.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
		if needsPointer && method.Obj().Exported() {
			return false
		}
	}
	return true
}
