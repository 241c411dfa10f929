package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
)

// lockCommand is the subcommand that holds a lock.
type lockCommand struct {
	connectionFlags
	commandRunner
	lockFlags
	maxHold  durationFlag
	nonblock bool
	yield    bool
	wait     durationFlag
	conflict int
}

func newLock() *cobra.Command {
	l := &lockCommand{}
	cmd := &cobra.Command{
		Use:   "lock NAME... [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock that one process in the whole cluster holds at a time.

With -s and -x a lock has readers, who hold it together, and writers, who hold it alone; with
--permits N so many hold it at a time. All who use a NAME must use it in the same way. Of
several NAMEs all locks are held together, or none; the order does not matter.

With --kazoo, locks of the Python library kazoo take part under its own names. Each of them must be
told to wait for this one: extra_lock_patterns=["lock-"] of a Lock; with -s and -x
["__WRIT__", "__READ__"] of a WriteLock and ["__WRIT__"] of a ReadLock. One that is not told holds
beside the others. All who use the NAME with this program give --kazoo.

Waiters are served in order. If the lock is lost while the command runs, because the
servers have not been reached for too long, the command's process group gets SIGTERM, and
SIGKILL --kill-after later, before anybody else can get the lock; the exit code is 75.

A lockstep lock within the command knows what is held around it, by LOCKSTEP_HELD_LOCKS in its
environment. When scripts wait for each other's locks like that, the youngest wait ends with
exit code 35 and names the locks. "lockstep locks --deadlocks" shows such scripts. With --deadlock
report the wait goes on and says so on standard error; with off it is left out.

Others may ask for the lock with "lockstep revoke", or with Curator's Revoker. That is said on
standard error, and the command goes on; with --yield it gets SIGTERM, and the lock is held until
it has ended.

Without a command the path and the fencing token are printed once the lock is held, and it
is held until a signal comes. "lockstep locks" lists who holds what.`,
		Example: `  lockstep lock deploy -- ./deploy.sh            wait as long as it takes
  lockstep lock deploy -n -- ./deploy.sh         exit with 1 if somebody holds it
  lockstep lock deploy -w 30 -- ./deploy.sh      exit with 1 after 30 seconds
  lockstep lock -s catalogue -- ./export.sh      beside others with -s, never beside one with -x
  lockstep lock --permits 3 gpu -- ./train.sh    three at a time
  lockstep lock db disk -- ./backup.sh           both locks, or none
  lockstep lock /apps/shop/lock                  hold a lock that a Java program uses`,
		Args: checkNames,
		RunE: withExitCodes(l.runLocked),
	}
	l.connectionFlags.addConnectionFlags(cmd)
	l.commandRunner.addRunnerFlags(cmd)
	l.lockFlags.addLockFlags(cmd)
	f := cmd.Flags()
	f.Var(&l.maxHold, "max-hold", "end the command, as if the lock was lost, when it has run for this long")
	f.BoolVar(&l.yield, "yield", false, "send SIGTERM to the command when others ask for the lock with lockstep revoke")
	f.BoolVarP(&l.nonblock, "nonblock", "n", false, "do not wait if somebody holds the lock or waits for it")
	f.VarP(&l.wait, "wait", "w", "wait no longer than this, counted from when there is a session; a bare number is seconds")
	f.IntVarP(&l.conflict, "conflict-exit-code", "E", exitNotObtained, "exit code when the lock is not obtained under -n or -w")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "wait")
	return cmd
}

func (l *lockCommand) runLocked(cmd *cobra.Command, args []string) error {
	own, command := splitAtDash(cmd, args)
	if err := l.checkArguments(cmd, own); err != nil {
		return err
	}
	if err := findCommand(command); err != nil {
		return err
	}
	client, err := l.connectClient(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client) // releases
	ctx := cmd.Context()
	locker := l.newLocker(client)
	if err := l.prepareCommand(ctx, client, locker.Path(), command); err != nil {
		return err
	}
	lease, err := l.acquireLock(withInheritedLocks(ctx), locker)
	if err != nil {
		return err
	}
	return l.useLease(ctx, lease)
}

// checkArguments refuses what cannot be asked for, before anything is asked.
func (l *lockCommand) checkArguments(cmd *cobra.Command, names []string) error {
	if l.conflict < 0 || l.conflict > 255 {
		return usageError("-E %d is no exit code: it must be between 0 and 255", l.conflict)
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
	patience, cancel := context.WithTimeout(ctx, time.Duration(l.wait))
	defer cancel()
	lease, err := locker.Lock(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, l.notAcquiredError(ctx, err)
	}
	return lease, err
}

// useLease runs the command under the lease, or holds it. The lease outlives the time that --max-hold gives, so
// that nobody else is let in while the command is being ended.
func (l *lockCommand) useLease(ctx context.Context, lease *locks.Lease) error {
	held := lease.Context()
	if l.maxHold > 0 {
		bounded, cancel := context.WithTimeoutCause(held, time.Duration(l.maxHold), locks.ErrMaxHold)
		defer cancel()
		held = bounded
	}
	revoked := l.tellRevoked(lease)
	if len(l.command) == 0 {
		return l.holdUntilSignal(ctx, lease, held, revoked)
	}
	l.end = revoked
	code, err := l.runCommand(ctx, commandHold{held, lease.Token()}, inheritableLocks(lease))
	if errors.Is(err, procguard.ErrHoldLost) {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if err != nil {
		return err
	}
	return exitSilently(code)
}

// tellRevoked says on standard error that others ask for the lock. The channel is closed then if the command is to end for that.
func (l *lockCommand) tellRevoked(lease *locks.Lease) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		select {
		case <-lease.Context().Done():
		case <-lease.Revoked():
			if l.yield {
				printNotice("lock %s: others ask for it; it is given up when the command has ended", l.path)
				close(end)
			} else {
				printNotice("lock %s: others ask for it; the command goes on, since --yield is not given", l.path)
			}
		}
	}()
	return end
}

// holdUntilSignal holds the lock until a signal comes, or it is to be given up for others.
func (l *lockCommand) holdUntilSignal(ctx context.Context, lease *locks.Lease, held context.Context, revoked <-chan struct{}) error {
	what := holdingJSON{Path: l.path, Token: lease.Token(), Session: locks.SessionID(lease.Session())}
	if err := printResult(os.Stdout, l.json, what, what.Path, what.Token); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-revoked:
		return nil
	case <-held.Done():
		return fmt.Errorf("lock %s: %w: %w", l.path, procguard.ErrHoldLost, context.Cause(held))
	}
}

// notAcquiredError says who has the locks instead, if that can be found out quickly.
func (l *lockCommand) notAcquiredError(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reason := fmt.Errorf("lock %s: %w", l.path, locks.ErrNotAcquired)
	hint := "wait for it with -w DURATION, or without -n and -w as long as it takes"
	if l.wait > 0 {
		reason = fmt.Errorf("%w within %v, the time that -w gives", reason, l.wait.asDuration())
		hint = "without -w lockstep waits as long as it takes"
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
	return &exitError{l.conflict, reason, hint}
}

// blockingPaths is the lock that was not obtained, or all if it is not known which.
func (l *lockCommand) blockingPaths(err error) []string {
	var at *framework.OpError
	if errors.As(err, &at) && slices.Contains(l.paths, at.Path) {
		return []string{at.Path}
	}
	return l.paths
}

// describeHolder says who holds a lock, or nothing.
func (l *lockCommand) describeHolder(ctx context.Context, path string) string {
	r, err := locks.Inspect(ctx, l.client, path)
	if err != nil || len(r.Holders) == 0 {
		return ""
	}
	first := r.Holders[0]
	text := fmt.Sprintf("%s asked for it at %s", ownerName(first), first.Since.Local().Format(time.DateTime))
	if more := len(r.Holders) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	if n := len(r.Waiters); n > 0 {
		text += fmt.Sprintf("; %d waiting", n)
	}
	return text
}
