package lock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
)

// locksCommand is the subcommand that shows locks.
type locksCommand struct {
	cli.ConnectionFlags
	filter    Filter
	deadlocks bool
}

func newLocks(streams *cli.Streams) *cobra.Command {
	l := &locksCommand{}
	cmd := &cobra.Command{
		Use:   "locks [NAME] [flags]",
		Short: "Show who holds locks and who waits for them",
		Long: `Show who holds locks and who waits for them, also Java programs with Apache Curator.

Without a NAME lockstep lists all locks below /lockstep/locks, with the NAME of a directory those
below it; the exit code is 1 if no process holds or waits there. With the NAME of a lock it lists the
holders and waiters in order, each with its fencing token and session. Nothing is written, and the
locks may have changed since. Times are by the clocks of those who asked for the lock, when they asked.

The flags --waiting, --older, --owner, --sort and --limit choose among the locks of a list. Nodes of
queues, schedulers, barriers and services are shown with --all only. --deadlocks shows holders that wait for
each other; the exit code is 1 if there are any, or if a NAME that was given does not exist. See
also lockstep revoke and lockstep release.`,
		Example: `  lockstep locks                   all locks
  lockstep locks deploy            one lock, in detail
  lockstep locks --waiting --sort waiting --limit 10
  lockstep locks --older 1h --owner web-3
  lockstep locks --deadlocks       holders that wait for each other
  lockstep locks /apps --json      the locks below another path, one object per line`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(l.inspectLocks),
	}
	l.ConnectionFlags.AddConnectionFlags(streams, cmd)
	l.filter.addFilterFlags(cmd)
	cmd.Flags().BoolVar(&l.deadlocks, "deadlocks", false, "show only holders that wait for each other")
	for _, flag := range []string{"waiting", "older", "owner", "sort", "limit", "all"} {
		cmd.MarkFlagsMutuallyExclusive("deadlocks", flag)
	}
	return cmd
}

func (l *locksCommand) inspectLocks(cmd *cobra.Command, args []string) error {
	path, err := cli.RootOf("locks", args)
	if err != nil {
		return err
	}
	if err := l.filter.checkFilterFlags(cmd); err != nil {
		return err
	}
	client, err := l.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(l.Streams, client)
	ctx := cmd.Context()
	if l.deadlocks {
		return showDeadlocks(ctx, l.Streams, client, path, len(args) > 0, l.JSON)
	}
	if len(args) == 0 {
		return l.listLocks(ctx, client, path, false)
	}
	one, err := locks.Inspect(ctx, client, path)
	switch {
	case err != nil:
		return err
	case one.Kind == locks.NoLock:
		return l.listLocks(ctx, client, path, path != "/")
	case l.JSON:
		err = cli.PrintResult(l.Out, true, one)
	default:
		err = PrintDetail(l.Out, one, time.Now())
	}
	if err == nil && !isUsed(one) {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("no process holds or waits for %s", path), "")
	}
	return err
}

// isUsed reports whether a lock has nodes of processes. A free semaphore keeps a record of its
// permits.
func isUsed(r locks.Report) bool { return len(r.Holders)+len(r.Waiters)+len(r.Others) > 0 }

// listLocks shows every lock below a path. What cannot be read is warned about, and decides the
// exit code. A NAME without any lock may be mistyped.
func (l *locksCommand) listLocks(ctx context.Context, client *framework.Client, root string, named bool) error {
	var reports []locks.Report
	var unread error
	now := time.Now()
	found := 0
	for r, err := range locks.List(ctx, client, root) {
		if err == nil && isUsed(r) {
			found++
		}
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			l.PrintWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case !l.filter.Admits(r, now):
		case !l.JSON || !l.filter.streams():
			reports = append(reports, r)
		default:
			if err := cli.PrintResult(l.Out, true, r); err != nil {
				return err
			}
		}
	}
	reports = l.filter.arrange(l.Streams, reports, now)
	if err := l.printReports(reports, now); err != nil {
		return err
	}
	if found == 0 && named && unread == nil && len(reports) > 0 {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("no process holds or waits for a lock below %s", root), "")
	}
	if found == 0 && named && unread == nil {
		return cli.NothingFoundError(ctx, l.Streams, client, "locks", root, "lockstep locks")
	}
	if len(reports) == 0 && !l.JSON && unread == nil {
		cli.PrintNone(ctx, l.Streams, "locks", root, "lockstep locks", FindUsed(client, false))
	}
	return cli.ExitCodeOfPrinted(l.Streams, unread)
}

func (l *locksCommand) printReports(reports []locks.Report, now time.Time) error {
	if !l.JSON {
		return printLockOverview(l.Out, reports, now)
	}
	for _, r := range reports {
		if err := cli.PrintResult(l.Out, true, r); err != nil {
			return err
		}
	}
	return nil
}

// FindUsed returns a search for all used locks, or for all elections.
func FindUsed(client *framework.Client, elections bool) func(context.Context) iter.Seq2[string, error] {
	shown := Filter{}
	return func(ctx context.Context) iter.Seq2[string, error] {
		return cli.PathsOf(locks.List(ctx, client, "/"), func(r locks.Report) (string, bool) {
			return r.Path, (r.Kind == locks.ElectionLock) == elections && isUsed(r) && shown.Admits(r, time.Now())
		})
	}
}
