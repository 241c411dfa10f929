package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// heldLocksVariable tells the lockstep commands within a command which locks lockstep lock holds
// around it.
const heldLocksVariable = "LOCKSTEP_HELD_LOCKS"

// withInheritedLocks returns a context in which the locks that a lockstep lock holds around this
// program count as held. A wrong value of the variable gives a warning, and has no other effect.
func withInheritedLocks(ctx context.Context, streams *Streams) context.Context {
	within, err := locks.WithHeldLocks(ctx, os.Getenv(heldLocksVariable))
	if err != nil {
		streams.printWarning("%s is ignored, so that deadlocks with its locks are not found: %v", heldLocksVariable,
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
func showDeadlocks(ctx context.Context, streams *Streams, client *framework.Client, root string, named,
	json bool) error {
	if named {
		if err := requireNode(ctx, client, root, "no lock was looked at",
			"see which there are: lockstep locks"); err != nil {
			return err
		}
	}
	found, err := locks.Deadlocks(ctx, client, root)
	if err != nil && !errors.Is(err, framework.ErrTooLarge) {
		return err
	}
	if err != nil {
		streams.printWarning("%v", err)
	}
	for i, d := range found {
		if json {
			err = printResult(streams.Out, true, d)
		} else {
			err = printDeadlock(streams, i+1, d, time.Now())
		}
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return exitSilently(exitNotObtained)
	}
	if !json && err == nil {
		streams.printNotice("no deadlock below %s", root)
	}
	return exitCodeOfPrinted(streams, err)
}

func printDeadlock(streams *Streams, number int, d locks.Deadlock, now time.Time) error {
	t := newTable("HOLDS", "WAITS FOR", "WAITER", "HOST", "PID", "ASKED")
	t.title = fmt.Sprintf("deadlock %d: %d holders wait for each other", number, len(d.Cycle))
	if d.Lasting {
		t.title += ", and only report it"
	}
	for _, a := range d.Cycle {
		holds := make([]string, len(a.Holds))
		for i, path := range a.Holds {
			holds[i] = quoteName(path)
		}
		t.addRow(redCell(strings.Join(holds, ", ")), boldCell(quoteName(a.Path)), plainCell(a.Owner), plainCell(a.Host),
			plainCell(fmt.Sprint(a.PID)),
			plainCell(formatAge(now.Sub(a.Since))))
	}
	return t.printTo(streams.Out)
}
