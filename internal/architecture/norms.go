package architecture

import "fmt"

// The longest that a file and a function may be. One linear function is easier to follow than six that pass the same
// arguments around, so the limits leave room for it. Tests may be longer.
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
				wrong = append(wrong, fmt.Sprintf("%s: %s has %d lines, at most %d", f.Path, function.Name, function.Lines, MostFunctionLines))
			}
		}
	}
	return wrong
}
