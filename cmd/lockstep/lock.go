package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/child"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
)

// lock is the subcommand that holds a lock.
type lock struct {
	connection
	runner
	nonblock bool
	wait     duration
	conflict int
}

func newLock() *cobra.Command {
	l := &lock{}
	cmd := &cobra.Command{
		Use:   "lock NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock that one process in the whole cluster holds at a time.

Waiters are served in order. If the lock is lost while the command runs, because the
servers have not been reached for too long, the command's process group gets SIGTERM, and
SIGKILL --kill-after later, before anybody else can get the lock; the exit code is 75.

Without a command the path and the fencing token are printed once the lock is held, and it
is held until a signal comes.`,
		Example: `  lockstep lock deploy -- ./deploy.sh            wait as long as it takes
  lockstep lock deploy -n -- ./deploy.sh         exit with 1 if somebody holds it
  lockstep lock deploy -w 30 -- ./deploy.sh      exit with 1 after 30 seconds
  lockstep lock /apps/shop/lock                  hold a lock that a Java program uses`,
		Args: nameAnd(true),
		RunE: coded(l.main),
	}
	l.connection.register(cmd)
	l.runner.register(cmd)
	f := cmd.Flags()
	f.BoolVarP(&l.nonblock, "nonblock", "n", false, "do not wait if somebody holds the lock or waits for it")
	f.VarP(&l.wait, "wait", "w", "wait no longer than this, counted from when there is a session; a bare number is seconds")
	f.IntVarP(&l.conflict, "conflict-exit-code", "E", exitNotObtained, "exit code when the lock is not obtained under -n or -w")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "wait")
	return cmd
}

func (l *lock) main(cmd *cobra.Command, args []string) error {
	own, command := split(cmd, args)
	path, err := pathOf("locks", own[0])
	if err != nil {
		return err
	}
	if l.conflict < 0 || l.conflict > 255 {
		return usage("-E %d is no exit code: it must be between 0 and 255", l.conflict)
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
	if err := l.prepare(ctx, client, path, command); err != nil {
		return err
	}
	lease, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return l.hold(ctx, lease)
	}
	code, err := l.run(ctx, grant{lease.Context(), lease.Token()})
	if errors.Is(err, child.ErrHoldLost) {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if err != nil {
		return err
	}
	return silent(code)
}

// acquire gets the lock, as -n and -w say.
func (l *lock) acquire(ctx context.Context) (*locks.Lease, error) {
	mutex := locks.NewMutex(l.client, l.path, locks.WithQueued(l.queued))
	if l.nonblock {
		lease, err := mutex.TryLock(ctx)
		if errors.Is(err, locks.ErrNotAcquired) {
			return nil, l.refuse(ctx, mutex)
		}
		return lease, err
	}
	if l.wait == 0 {
		return mutex.Lock(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, time.Duration(l.wait))
	defer cancel()
	lease, err := mutex.Lock(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, l.refuse(ctx, mutex)
	}
	return lease, err
}

// queued tells who waits at a terminal why nothing happens.
func (l *lock) queued(ahead int) {
	if terminal.Is(os.Stderr) {
		say("waiting for %s, %d ahead", l.path, ahead)
	}
}

// refuse says who has the lock instead, if that can be found out quickly.
func (l *lock) refuse(ctx context.Context, mutex *locks.Mutex) error {
	reason := fmt.Errorf("lock %s: %w", l.path, locks.ErrNotAcquired)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if holders, err := mutex.Contenders(ctx); err == nil && len(holders) > 0 {
		if o, ok := locks.ParseOwner(holders[0].Data); ok {
			reason = fmt.Errorf("%w: %s asked for it at %s", reason, o.Owner, o.Since.Local().Format(time.DateTime))
		}
	}
	return &exit{l.conflict, reason, "wait for it with -w DURATION, or without -n and -w as long as it takes"}
}

// hold holds the lock until a signal comes.
func (l *lock) hold(ctx context.Context, lease *locks.Lease) error {
	held := holding{Path: l.path, Token: lease.Token(), Session: session(lease.Session())}
	if err := put(os.Stdout, l.json, held, held.Path, held.Token); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-lease.Context().Done():
		return fmt.Errorf("lock %s: %w: %w", l.path, child.ErrHoldLost, context.Cause(lease.Context()))
	}
}

// holding is what is printed once something is held.
type holding struct {
	Path    string  `json:"path"`
	ID      string  `json:"id,omitempty"`
	Token   int64   `json:"token"`
	Session session `json:"session"`
}

// session is a session's number, which ZooKeeper's own tools show in hexadecimal; as a JSON number it
// would be rounded.
type session int64

func (s session) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(s)), nil }
