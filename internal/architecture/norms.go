package architecture

import "fmt"

// The maximum lengths of a file and a function. One linear function is easier to follow than six
// functions that pass the same arguments on, so the limits allow it. Tests may be longer.
const (
	MostFileLines     = 600
	MostFunctionLines = 80
)

// Norms returns the files and functions that are too long.
func Norms(files []File) (wrong []string) {
	for _, f := range files {
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
