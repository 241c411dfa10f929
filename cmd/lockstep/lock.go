package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
)

// lock is the subcommand that holds a lock.
type lock struct {
	connection
	runner
	form
	maxHold  duration
	nonblock bool
	wait     duration
	conflict int
}

func newLock() *cobra.Command {
	l := &lock{}
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

Without a command the path and the fencing token are printed once the lock is held, and it
is held until a signal comes. "lockstep locks" lists who holds what.`,
		Example: `  lockstep lock deploy -- ./deploy.sh            wait as long as it takes
  lockstep lock deploy -n -- ./deploy.sh         exit with 1 if somebody holds it
  lockstep lock deploy -w 30 -- ./deploy.sh      exit with 1 after 30 seconds
  lockstep lock -s catalogue -- ./export.sh      beside others with -s, never beside one with -x
  lockstep lock --permits 3 gpu -- ./train.sh    three at a time
  lockstep lock db disk -- ./backup.sh           both locks, or none
  lockstep lock /apps/shop/lock                  hold a lock that a Java program uses`,
		Args: names,
		RunE: coded(l.main),
	}
	l.connection.register(cmd)
	l.runner.register(cmd)
	l.form.register(cmd)
	f := cmd.Flags()
	f.Var(&l.maxHold, "max-hold", "end the command, as if the lock was lost, when it has run for this long")
	f.BoolVarP(&l.nonblock, "nonblock", "n", false, "do not wait if somebody holds the lock or waits for it")
	f.VarP(&l.wait, "wait", "w", "wait no longer than this, counted from when there is a session; a bare number is seconds")
	f.IntVarP(&l.conflict, "conflict-exit-code", "E", exitNotObtained, "exit code when the lock is not obtained under -n or -w")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "wait")
	return cmd
}

func (l *lock) main(cmd *cobra.Command, args []string) error {
	own, command := split(cmd, args)
	if err := l.check(cmd, own); err != nil {
		return err
	}
	if err := find(command); err != nil {
		return err
	}
	client, err := l.connect(cmd)
	if err != nil {
		return err
	}
	defer hangUp(client) // releases
	ctx := cmd.Context()
	locker := l.locker(client)
	if err := l.prepare(ctx, client, locker.Path(), command); err != nil {
		return err
	}
	lease, err := l.acquire(ctx, locker)
	if err != nil {
		return err
	}
	return l.use(ctx, lease)
}

// check refuses what cannot be asked for, before anything is asked.
func (l *lock) check(cmd *cobra.Command, names []string) error {
	if l.conflict < 0 || l.conflict > 255 {
		return usage("-E %d is no exit code: it must be between 0 and 255", l.conflict)
	}
	return l.form.check(cmd, names)
}

// acquire gets the lock, as -n and -w say.
func (l *lock) acquire(ctx context.Context, locker locks.Locker) (*locks.Lease, error) {
	if l.nonblock {
		lease, err := locker.TryLock(ctx)
		if errors.Is(err, locks.ErrNotAcquired) {
			return nil, l.refuse(ctx, err)
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
		return nil, l.refuse(ctx, err)
	}
	return lease, err
}

// use runs the command under the lease, or holds it. The lease outlives the time that --max-hold gives, so
// that nobody else is let in while the command is being ended.
func (l *lock) use(ctx context.Context, lease *locks.Lease) error {
	held := lease.Context()
	if l.maxHold > 0 {
		bounded, cancel := context.WithTimeoutCause(held, time.Duration(l.maxHold), locks.ErrMaxHold)
		defer cancel()
		held = bounded
	}
	if len(l.command) == 0 {
		return l.hold(ctx, lease, held)
	}
	code, err := l.run(ctx, grant{held, lease.Token()})
	if errors.Is(err, procguard.ErrHoldLost) {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if err != nil {
		return err
	}
	return silent(code)
}

// hold holds the lock until a signal comes.
func (l *lock) hold(ctx context.Context, lease *locks.Lease, held context.Context) error {
	what := holding{Path: l.path, Token: lease.Token(), Session: locks.SessionID(lease.Session())}
	if err := put(os.Stdout, l.json, what, what.Path, what.Token); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-held.Done():
		return fmt.Errorf("lock %s: %w: %w", l.path, procguard.ErrHoldLost, context.Cause(held))
	}
}

// holding is what is printed once something is held.
type holding struct {
	Path    string          `json:"path"`
	ID      string          `json:"id,omitempty"`
	Token   int64           `json:"token"`
	Session locks.SessionID `json:"session"`
}
