package cli

import (
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// PrintEach reads each of some names, and prints a row of a table for it, or its view as JSON. What
// cannot be read is warned about, and decides the exit code.
func PrintEach(streams *Streams, names []string, t *Table, asJSON bool, read func(name string) (view any, row []Cell,
	err error)) error {
	var unread error
	for _, name := range names {
		view, row, err := read(name)
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.PrintWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case asJSON:
			if err := PrintResult(streams.Out, true, view); err != nil {
				return err
			}
		default:
			t.AddRow(row...)
		}
	}
	if err := t.PrintTo(streams.Out); err != nil {
		return err
	}
	return ExitCodeOfPrinted(streams, unread)
}
