package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// Streams are the input and the output of a command line.
type Streams struct{ In, Out, Err *os.File }

// standardStreams are those of the process.
func standardStreams() *Streams {
	return &Streams{In: os.Stdin, Out: os.Stdout, Err: errorStream()}
}

// printError prints an error, and what to do next.
func (s *Streams) printError(err error, hint string) {
	style := terminal.For(s.Err)
	fmt.Fprintf(s.Err, "%s %s\n", style.Red("lockstep:"), escapeUnprintable(err.Error()))
	if hint != "" {
		fmt.Fprintf(s.Err, "%s %s\n", style.Dim("lockstep:"), escapeUnprintable(hint))
	}
}

// printNotice prints what lockstep does, to standard error: standard output belongs to the command.
func (s *Streams) printNotice(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s %s\n", terminal.For(s.Err).Dim("lockstep:"), escapeUnprintable(fmt.Sprintf(format, args...)))
}

// printWarning prints a failure that lockstep recovers from.
func (s *Streams) printWarning(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s %s\n", terminal.For(s.Err).Yellow("lockstep: warning:"),
		escapeUnprintable(fmt.Sprintf(format, args...)))
}

// printResult prints a result: a line of fields separated by tabs, or JSON.
func printResult(w io.Writer, asJSON bool, value any, fields ...any) error {
	if asJSON {
		line, err := marshalLine(value)
		if err != nil {
			return err
		}
		_, err = w.Write(line)
		return err
	}
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = fmt.Sprint(f)
	}
	_, err := fmt.Fprintln(w, strings.Join(words, "\t"))
	return err
}
