package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A package reaches what the user has passed to it by the methods of a log, by those of an
// instrument, whose first argument is a context, and by these fields.
var (
	logMethods        = []string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs"}
	logReceivers      = []string{"log", "logger", "Logger", "slog"}
	instrumentMethods = []string{"Add", "Record"}
	outwardFields     = []string{"measures", "Answered", "onWait"}
)

// lockedPackage finds calls that reach what the user has passed while a mutex is locked. Such a
// handler may ask the client for its state, or block for ever.
//
// It follows the statements of each function in order, from Lock to Unlock. It begins with a locked
// mutex in a function whose comment says that it is guarded, or that its caller holds a mutex.
// Functions of the same package that make such a call count as one. A function literal begins
// without a locked mutex, since it may run later.
type lockedPackage struct {
	set     *token.FileSet
	info    *types.Info
	outward map[types.Object]bool // functions that make such a call
	found   func(at ast.Node, held []string)
}

// mayLogLocked are packages that are not checked, with the reason.
var mayLogLocked = map[string]string{
	"internal/zkserver": "a goroutine of its own hands the records to the user's log",
}

// Locked returns the calls of a log, an instrument or a user's function under a lock.
func Locked(module fs.FS, files []File) (wrong []string, err error) {
	var dirs []string
	for _, f := range files {
		if _, excepted := mayLogLocked[f.Dir()]; !excepted && !f.IsTest() && !slices.Contains(dirs, f.Dir()) {
			dirs = append(dirs, f.Dir())
		}
	}
	for _, dir := range dirs {
		parsed, set, err := parseFiles(module, dir)
		if err != nil {
			return nil, err
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: noImports{}, Error: func(error) {}, DisableUnusedImportCheck: true}
		_, _ = config.Check(dir, set, parsed, info) // it cannot know what is imported
		p := &lockedPackage{set: set, info: info, outward: map[types.Object]bool{}}
		p.findOutward(parsed)
		p.found = func(at ast.Node, held []string) {
			where := set.Position(at.Pos())
			wrong = append(wrong, fmt.Sprintf(
				"%s:%d: a log, an instrument or a user's function is called while %s is locked",
				path.Join(dir, where.Filename), where.Line, strings.Join(held, ", ")))
		}
		for _, f := range functionsOf(parsed) {
			p.checkBlock(f.Body.List, heldAtBegin(f))
			p.checkLiterals(f)
		}
	}
	return wrong, nil
}

func functionsOf(files []*ast.File) (all []*ast.FuncDecl) {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// heldAtBegin returns the mutex that a function's comment says is held.
func heldAtBegin(f *ast.FuncDecl) []string {
	doc := strings.Join(strings.Fields(f.Doc.Text()), " ")
	for _, words := range []string{"Guarded by ", "caller holds "} {
		if _, rest, found := strings.Cut(doc, words); found {
			mutex, _, _ := strings.Cut(rest, ".")
			return []string{mutex}
		}
	}
	return nil
}

// findOutward finds the functions of the package that reach what the user has passed, also through
// others.
func (p *lockedPackage) findOutward(files []*ast.File) {
	for grown := true; grown; {
		grown = false
		for _, f := range functionsOf(files) {
			object := p.info.Defs[f.Name]
			if p.outward[object] {
				continue
			}
			p.found = func(ast.Node, []string) { p.outward[object], grown = true, true }
			p.checkBlock(f.Body.List, []string{"any"})
		}
	}
}

// checkBlock checks statements that begin with these mutexes locked.
func (p *lockedPackage) checkBlock(statements []ast.Stmt, held []string) {
	held = slices.Clone(held)
	for _, s := range statements {
		if call, ok := s.(*ast.ExprStmt); ok {
			if mutex, locks := lockCall(call.X); mutex != "" {
				held = slices.DeleteFunc(held, func(h string) bool { return h == mutex })
				if locks {
					held = append(held, mutex)
				}
				continue
			}
		}
		p.checkNode(s, held)
	}
}

// checkLiterals checks the function literals of a function.
func (p *lockedPackage) checkLiterals(f *ast.FuncDecl) {
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, ok := n.(*ast.FuncLit); ok {
			p.checkBlock(literal.Body.List, nil)
		}
		return true
	})
}

// checkNode checks the calls in a statement or an expression.
func (p *lockedPackage) checkNode(node ast.Node, held []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.BlockStmt:
			p.checkBlock(n.List, held)
			return false
		case *ast.CaseClause:
			p.checkBlock(n.Body, held)
			return false
		case *ast.CommClause:
			p.checkBlock(n.Body, held)
			return false
		case *ast.CallExpr:
			if len(held) > 0 && p.reachesUser(n) {
				p.found(n, held)
			}
		}
		return true
	})
}

// lockCall returns the mutex that a call locks or unlocks.
func lockCall(e ast.Expr) (mutex string, locks bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return "", false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	switch method.Sel.Name {
	case "Lock", "RLock":
		return types.ExprString(method.X), true
	case "Unlock", "RUnlock":
		return types.ExprString(method.X), false
	}
	return "", false
}

// reachesUser reports whether a call reaches what the user has passed.
func (p *lockedPackage) reachesUser(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		name, ok := call.Fun.(*ast.Ident)
		return ok && p.outward[p.info.Uses[name]]
	}
	name, receiver := method.Sel.Name, lastName(method.X)
	switch {
	case slices.Contains(logMethods, name) && slices.Contains(logReceivers, receiver):
		return true
	case slices.Contains(instrumentMethods, name) && len(call.Args) > 1 && isContext(call.Args[0]):
		return true
	case slices.Contains(outwardFields, name) || slices.Contains(outwardFields, receiver):
		return true
	}
	return p.outward[p.info.Uses[method.Sel]]
}

// lastName returns the last name of an expression, such as log of s.setup.log, and Logger of
// c.Logger().
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

// isContext reports whether an expression looks like a context.
func isContext(e ast.Expr) bool {
	s := types.ExprString(e)
	return strings.HasSuffix(strings.ToLower(s), "ctx") || strings.HasPrefix(s, "context.")
}
