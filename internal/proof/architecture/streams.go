package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
)

// processStreams are the names of packages os and fmt that reach the streams or the end of the
// process.
var processStreams = map[string][]string{
	"os":  {"Stdin", "Stdout", "Stderr", "Exit"},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// makesStreams are the files of the command line that make its streams from those of the process.
var makesStreams = []string{"internal/cli/streams.go", "internal/cli/signals_unix.go", "internal/cli/signals_other.go"}

// Streams returns the uses of the process's streams, and of os.Exit, below internal/cli. A command
// has streams of its own there, so that a test can run it.
func Streams(module fs.FS, files []File) (wrong []string, err error) {
	for _, f := range files {
		if f.IsTest() || !within(f.Path, "internal/cli") || slices.Contains(makesStreams, f.Path) {
			continue
		}
		source, err := fs.ReadFile(module, f.Path)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.Path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("architecture: %w", err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				from, ok := selector.X.(*ast.Ident)
				if ok && slices.Contains(processStreams[from.Name], selector.Sel.Name) {
					wrong = append(wrong, fmt.Sprintf("%s: %s.%s is the process's: use cli.Streams",
						set.Position(n.Pos()), from.Name, selector.Sel.Name))
				}
			}
			return true
		})
	}
	return wrong, nil
}
