// Package cli has what the subcommands of the command line share: streams, connection, flags, exit
// codes, signals, input and the texts that people read.
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// Streams are the input and the output of a command line.
type Streams struct{ In, Out, Err *os.File }

// StandardStreams are those of the process.
func StandardStreams() *Streams {
	return &Streams{In: os.Stdin, Out: os.Stdout, Err: errorStream()}
}

// PrintError prints an error, and what to do next.
func (s *Streams) PrintError(err error, hint string) {
	style := terminal.For(s.Err)
	fmt.Fprintf(s.Err, "%s %s\n", style.Red("lockstep:"), EscapeUnprintable(err.Error()))
	if hint != "" {
		fmt.Fprintf(s.Err, "%s %s\n", style.Dim("lockstep:"), EscapeUnprintable(hint))
	}
}

// PrintNotice prints what lockstep does, to standard error: standard output belongs to the command.
func (s *Streams) PrintNotice(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s %s\n", terminal.For(s.Err).Dim("lockstep:"), EscapeUnprintable(fmt.Sprintf(format, args...)))
}

// PrintWarning prints a failure that lockstep recovers from.
func (s *Streams) PrintWarning(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s %s\n", terminal.For(s.Err).Yellow("lockstep: warning:"),
		EscapeUnprintable(fmt.Sprintf(format, args...)))
}

// NamedField is a field of PrintResult. On a terminal its name stands before the value. In a pipe
// the value stands alone: programs know the fields by their order.
type NamedField struct {
	Name  string
	Value any
}

// PrintResult prints a result: a line of fields separated by tabs, or JSON.
func PrintResult(w io.Writer, asJSON bool, value any, fields ...any) error {
	if asJSON {
		line, err := MarshalLine(value)
		if err != nil {
			return err
		}
		_, err = w.Write(line)
		return err
	}
	file, isFile := w.(*os.File)
	words := make([]string, len(fields))
	for i, f := range fields {
		named, isNamed := f.(NamedField)
		switch {
		case !isNamed:
			words[i] = fmt.Sprint(f)
		case isFile && terminal.Is(file):
			words[i] = fmt.Sprint(named.Name, " ", named.Value)
		default:
			words[i] = fmt.Sprint(named.Value)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(words, "\t"))
	return err
}
