package main

import (
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// printEach reads each of some names, and prints a row of a table for it, or its view as JSON. What
// cannot be read is warned about, and decides the exit code.
func printEach(streams *Streams, names []string, t *table, asJSON bool, read func(name string) (view any, row []cell,
	err error)) error {
	var unread error
	for _, name := range names {
		view, row, err := read(name)
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.printWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case asJSON:
			if err := printResult(streams.Out, true, view); err != nil {
				return err
			}
		default:
			t.addRow(row...)
		}
	}
	if err := t.printTo(streams.Out); err != nil {
		return err
	}
	return exitCodeOfPrinted(streams, unread)
}
