// Package hold has what the subcommands share that run a command while something is held.
package hold

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/procguard"
)

const maxKillAfter = 5 * time.Second

// Runner runs a command while something is held.
type Runner struct {
	streams    *cli.Streams
	killAfter  cli.DurationFlag
	noWatchdog bool
	keepAuth   KeepAuthFlag

	Client  *framework.Client
	Path    string
	Command []string
	Stdin   *os.File        // the command's, or nil for streams.In
	End     <-chan struct{} // closed when the command is to be sent SIGTERM, or nil

	EndsByTerminal bool // the program ends when a key of the terminal has ended the command

	Signalled atomic.Bool // one of endingSignals has come while a command ran
}

func (r *Runner) AddFlags(streams *cli.Streams, cmd *cobra.Command) {
	r.streams = streams
	cmd.Flags().Var(&r.killAfter, "kill-after",
		"time from SIGTERM to SIGKILL when the hold is lost (default a quarter of the session timeout, at most 5s)")
	cmd.Flags().BoolVar(&r.noWatchdog, cli.NoWatchdogFlag, false,
		"start no second process: a kill costs others the session timeout, and a stopped lockstep does not end "+
			"its command")
	r.keepAuth.AddTo(cmd)
}

// KeepAuthFlag says whether a command gets the credentials that this program has in its
// environment. A command that calls lockstep itself needs them.
type KeepAuthFlag bool

func (k *KeepAuthFlag) AddTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar((*bool)(k), "keep-auth", false,
		"leave "+framework.EnvAuth+" in the environment of the command, for one that uses lockstep itself")
}

// Withheld are the variables that the command does not get.
func (k KeepAuthFlag) Withheld() []string {
	if k {
		return nil
	}
	return []string{framework.EnvAuth}
}

// PrepareCommand keeps the command, and checks --kill-after before lockstep acquires anything.
func (r *Runner) PrepareCommand(ctx context.Context, client *framework.Client, path string,
	command []string) error {
	r.Client, r.Path, r.Command = client, path, command
	s, err := client.Session(ctx)
	if err != nil {
		return err
	}
	_, err = r.killGrace(s.Timeout())
	return err
}

// FindCommand returns an error if the program of a command cannot be found or run. An empty command
// line is no error.
func FindCommand(command []string) error {
	if len(command) == 0 {
		return nil
	}
	_, err := procguard.Find(command[0])
	return err
}

// killGrace is the time between SIGTERM and SIGKILL, under a session timeout of t.
func (r *Runner) killGrace(t time.Duration) (time.Duration, error) {
	if r.killAfter == 0 {
		return min(maxKillAfter, t/4), nil
	}
	if d := time.Duration(r.killAfter); d < t/3 {
		return d, nil
	}
	return 0,
		cli.UsageError("--kill-after %v is too long for the session timeout of %v that the servers have granted: "+
			"it must be less than a third of that, %v; ask for a longer one with --session-timeout",
			time.Duration(r.killAfter), t, (t / 3).Truncate(time.Millisecond))
}

// passSignals returns the signals that are to be passed on, until stop is called. It records a
// signal that ends this program before it passes it on.
func (r *Runner) passSignals() (passed <-chan os.Signal, stop func()) {
	received, pass := make(chan os.Signal, 8), make(chan os.Signal, 8)
	ending := cli.EndingSignals()
	signal.Notify(received, slices.Concat(ending, cli.NoticedSignals())...)
	go func() {
		end := r.End
		for {
			var s os.Signal
			var more bool
			select {
			case s, more = <-received:
				if !more {
					return
				}
			case <-end:
				s, end = syscall.SIGTERM, nil
			}
			if slices.Contains(ending, s) {
				r.Signalled.Store(true)
			}
			select {
			case pass <- s:
			default: // no command takes signals any more
			}
		}
	}()
	return pass, func() {
		signal.Stop(received)
		close(received)
	}
}

// RunCommand runs the command under a grant and returns its exit code. held is done when the grant
// has ended. The error wraps procguard.ErrHoldLost if the grant was lost first; the command has
// ended then.
func (r *Runner) RunCommand(ctx, held context.Context, token int64, env ...string) (int, error) {
	signals, stop := r.passSignals()
	defer stop()
	if cli.EndedBySignal(ctx) { // later ones are passed on
		return 0, context.Cause(ctx)
	}
	s, err := r.Client.Session(held)
	if err != nil || held.Err() != nil {
		return 0, fmt.Errorf("%w: %w", procguard.ErrHoldLost, context.Cause(held))
	}
	grace, err := r.killGrace(s.Timeout())
	if err != nil {
		return 0, err
	}
	guard := func() procguard.Guard { return s.GuardCommand() }
	c := procguard.Command{Args: r.Command, Stdin: cmp.Or(r.Stdin, r.streams.In), Stdout: r.streams.Out,
		Stderr: r.streams.Err, KillAfter: grace, Signals: signals, Guard: guard,
		Withheld: r.keepAuth.Withheld(), Env: append(env,
			"LOCKSTEP_TOKEN="+strconv.FormatInt(token, 10), "LOCKSTEP_PATH="+r.Path)}
	if r.EndsByTerminal {
		c.Interrupted = func(s os.Signal) {
			r.Signalled.Store(slices.Contains(cli.EndingSignals(), s))
			cli.RaiseAndWait(ctx, s)
		}
	}
	return c.Run(procguard.Hold{Context: held, Remaining: s.LeaseRemaining})
}
