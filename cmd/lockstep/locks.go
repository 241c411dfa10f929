package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// locksCommand is the subcommand that shows locks.
type locksCommand struct{ connectionFlags }

func newLocks() *cobra.Command {
	l := &locksCommand{}
	cmd := &cobra.Command{
		Use:   "locks [NAME] [flags]",
		Short: "Show who holds locks and who waits for them",
		Long: `Show who holds locks and who waits for them, whoever made them: a Java program with Apache
Curator is shown as well.

Without a NAME all locks below /lockstep/locks are listed; with the NAME of a directory, all
below that. With the NAME of a lock its holders and waiters are listed in order, each with its
fencing token and its session. It is a look: nothing is written, and what it shows may
have changed since. Times are those that the holders' own clocks gave when they asked.`,
		Example: `  lockstep locks                   all of them
  lockstep locks deploy            one of them, in detail
  lockstep locks /apps --json      those below another path, one object a line`,
		Args: cobra.MaximumNArgs(1),
		RunE: withExitCodes(l.inspectLocks),
	}
	l.connectionFlags.addConnectionFlags(cmd)
	return cmd
}

func (l *locksCommand) inspectLocks(cmd *cobra.Command, args []string) error {
	path, err := l.inspectedPath(args)
	if err != nil {
		return err
	}
	client, err := l.connectClient(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client)
	ctx := cmd.Context()
	if len(args) == 0 {
		return l.listLocks(ctx, client, path)
	}
	one, err := locks.Inspect(ctx, client, path)
	switch {
	case err != nil:
		return err
	case one.Kind == locks.NoLock:
		return l.listLocks(ctx, client, path)
	case l.json:
		return printResult(os.Stdout, true, reportView(one))
	}
	return printLockDetail(os.Stdout, one, time.Now())
}

// inspectedPath is where to look. The root is no lock, but locks may be below it.
func (l *locksCommand) inspectedPath(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return locksDir, nil
	case args[0] == "/":
		return "/", nil
	}
	return pathOf("locks", args[0])
}

// listLocks shows every lock below a path. What cannot be read is warned about, and decides the exit code.
func (l *locksCommand) listLocks(ctx context.Context, client *framework.Client, root string) error {
	var reports []*locks.Report
	var unread error
	for r, err := range locks.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			printWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case !l.json:
			reports = append(reports, r)
		default:
			if err := printResult(os.Stdout, true, reportView(r)); err != nil {
				return err
			}
		}
	}
	if err := printLockOverview(os.Stdout, reports, time.Now()); err != nil {
		return err
	}
	if len(reports) == 0 && !l.json && unread == nil {
		printNotice("no locks below %s", root)
	}
	return exitCodeOfPrinted(unread)
}
