// Package lock has the subcommands that hold, list and release locks.
package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
)

// lockCommand is the subcommand that holds a lock.
type lockCommand struct {
	cli.ConnectionFlags
	hold.Runner
	lockFlags
	maxHold  cli.DurationFlag
	nonblock bool
	yield    bool
	wait     cli.DurationFlag
	conflict int
}

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newLock(streams), newLocks(streams), newRevoke(streams), newRelease(streams)}
}

func newLock(streams *cli.Streams) *cobra.Command {
	l := &lockCommand{}
	cmd := &cobra.Command{
		Use:   "lock NAME... [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock that one process in the whole cluster holds at a time.

With -s and -x a lock has readers, who hold it together, and writers, who hold it alone; with
--permits N up to N processes hold it at a time. All must use a NAME in the same way. With several
NAMEs lockstep holds all the locks together, or none; their order does not matter.

With --kazoo, locks of the Python library kazoo take part under its own names. Configure each of them
to wait for this one: extra_lock_patterns=["lock-"] for a Lock; with -s and -x
["__WRIT__", "__READ__"] for a WriteLock and ["__WRIT__"] for a ReadLock. Without that a kazoo lock
can be held beside the others. All who use the NAME with this program must give --kazoo.

Waiters get the lock in order. If the lock is lost while the command runs, because the
servers have not been reached for too long, the command's process group gets SIGTERM, and
SIGKILL --kill-after later, before another process can get the lock; the exit code is 75.

A lockstep lock within the command knows the locks that are held around it from
LOCKSTEP_HELD_LOCKS in its environment. When scripts wait for each other's locks in this way, the
youngest wait ends with exit code 35 and names the locks. "lockstep locks --deadlocks" shows such
deadlocks. With --deadlock report lockstep prints the deadlock on standard error and waits on; with
--deadlock off it does not look for deadlocks.

Others can ask for the lock with "lockstep revoke", or with Curator's Revoker. lockstep says so on
standard error, and the command goes on. With --yield the command gets SIGTERM, and lockstep
releases the lock when the command has ended.

Without a command lockstep prints the path and the fencing token once it holds the lock, and
holds it until a signal comes. "lockstep locks" lists who holds what.`,
		Example: `  lockstep lock deploy -- ./deploy.sh            wait as long as it takes
  lockstep lock deploy -n -- ./deploy.sh         exit with 1 if another process holds it
  lockstep lock deploy -w 30 -- ./deploy.sh      exit with 1 after 30 seconds
  lockstep lock -s catalogue -- ./export.sh      together with others with -s, not with one with -x
  lockstep lock --permits 3 gpu -- ./train.sh    three at a time
  lockstep lock db disk -- ./backup.sh           both locks, or none
  lockstep lock /apps/shop/lock                  hold a lock that a Java program uses`,
		Args: cli.CheckNames,
		RunE: cli.WithExitCodes(l.runLocked),
	}
	l.ConnectionFlags.AddConnectionFlags(streams, cmd)
	l.Runner.AddFlags(streams, cmd)
	l.lockFlags.addLockFlags(streams, cmd)
	f := cmd.Flags()
	f.Var(&l.maxHold, "max-hold", "end the command after this time, as if the lock was lost")
	f.BoolVar(&l.yield, "yield", false, "send SIGTERM to the command when others ask for the lock with lockstep revoke")
	f.BoolVarP(&l.nonblock, "nonblock", "n", false, "do not wait if another process holds the lock or waits for it")
	f.VarP(&l.wait, "wait", "w", "wait no longer than this after the session has begun; a bare number is seconds")
	f.IntVarP(&l.conflict, "conflict-exit-code", "E", cli.ExitNotObtained,
		"exit code when the lock is not obtained under -n or -w")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "wait")
	return cmd
}

func (l *lockCommand) runLocked(cmd *cobra.Command, args []string) error {
	own, command := cli.SplitAtDash(cmd, args)
	if err := l.checkArguments(cmd, own); err != nil {
		return err
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	client, err := l.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(l.Streams, client) // releases
	ctx := cmd.Context()
	locker := l.newLocker(client)
	if err := l.PrepareCommand(ctx, client, locker.Path(), command); err != nil {
		return err
	}
	lease, err := l.acquireLock(withInheritedLocks(ctx, l.Streams), locker)
	l.notices.stop()
	if err != nil {
		return err
	}
	return l.useLease(ctx, lease)
}

// checkArguments checks flags and NAMEs before lockstep connects.
func (l *lockCommand) checkArguments(cmd *cobra.Command, names []string) error {
	if l.conflict < 0 || l.conflict > 255 {
		return cli.UsageError("-E %d is no exit code: it must be between 0 and 255", l.conflict)
	}
	return l.lockFlags.checkLockFlags(cmd, names)
}

// acquireLock gets the lock, as -n and -w say.
func (l *lockCommand) acquireLock(ctx context.Context, locker locks.Locker) (*locks.Lease, error) {
	if l.nonblock {
		lease, err := locker.TryLock(ctx)
		if errors.Is(err, locks.ErrNotAcquired) {
			return nil, l.notAcquiredError(ctx, err)
		}
		return lease, err
	}
	if l.wait == 0 {
		return locker.Lock(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(l.wait))
	defer cancel()
	lease, err := locker.Lock(limited)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, l.notAcquiredError(ctx, err)
	}
	return lease, err
}

// useLease runs the command under the lease, or holds it. The lease lasts longer than the time of
// --max-hold, so that no other process gets the lock while the command ends.
func (l *lockCommand) useLease(ctx context.Context, lease *locks.Lease) error {
	held := lease.Context()
	if l.maxHold > 0 {
		bounded, cancel := context.WithTimeoutCause(held, time.Duration(l.maxHold), locks.ErrMaxHold)
		defer cancel()
		held = bounded
	}
	revoked := l.printRevoked(lease)
	if len(l.Command) == 0 {
		return l.holdUntilSignal(ctx, lease, held, revoked)
	}
	l.End = revoked
	code, err := l.RunCommand(ctx, held, lease.Token(), inheritableLocks(lease))
	if errors.Is(err, procguard.ErrHoldLost) {
		return fmt.Errorf("lock %s: %w", l.Path, err)
	}
	if err != nil {
		return err
	}
	return cli.ExitSilently(code)
}

// printRevoked prints on standard error when others ask for the lock. It closes the channel then if
// the command is to end for that.
func (l *lockCommand) printRevoked(lease *locks.Lease) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		select {
		case <-lease.Context().Done():
		case <-lease.Revoked():
			if l.yield {
				l.PrintNotice("lock %s: others ask for it; lockstep ends the command, if there is one, and "+
					"releases the lock", l.Path)
				close(end)
			} else {
				l.PrintNotice("lock %s: others ask for it; lockstep keeps it, since --yield is not given", l.Path)
			}
		}
	}()
	return end
}

// holdUntilSignal holds the lock until a signal comes, or until it is to be released for others.
func (l *lockCommand) holdUntilSignal(ctx context.Context, lease *locks.Lease, held context.Context,
	revoked <-chan struct{}) error {
	what := hold.Holding{Path: l.Path, Token: lease.Token(), Session: lease.Session()}
	if err := cli.PrintResult(l.Out, l.JSON, what, what.Path,
		cli.NamedField{Name: "token", Value: what.Token}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-revoked:
		return nil
	case <-held.Done():
		return fmt.Errorf("lock %s: %w: %w", l.Path, procguard.ErrHoldLost, context.Cause(held))
	}
}

// notAcquiredError says who holds the locks, if that can be found out quickly.
func (l *lockCommand) notAcquiredError(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reason := fmt.Errorf("lock %s: %w", l.Path, locks.ErrNotAcquired)
	hint := "wait for it with -w DURATION, or without a limit: leave out -n and -w"
	if l.wait > 0 {
		reason = fmt.Errorf("%w within %v (-w)", reason, l.wait.AsDuration())
		hint = "without -w lockstep waits without a limit"
	}
	for _, path := range l.blockingPaths(err) {
		who := l.describeHolder(ctx, path)
		switch {
		case who == "":
		case len(l.paths) == 1:
			reason = fmt.Errorf("%w: %s", reason, who)
		default:
			reason = fmt.Errorf("%w\n  %s: %s", reason, path, who)
		}
	}
	return cli.ExitWith(l.conflict, reason, hint)
}

// blockingPaths is the path of the lock that was not obtained, or all paths if it is not known
// which.
func (l *lockCommand) blockingPaths(err error) []string {
	var at *framework.OpError
	if errors.As(err, &at) && slices.Contains(l.paths, at.Path) {
		return []string{at.Path}
	}
	return l.paths
}

// describeHolder says who holds a lock, or nothing.
func (l *lockCommand) describeHolder(ctx context.Context, path string) string {
	r, err := locks.Inspect(ctx, l.Client, path)
	if err != nil || len(r.Holders) == 0 {
		return ""
	}
	text := hold.HoldersText(r)
	if n := len(r.Waiters); n > 0 {
		text += fmt.Sprintf("; %d waiting", n)
	}
	return text
}
