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

// heldLocksVariable carries what lockstep lock holds to the lockstep commands that its own command runs.
const heldLocksVariable = "LOCKSTEP_HELD_LOCKS"

// withInheritedLocks returns a context for the asks of this program: what a lockstep lock around it holds, it holds for them. A text that is wrong
// has no effect.
func withInheritedLocks(ctx context.Context) context.Context {
	within, err := locks.WithHeldLocks(ctx, os.Getenv(heldLocksVariable))
	if err != nil {
		printWarning("%s is left out, and deadlocks with it are not found: %v", heldLocksVariable, err)
		return ctx
	}
	return within
}

// inheritableLocks is the environment variable for the command that runs under a lease.
func inheritableLocks(lease *locks.Lease) string {
	return heldLocksVariable + "=" + locks.HeldLocks(lease.Context())
}

// showDeadlocks shows the deadlocks below a path. The exit code is 1 if there is one.
func showDeadlocks(ctx context.Context, client *framework.Client, root string, json bool) error {
	found, err := locks.Deadlocks(ctx, client, root)
	if err != nil && !errors.Is(err, framework.ErrTooLarge) {
		return err
	}
	if err != nil {
		printWarning("%v", err)
	}
	for i, d := range found {
		if json {
			err = printResult(os.Stdout, true, d)
		} else {
			err = printDeadlock(i+1, d, time.Now())
		}
		if err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return exitSilently(exitNotObtained)
	}
	if !json {
		printNotice("no deadlock below %s", root)
	}
	return exitCodeOfPrinted(err)
}

func printDeadlock(number int, d locks.Deadlock, now time.Time) error {
	t := newTable("HOLDS", "WAITS FOR", "OWNER", "HOST", "PROCESS", "WAITING SINCE")
	t.title = fmt.Sprintf("deadlock %d of %d asks", number, len(d.Cycle))
	for _, a := range d.Cycle {
		holds := make([]string, len(a.Holds))
		for i, path := range a.Holds {
			holds[i] = quoteName(path)
		}
		t.addRow(redCell(strings.Join(holds, ", ")), boldCell(quoteName(a.Path)), plainCell(a.Owner), plainCell(a.Host), plainCell(fmt.Sprint(a.PID)),
			plainCell(formatAge(now.Sub(a.Since))))
	}
	return t.printTo(os.Stdout)
}
