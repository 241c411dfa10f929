package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// Log writes an example's log: each line begins with the time of day. Its style colours the log if
// it goes to a terminal.
type Log struct {
	terminal.Style
	Out io.Writer
}

// NewLog returns a log on standard output, or on standard error if standard output is for JSON.
func NewLog(json bool) Log {
	out := os.Stdout
	if json {
		out = os.Stderr
	}
	return Log{terminal.For(out), out}
}

// Line writes one line.
func (l Log) Line(at time.Time, format string, args ...any) {
	fmt.Fprintf(l.Out, "%s  %s\n", l.Dim(at.Local().Format("15:04:05.000")), fmt.Sprintf(format, args...))
}

// Marked writes one line, with a mark of one character before its text.
func (l Log) Marked(at time.Time, mark, format string, args ...any) {
	l.Line(at, "%s  %s", mark, fmt.Sprintf(format, args...))
}
