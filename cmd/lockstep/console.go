package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// complain prints an error, and what to do next.
func complain(err error, hint string) {
	style := terminal.For(os.Stderr)
	fmt.Fprintf(os.Stderr, "%s %s\n", style.Red("lockstep:"), harmless(err.Error()))
	if hint != "" {
		fmt.Fprintf(os.Stderr, "%s %s\n", style.Dim("lockstep:"), harmless(hint))
	}
}

// say tells people what goes on. It keeps away from standard output, which is the command's.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", terminal.For(os.Stderr).Dim("lockstep:"), harmless(fmt.Sprintf(format, args...)))
}

// warn tells people what has gone wrong and is being dealt with.
func warn(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", terminal.For(os.Stderr).Yellow("lockstep: warning:"), harmless(fmt.Sprintf(format, args...)))
}

// put prints a result: a line of fields separated by tabs, or JSON.
func put(w io.Writer, asJSON bool, value any, fields ...any) error {
	if asJSON {
		line, err := marshal(value)
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
