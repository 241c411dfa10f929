package lock

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
)

// lockFlags say which locks to acquire, and of what kind they are.
type lockFlags struct {
	shared, exclusive bool
	permits, count    int
	kazoo             bool
	deadlock          string
	paths             []string
	notices           waitNotices
}

func (o *lockFlags) addLockFlags(streams *cli.Streams, cmd *cobra.Command) {
	o.notices.streams = streams
	f := cmd.Flags()
	f.BoolVarP(&o.shared, "shared", "s", false, "hold the lock together with others that use -s")
	f.BoolVarP(&o.exclusive, "exclusive", "x", false, "hold the lock alone, where others use -s or -x")
	f.IntVar(&o.permits, "permits", 0, "let this many hold the lock at a time; all must give the same number")
	f.IntVar(&o.count, "count", 1, "hold this many of the permits, all or none")
	f.BoolVar(&o.kazoo, "kazoo", false,
		"let kazoo's own locks at NAME take part; configure them with extra_lock_patterns")
	f.StringVar(&o.deadlock, "deadlock", "fail", "what to do in a deadlock: fail, report (print it and wait on) or off")
	cli.OfferValues(cmd, "deadlock", slices.Sorted(maps.Keys(deadlockModes))...)
	cmd.MarkFlagsMutuallyExclusive("shared", "exclusive", "permits")
	cmd.MarkFlagsMutuallyExclusive("kazoo", "permits")
}

// deadlockModes are the values of --deadlock.
var deadlockModes = map[string]locks.DeadlockMode{"fail": locks.DeadlockFail, "report": locks.DeadlockReport,
	"off": locks.DeadlockOff}

// checkLockFlags returns an error if flags or NAMEs are bad, and keeps the paths.
func (o *lockFlags) checkLockFlags(cmd *cobra.Command, names []string) error {
	switch flags := cmd.Flags(); {
	case flags.Changed("permits") && o.permits < 1:
		return cli.UsageError("--permits %d: it must be 1 or more", o.permits)
	case flags.Changed("count") && o.permits == 0:
		return cli.UsageError("--count needs --permits")
	case o.count < 1 || o.permits > 0 && o.count > o.permits:
		return cli.UsageError("--count %d: it must be between 1 and %d, the number of --permits", o.count, o.permits)
	}
	if _, ok := deadlockModes[o.deadlock]; !ok {
		return cli.UsageError("--deadlock %q: it must be fail, report or off", o.deadlock)
	}
	seen := map[string]bool{}
	for _, name := range names {
		path, err := cli.PathOf("locks", name)
		if err != nil {
			return err
		}
		if seen[path] {
			return cli.UsageError("the NAME %q is given twice: lockstep would wait for itself", name)
		}
		seen[path] = true
		o.paths = append(o.paths, path)
	}
	return nil
}

// newLocker makes the lock.
func (o *lockFlags) newLocker(client *framework.Client) locks.Locker {
	all := make([]locks.Locker, len(o.paths))
	for i, path := range o.paths {
		all[i] = o.newSingleLock(client, path)
	}
	if len(all) == 1 {
		return all[0]
	}
	return locks.NewMultiLock(all...)
}

// newSingleLock makes the lock at one path.
func (o *lockFlags) newSingleLock(client *framework.Client, path string) locks.Locker {
	onWait := locks.WithOnWait(func(ahead int) { o.notices.print(client, path, ahead) })
	onDeadlock := locks.WithDeadlockMode(deadlockModes[o.deadlock])
	var kazoo interface { // nil: the lock ignores it
		locks.MutexOption
		locks.RWLockOption
	}
	if o.kazoo {
		kazoo = locks.WithKazoo()
	}
	switch {
	case o.permits > 0:
		return locks.NewSemaphore(client, path, o.permits, onWait, onDeadlock).Permits(o.count)
	case o.shared:
		return locks.NewRWLock(client, path, onWait, onDeadlock, kazoo).RLocker()
	case o.exclusive:
		return locks.NewRWLock(client, path, onWait, onDeadlock, kazoo)
	}
	return locks.NewMutex(client, path, onWait, onDeadlock, kazoo)
}

// waitNotices prints to a terminal what a lock waits for. It looks up the holder meanwhile, and
// prints nothing that is out of date by then.
type waitNotices struct {
	streams *cli.Streams
	mu      sync.Mutex
	cancel  context.CancelFunc // of the last lookup
}

// print prints a notice in the background, in place of one that was not printed yet.
func (w *waitNotices) print(client *framework.Client, path string, ahead int) {
	if !terminal.Is(w.streams.Err) {
		return
	}
	w.stop()
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	go func() {
		text := hold.WaitingText(ctx, client, path, ahead)
		if ctx.Err() == nil { // without the mutex: a terminal that is stopped must not stop the caller of stop
			w.streams.PrintNotice("%s", text)
		}
	}()
}

// stop ends the lookup under way. Its notice is not printed afterwards, unless that has begun.
func (w *waitNotices) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
}
