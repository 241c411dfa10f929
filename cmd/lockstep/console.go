package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// printError prints an error, and what to do next.
func printError(err error, hint string) {
	style := terminal.For(os.Stderr)
	fmt.Fprintf(os.Stderr, "%s %s\n", style.Red("lockstep:"), escapeUnprintable(err.Error()))
	if hint != "" {
		fmt.Fprintf(os.Stderr, "%s %s\n", style.Dim("lockstep:"), escapeUnprintable(hint))
	}
}

// printNotice prints what lockstep does, to standard error: standard output belongs to the command.
func printNotice(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", terminal.For(os.Stderr).Dim("lockstep:"),
		escapeUnprintable(fmt.Sprintf(format, args...)))
}

// printWarning prints a failure that lockstep recovers from.
func printWarning(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", terminal.For(os.Stderr).Yellow("lockstep: warning:"),
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
