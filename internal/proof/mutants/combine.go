package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SwitchVariable is the environment variable that switches one mutant of a combined build on. The
// command line's tests pass no LOCKSTEP_ variable on to the processes that they start, so its name
// begins otherwise.
const SwitchVariable = "MUTANT_OF_LOCKSTEP"

// Combine writes an overlay of many mutants for one build, since a build takes longer than a test.
// A changed function is there once more for each mutant that changes it, and the function itself
// calls the copy whose mutant is switched on: the number of mutants[i] is i+1, and none is switched
// on by 0. Combine returns the overlay's path, and the indexes of those mutants that change
// something other than the bodies of functions. They are left out.
func Combine(root, dir string, mutants []Change) (overlay string, apart []int, err error) {
	files := map[string]*combinedFile{}
	for i, c := range mutants {
		if files[c.File] == nil {
			if files[c.File], err = readCombinedFile(filepath.Join(root, c.File)); err != nil {
				return "", nil, err
			}
		}
		copies, fits, err := files[c.File].copiesOf(root, c)
		if err != nil {
			return "", nil, err
		}
		if !fits {
			apart = append(apart, i)
			continue
		}
		files[c.File].add(i+1, copies)
	}
	replace := map[string]string{}
	for file, f := range files {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", nil, err
		}
		replace[original] = f.text()
		replace[filepath.Join(filepath.Dir(original), "mutant_switch.go")] = fmt.Sprintf(mutantSwitch,
			f.source.tree.Name.Name, SwitchVariable)
	}
	overlay, err = writeOverlay(dir, replace)
	return overlay, apart, err
}

// mutantSwitch is the file that is added to each package.
const mutantSwitch = `package %s

import (
	"os"
	"strconv"
)

var switchedMutant, _ = strconv.Atoi(os.Getenv(%q))
`

// functionsOfFile is the text of a file with its functions.
type functionsOfFile struct {
	text      string
	tree      *ast.File
	base      token.Pos
	functions map[string]*ast.FuncDecl // by receiver and name
	others    string                   // all other declarations
}

func parseFunctions(text []byte) (*functionsOfFile, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &functionsOfFile{text: string(text), tree: tree, base: token.Pos(set.File(tree.Package).Base()),
		functions: map[string]*ast.FuncDecl{}}
	for _, d := range tree.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok {
			f.others += f.textOf(d) + "\n"
			continue
		}
		key := function.Name.Name
		if function.Recv != nil {
			key = f.textOf(function.Recv.List[0].Type) + "." + key
		}
		for f.functions[key] != nil { // init, or _
			key += "+"
		}
		f.functions[key] = function
	}
	return f, nil
}

func (f *functionsOfFile) textOf(n ast.Node) string { return f.text[n.Pos()-f.base : n.End()-f.base] }

// functionCopies are the changed functions of one mutant, by their keys: the declaration in two
// parts, around the name.
type functionCopies map[string][2]string

// combinedFile is a file with the copies of several mutants.
type combinedFile struct {
	source   *functionsOfFile
	copies   strings.Builder
	switches map[string]string // by function: what its body begins with
}

func readCombinedFile(path string) (*combinedFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	source, err := parseFunctions(text)
	return &combinedFile{source: source, switches: map[string]string{}}, err
}

// copiesOf returns the functions that a change changes. It reports whether the change changes
// nothing else.
func (f *combinedFile) copiesOf(root string, c Change) (functionCopies, bool, error) {
	text, err := c.Apply(root)
	if err != nil {
		return nil, false, err
	}
	changed, err := parseFunctions(text)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", c.File, err)
	}
	if changed.others != f.source.others || len(changed.functions) != len(f.source.functions) {
		return nil, false, nil
	}
	copies := functionCopies{}
	for key, d := range changed.functions {
		old := f.source.functions[key]
		if old == nil || f.source.textOf(old.Type) != changed.textOf(d.Type) {
			return nil, false, nil
		}
		if text := changed.textOf(d); text != f.source.textOf(old) {
			copies[key] = [2]string{text[:d.Name.Pos()-d.Pos()], text[d.Name.End()-d.Pos():]}
		}
	}
	return copies, true, nil
}

// add adds the copies of a mutant.
func (f *combinedFile) add(number int, copies functionCopies) {
	for _, key := range slices.Sorted(maps.Keys(copies)) {
		d := f.source.functions[key]
		name := fmt.Sprintf("%s_mutant%d", d.Name.Name, number)
		f.copies.WriteString("\n" + copies[key][0] + name + copies[key][1] + "\n")
		call := name
		if d.Recv != nil {
			_, receiver := f.named(d.Recv, "receiver")
			call = receiver[0] + "." + name
		}
		if d.Type.TypeParams != nil {
			_, types := f.named(d.Type.TypeParams, "T")
			call += "[" + strings.Join(types, ", ") + "]"
		}
		_, arguments := f.named(d.Type.Params, "parameter")
		call += "(" + strings.Join(arguments, ", ") + ")"
		if d.Type.Results == nil {
			call += "; return"
		} else {
			call = "return " + call
		}
		f.switches[key] += fmt.Sprintf(" if switchedMutant == %d { %s };", number, call)
	}
}

// edit replaces a part of a text.
type edit struct {
	from, to token.Pos
	text     string
}

// named returns the names of parameters as arguments, and the edits that give names to those
// without one.
func (f *combinedFile) named(list *ast.FieldList, prefix string) (edits []edit, arguments []string) {
	for _, field := range list.List {
		dots := ""
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		if len(field.Names) == 0 {
			name := fmt.Sprintf("%s%dOfMutant", prefix, len(arguments))
			edits = append(edits, edit{field.Type.Pos(), field.Type.Pos(), name + " "})
			arguments = append(arguments, name+dots)
		}
		for _, id := range field.Names {
			name := id.Name
			if name == "_" {
				name = fmt.Sprintf("%s%dOfMutant", prefix, len(arguments))
				edits = append(edits, edit{id.Pos(), id.End(), name})
			}
			arguments = append(arguments, name+dots)
		}
	}
	return edits, arguments
}

// text is the file with the copies, and with functions that call them.
func (f *combinedFile) text() string {
	var edits []edit
	for key, begins := range f.switches {
		d := f.source.functions[key]
		edits = append(edits, edit{d.Body.Lbrace + 1, d.Body.Lbrace + 1, begins})
		parameters, _ := f.named(d.Type.Params, "parameter")
		edits = append(edits, parameters...)
		if d.Recv != nil {
			receiver, _ := f.named(d.Recv, "receiver")
			edits = append(edits, receiver...)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return int(b.from - a.from) })
	text := f.source.text
	for _, e := range edits {
		text = text[:e.from-f.source.base] + e.text + text[e.to-f.source.base:]
	}
	return text + f.copies.String()
}
