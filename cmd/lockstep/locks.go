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
type locksCommand struct {
	connectionFlags
	filter    locksFilter
	deadlocks bool
}

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
have changed since. Times are those that the holders' own clocks gave when they asked.

The flags --waiting, --older, --owner, --sort and --limit choose among the locks of a list. What
belongs to a queue, a scheduler or a barrier is shown with --all only. --deadlocks shows holders that
wait for each other, with exit code 1 if there are any. See also lockstep revoke
and lockstep release.`,
		Example: `  lockstep locks                   all of them
  lockstep locks deploy            one of them, in detail
  lockstep locks --waiting --sort waiting --limit 10
  lockstep locks --older 1h --owner web-3
  lockstep locks --deadlocks       those that wait for each other
  lockstep locks /apps --json      those below another path, one object a line`,
		Args: cobra.MaximumNArgs(1),
		RunE: withExitCodes(l.inspectLocks),
	}
	l.connectionFlags.addConnectionFlags(cmd)
	l.filter.addFilterFlags(cmd)
	cmd.Flags().BoolVar(&l.deadlocks, "deadlocks", false, "show only holders that wait for each other")
	for _, flag := range []string{"waiting", "older", "owner", "sort", "limit", "all"} {
		cmd.MarkFlagsMutuallyExclusive("deadlocks", flag)
	}
	return cmd
}

func (l *locksCommand) inspectLocks(cmd *cobra.Command, args []string) error {
	path, err := l.inspectedPath(args)
	if err != nil {
		return err
	}
	if err := l.filter.checkFilterFlags(cmd); err != nil {
		return err
	}
	client, err := l.connectClient(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client)
	ctx := cmd.Context()
	if l.deadlocks {
		return showDeadlocks(ctx, client, path, l.json)
	}
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
	now := time.Now()
	for r, err := range locks.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			printWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case !l.filter.admits(r, now):
		case !l.json || !l.filter.streams():
			reports = append(reports, r)
		default:
			if err := printResult(os.Stdout, true, reportView(r)); err != nil {
				return err
			}
		}
	}
	reports = l.filter.arrange(reports, now)
	if err := l.printReports(reports, now); err != nil {
		return err
	}
	if len(reports) == 0 && !l.json && unread == nil {
		printNotice("no locks below %s", root)
	}
	return exitCodeOfPrinted(unread)
}

func (l *locksCommand) printReports(reports []*locks.Report, now time.Time) error {
	if !l.json {
		return printLockOverview(os.Stdout, reports, now)
	}
	for _, r := range reports {
		if err := printResult(os.Stdout, true, reportView(r)); err != nil {
			return err
		}
	}
	return nil
}
