// Package cron has the subcommand that runs scheduled commands, and those that show and control
// jobs.
package cron

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/scheduler"
)

// cronCommand is the subcommand that runs a command on a schedule.
type cronCommand struct {
	cli.ConnectionFlags
	hold.Runner
	policyFlags
	tz string

	schedule scheduler.Schedule
	last     atomic.Int64 // the exit code of a command that got a signal
}

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newCron(streams), newJobs(streams), newRuns(streams)}
}

func newCron(streams *cli.Streams) *cobra.Command {
	c := &cronCommand{}
	cmd := &cobra.Command{
		Use:   "cron NAME 'SPEC' [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a schedule, once in the whole cluster",
		Long: `Run a command once per tick of a schedule, even if many processes run this same line.

SPEC has 5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first, or
is @hourly, @daily, @weekly, @monthly, @yearly, "@every 90s" or, for one run only,
"@at 2026-12-24T18:00:00Z". One process leads and runs the command; when it dies, another takes
over. A tick runs once at most, unless --attempts or --at-least-once is given. A tick that does not
run is recorded as missed, with the reason. The command's exit code is recorded, and the schedule
goes on. "lockstep jobs" shows and controls the job, "lockstep runs NAME" shows what has run.

The schedule is stored under NAME. A process that is started with another schedule replaces it for
all, unless its --revision is lower; among equal revisions the process that was started last wins.
A process warns if its schedule is not the stored one. It also warns if the process that was started
last has another command: the command's name and a hash of its arguments are stored. The other flags
apply to their own process only.`,
		Example: `  lockstep cron report '0 3 * * *' --tz Europe/Berlin --deadline 6h -- ./report.sh
  lockstep cron poll '*/10 * * * * *' --timeout 8s -- curl -fsS https://example.com/poll
  lockstep cron bill '@daily' --misfire all --deadline 72h --attempts 4 -- ./bill.sh
  lockstep cron tidy '@every 5m' --jitter 1m -- sh -c 'tidy --until "$LOCKSTEP_TICK"'`,
		Args: cli.CheckNameAnd(false, "SPEC"),
		RunE: cli.WithExitCodes(c.runSchedule),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	c.Runner.AddFlags(streams, cmd)
	c.policyFlags.addPolicyFlags(cmd)
	cmd.Flags().StringVar(&c.tz, "tz", "UTC", "time zone of SPEC, such as Europe/Berlin")
	return cmd
}

func (c *cronCommand) runSchedule(cmd *cobra.Command, args []string) error {
	c.EndsByTerminal = true
	own, command := cli.SplitAtDash(cmd, args)
	path, err := jobPath(own[0])
	if err != nil {
		return err
	}
	if err := c.parseSchedule(own[1]); err != nil {
		return err
	}
	if c.attempts < 1 {
		return cli.UsageError("--attempts %d: want at least 1", c.attempts)
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	ctx := cmd.Context()
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return cli.EndQuietlyOnSignal(ctx, err)
	}
	defer cli.CloseClient(c.Streams, client)
	if err := c.PrepareCommand(ctx, client, path, command); err != nil {
		return cli.EndQuietlyOnSignal(ctx, err)
	}
	if err := cli.EndQuietlyOnSignal(ctx, c.runScheduler(ctx)); err != nil {
		return err
	}
	return cli.ExitSilently(int(c.last.Load()))
}

// parseSchedule reads the schedule and its zone.
func (c *cronCommand) parseSchedule(spec string) error {
	zone, err := time.LoadLocation(c.tz)
	if err != nil || c.tz == "" {
		return cli.UsageError("--tz %q is no time zone: want a name such as Europe/Berlin", c.tz)
	}
	c.schedule, err = scheduler.ParseSpec(spec, zone)
	return err
}

// runScheduler runs the schedule until a signal, and then waits for the command, which gets the
// signal, too.
func (c *cronCommand) runScheduler(ctx context.Context) error {
	_, name := znode.Split(c.Path)
	stored := &storedSchedule{cron: c, job: name}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	observe := func(e scheduler.Event) {
		if e.Kind == scheduler.EventLeading {
			background.Go(func() { stored.printNextTick(following, e.At) })
		}
		c.printEvent(e)
	}
	s := scheduler.New(c.Client, c.Path, scheduler.WithGrace(math.MaxInt64), scheduler.WithOnEvent(observe))
	stored.jobs = s
	job := c.newJob(name, c.schedule)
	stored.command = describeCommand(name, c.Command)
	job.Description = stored.command
	job.Run = func(held context.Context, run scheduler.Run) error { return c.runTick(ctx, held, run) }
	if err := s.Add(job); err != nil {
		return err
	}
	_ = stored.warnIfChanged(ctx) // Run reports the error
	background.Go(func() { stored.followChanges(following) })
	stopPrinting := hold.PrintLeaderChanges(following, c.Streams, c.Client, joblayout.Scheduler(c.Path).Election(),
		"runs "+c.Path, 0)
	defer stopPrinting()
	err := s.Run(ctx)
	stop()
	background.Wait()
	return err
}

// describeCommand names a job's command for other processes without its arguments, which may be
// secret: a hash distinguishes command lines. Everybody can read it, so it must not confirm
// guesses: one in 65,536 command lines has the same one, each guess takes long, and those for one
// job are worth nothing for another.
func describeCommand(job string, command []string) string {
	name := []rune(strings.ToValidUTF8(command[0], "?"))
	if len(name) > 60 {
		name = append([]rune("…"), name[len(name)-59:]...)
	}
	sum, err := pbkdf2.Key(sha256.New, strings.Join(command, "\x00"), []byte("lockstep cron of "+job),
		100_000, sha256.Size)
	if err != nil {
		panic("lockstep: a hash cannot be made: " + err.Error()) // its lengths are right
	}
	return fmt.Sprintf("%s #%x", string(name), sum[:2])
}

// runTick runs the command for one tick.
func (c *cronCommand) runTick(ctx, held context.Context, run scheduler.Run) error {
	code, err := c.RunCommand(ctx, held, run.Token, "LOCKSTEP_TICK="+run.Tick.UTC().Format(time.RFC3339),
		"LOCKSTEP_ATTEMPT="+strconv.Itoa(run.Attempt))
	if c.Signalled.Load() && (err == nil || code != 0) {
		c.last.Store(int64(code))
	}
	if err != nil {
		return err
	}
	if code != 0 && c.Signalled.Load() {
		return fmt.Errorf("exit code %d after a signal: %w", code, framework.ErrDraining)
	}
	return cli.ExitSilently(code)
}

// printEvent prints the events that the client does not log.
func (c *cronCommand) printEvent(e scheduler.Event) {
	switch e.Kind {
	case scheduler.EventFollowing:
		c.PrintNotice("this process runs %s no longer", c.Path)
	case scheduler.EventRetrying:
		c.PrintWarning("attempt %d for the tick of %s: %v; trying again", e.Run.Attempt,
			e.Run.Tick.Format(time.RFC3339),
			e.Err)
	case scheduler.EventRemoved:
		c.PrintWarning("%s was removed: this process runs it no longer", c.Path)
	case scheduler.EventMissed:
		c.PrintWarning("ticks missed: %d, from %s to %s: %s", e.Gap.Count, e.Gap.From.Format(time.RFC3339),
			e.Gap.To.Format(time.RFC3339), e.Gap.Reason)
	}
}
