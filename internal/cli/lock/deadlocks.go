package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
)

// heldLocksVariable tells the lockstep commands within a command which locks lockstep lock holds
// around it.
const heldLocksVariable = "LOCKSTEP_HELD_LOCKS"

// withInheritedLocks returns a context in which the locks that a lockstep lock holds around this
// program count as held. A wrong value of the variable gives a warning, and has no other effect.
func withInheritedLocks(ctx context.Context, streams *cli.Streams) context.Context {
	within, err := locks.WithHeldLocks(ctx, os.Getenv(heldLocksVariable))
	if err != nil {
		streams.PrintWarning("%s is ignored, so that deadlocks with its locks are not found: %v", heldLocksVariable,
			err)
		return ctx
	}
	return within
}

// inheritableLocks returns the environment variable for the command that runs under a lease.
func inheritableLocks(lease *locks.Lease) string {
	return heldLocksVariable + "=" + locks.HeldLocks(lease.Context())
}

// showDeadlocks shows the deadlocks below a path. The exit code is 1 if there is one, or if a path
// that was named does not exist.
func showDeadlocks(ctx context.Context, streams *cli.Streams, client *framework.Client, root string, named,
	json bool) error {
	if named {
		if err := cli.RequireNode(ctx, client, root, "no lock was looked at",
			"see which there are: lockstep locks"); err != nil {
			return err
		}
	}
	found, err := locks.Deadlocks(ctx, client, root)
	if err != nil && !errors.Is(err, framework.ErrTooLarge) {
		return err
	}
	if err != nil {
		streams.PrintWarning("%v", err)
	}
	for i, d := range found {
		if json {
			err = cli.PrintResult(streams.Out, true, d)
		} else {
			err = printDeadlock(streams, i+1, d, time.Now())
		}
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return cli.ExitSilently(cli.ExitFound)
	}
	if !json && err == nil {
		streams.PrintNotice("no deadlock below %s", root)
	}
	return cli.ExitCodeOfPrinted(streams, err)
}

func printDeadlock(streams *cli.Streams, number int, d locks.Deadlock, now time.Time) error {
	t := cli.NewTable("HOLDS", "WAITS FOR", "WAITER", "HOST", "PID", "ASKED")
	t.Title = fmt.Sprintf("deadlock %d: %d holders wait for each other", number, len(d.Cycle))
	if d.Lasting {
		t.Title += ", and only report it"
	}
	for _, a := range d.Cycle {
		holds := make([]string, len(a.Holds))
		for i, path := range a.Holds {
			holds[i] = cli.QuoteName(path)
		}
		t.AddRow(cli.RedCell(strings.Join(holds, ", ")), cli.BoldCell(cli.QuoteName(a.Path)), cli.PlainCell(a.Owner),
			cli.PlainCell(a.Host),
			cli.PlainCell(fmt.Sprint(a.PID)),
			cli.PlainCell(cli.FormatAge(now.Sub(a.Since))))
	}
	return t.PrintTo(streams.Out)
}
