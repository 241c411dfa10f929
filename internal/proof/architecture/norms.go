package architecture

import "fmt"

// The maximum lengths of a file and a function. One linear function is easier to follow than six
// functions that pass the same arguments on, so the limits allow it. Tests may be longer, but not
// wider.
const (
	MostFileLines      = 600
	MostFunctionLines  = 80
	MostColumns        = 120
	MostCommentColumns = 100 // of a line that is a comment
)

// Norms returns the files and functions that are too long, and the lines that are too wide.
func Norms(files []File) (wrong []string) {
	for _, f := range files {
		for _, line := range f.Wide {
			wrong = append(wrong, fmt.Sprintf("%s:%d: wider than %d columns, or a comment than %d", f.Path, line,
				MostColumns, MostCommentColumns))
		}
		if f.IsTest() {
			continue
		}
		if f.Lines > MostFileLines {
			wrong = append(wrong, fmt.Sprintf("%s: %d lines, at most %d", f.Path, f.Lines, MostFileLines))
		}
		for _, function := range f.Functions {
			if function.Lines > MostFunctionLines {
				wrong = append(wrong, fmt.Sprintf("%s: %s has %d lines, at most %d", f.Path, function.Name,
					function.Lines, MostFunctionLines))
			}
		}
	}
	return wrong
}
