package architecture

import (
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// layouts are the internal packages that have records of what public packages store.
var layouts = []string{"internal/queuelayout", "internal/recipe", "internal/waitgraph", "internal/waitline"}

// storesNothing are the public packages that store no records: their structs with JSON tags are
// answers to requests, or files.
var storesNothing = []string{"ui", "framework/configfile"}

// codecs are the functions of internal/recipe that write and read records, with the place of the
// record among their arguments.
var codecs = map[string]int{"Encode": 1, "EncodeFields": 0, "Decode": 2, "DecodeFields": 1}

// StoredTypes returns the exported types of public packages that are stored: as a record, or as a
// field of one. If such a type or its texts changed, what is stored would change, too.
//
// Records are the structs that are passed to the functions of codecs, and in public packages the
// structs with JSON tags that are not exported. A type with a method MarshalJSON writes another
// record, which is looked at on its own.
func StoredTypes(module fs.FS) (wrong []string, err error) {
	m := newTypedModule(module)
	for _, dir := range slices.Concat(layouts, slices.Sorted(maps.Keys(budget))) {
		if slices.Contains(storesNothing, dir) {
			continue
		}
		p, err := m.check(dir)
		if err != nil {
			return nil, err
		}
		seen := map[types.Type]bool{}
		for _, record := range p.records() {
			for _, what := range publicTypesIn(record, seen) {
				wrong = append(wrong, dir+": "+what)
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), nil
}

// records are the types of a package's records.
func (p *typedPackage) records() (all []types.Type) {
	for _, name := range p.Scope().Names() {
		declared, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || declared.Exported() {
			continue
		}
		fields, ok := declared.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for i := range fields.NumFields() {
			if reflect.StructTag(fields.Tag(i)).Get("json") != "" {
				all = append(all, declared.Type())
				break
			}
		}
	}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, ok := codecs[function.Sel.Name]
			if ok && len(call.Args) == at+1 {
				if t := p.info.TypeOf(call.Args[at]); t != nil {
					all = append(all, t)
				}
			}
			return true
		})
	}
	return all
}

// publicTypesIn returns the exported types of public packages in what package json writes for a
// type, each with the field that has it.
func publicTypesIn(t types.Type, seen map[types.Type]bool) (found []string) {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return publicTypesIn(t.Elem(), seen)
	case *types.Slice:
		return publicTypesIn(t.Elem(), seen)
	case *types.Array:
		return publicTypesIn(t.Elem(), seen)
	case *types.Map:
		return slices.Concat(publicTypesIn(t.Key(), seen), publicTypesIn(t.Elem(), seen))
	case *types.Named:
		if isPublic(t.Obj()) {
			return []string{t.Obj().Name()}
		}
		marshals, _, _ := types.LookupFieldOrMethod(t, true, t.Obj().Pkg(), "MarshalJSON")
		if seen[t] || marshals != nil {
			return nil
		}
		seen[t] = true
		fields, ok := t.Underlying().(*types.Struct)
		if !ok {
			return publicTypesIn(t.Underlying(), seen)
		}
		for i := range fields.NumFields() {
			field, tag := fields.Field(i), reflect.StructTag(fields.Tag(i)).Get("json")
			if tag == "-" || !field.Exported() && !field.Embedded() {
				continue
			}
			for _, what := range publicTypesIn(field.Type(), seen) {
				if !strings.Contains(what, ":") {
					what = fmt.Sprintf("%s.%s: %s", t.Obj().Name(), field.Name(), what)
				}
				found = append(found, what)
			}
		}
	}
	return found
}
