package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // time zones on machines without them

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/scheduler"
)

// cronCommand is the subcommand that runs a command on a schedule.
type cronCommand struct {
	connectionFlags
	commandRunner
	policyFlags
	tz string

	schedule scheduler.Schedule
	last     atomic.Int64 // the exit code of a command that a signal has reached
}

func newCron() *cobra.Command {
	c := &cronCommand{}
	cmd := &cobra.Command{
		Use:   "cron NAME 'SPEC' [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a schedule, once in the whole cluster",
		Long: `Run a command once per tick of a schedule, however many processes run this same line.

SPEC has 5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first, or
is @hourly, @daily, @weekly, @monthly, @yearly or "@every 90s". One process leads and runs the
command; when it dies another takes over. A tick never runs twice; one that is not run is
recorded as missed, and why. Exit codes of the command are recorded, and the schedule goes on.
"lockstep jobs" shows and controls it, "lockstep runs NAME" what has run.

The schedule is stored under NAME. A process that is started with another one replaces it for
all, unless its --revision is lower: among equals, the one that was started last counts. Each
process whose schedule is not the stored one warns, and so does each whose command is another
than that of the process that was started last: the command's name and a number that stands for
its arguments are stored. The other flags are each process's own.`,
		Example: `  lockstep cron report '0 3 * * *' --tz Europe/Berlin --deadline 6h -- ./report.sh
  lockstep cron poll '*/10 * * * * *' --timeout 8s -- curl -fsS https://example.com/poll
  lockstep cron bill '@daily' --misfire all --deadline 72h --retries 3 -- ./bill.sh
  lockstep cron tidy '@every 5m' --jitter 1m -- sh -c 'tidy --until "$LOCKSTEP_TICK"'`,
		Args: checkNameAnd(false, "SPEC"),
		RunE: withExitCodes(c.runSchedule),
	}
	c.connectionFlags.addConnectionFlags(cmd)
	c.commandRunner.addRunnerFlags(cmd)
	c.policyFlags.addPolicyFlags(cmd)
	cmd.Flags().StringVar(&c.tz, "tz", "UTC", "time zone that SPEC is read in, such as Europe/Berlin")
	return cmd
}

func (c *cronCommand) runSchedule(cmd *cobra.Command, args []string) error {
	own, command := splitAtDash(cmd, args)
	path, err := jobPath(own[0])
	if err != nil {
		return err
	}
	if err := c.parseSchedule(own[1]); err != nil {
		return err
	}
	if err := findCommand(command); err != nil {
		return err
	}
	ctx := cmd.Context()
	client, err := c.connectClient(cmd)
	if err != nil {
		return endQuietlyOnSignal(ctx, err)
	}
	defer hangUp(client)
	if err := c.prepareCommand(ctx, client, path, command); err != nil {
		return endQuietlyOnSignal(ctx, err)
	}
	if err := endQuietlyOnSignal(ctx, c.runScheduler(ctx)); err != nil {
		return err
	}
	return exitSilently(int(c.last.Load()))
}

// parseSchedule reads the schedule and its zone.
func (c *cronCommand) parseSchedule(spec string) error {
	zone, err := time.LoadLocation(c.tz)
	if err != nil || c.tz == "" {
		return usageError("--tz %q is no time zone: want a name such as Europe/Berlin", c.tz)
	}
	c.schedule, err = scheduler.ParseSpec(spec, zone)
	return err
}

// runScheduler schedules until a signal comes, and then waits for the command, which the signal was passed to.
func (c *cronCommand) runScheduler(ctx context.Context) error {
	_, name := znode.Split(c.path)
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
	s := scheduler.New(c.client, c.path, scheduler.WithDrain(math.MaxInt64), scheduler.WithObserver(observe))
	stored.jobs = s
	job := c.newJob(name, c.schedule)
	job.Description = describeCommand(c.command)
	job.Run = func(held context.Context, run scheduler.Run) error { return c.runTick(ctx, held, run) }
	if err := s.Add(job); err != nil {
		return err
	}
	_ = stored.warnIfChanged(ctx) // Run says what is wrong
	background.Go(func() { stored.followChanges(following) })
	stopTelling := tellStandby(following, c.client, znode.Join(c.path, "election"), "runs "+c.path)
	defer stopTelling()
	err := s.Run(ctx)
	stop()
	background.Wait()
	return err
}

// describeCommand names a command for others without showing its arguments, which may be secret: the number distinguishes command lines.
func describeCommand(command []string) string {
	name := []rune(strings.ToValidUTF8(command[0], "?"))
	if len(name) > 60 {
		name = append([]rune("…"), name[len(name)-59:]...)
	}
	sum := sha256.Sum256([]byte(strings.Join(command, "\x00")))
	return fmt.Sprintf("%s #%x", string(name), sum[:4])
}

// runTick runs the command for one tick.
func (c *cronCommand) runTick(ctx, held context.Context, run scheduler.Run) error {
	code, err := c.runCommand(ctx, commandHold{held, run.Token}, "LOCKSTEP_TICK="+run.Tick.UTC().Format(time.RFC3339), "LOCKSTEP_ATTEMPT="+strconv.Itoa(run.Attempt))
	if c.signalled.Load() && (err == nil || code != 0) {
		c.last.Store(int64(code))
	}
	if err != nil {
		return err
	}
	if code != 0 && c.signalled.Load() {
		return fmt.Errorf("exit code %d after a signal: %w", code, scheduler.ErrDrained)
	}
	return exitSilently(code)
}

// printEvent prints the events that the client does not log.
func (c *cronCommand) printEvent(e scheduler.Event) {
	switch e.Kind {
	case scheduler.EventFollowing:
		printNotice("running %s here no more", c.path)
	case scheduler.EventRetrying:
		printWarning("attempt %d for the tick of %s: %v; trying again", e.Run.Attempt, e.Run.Tick.Format(time.RFC3339), e.Err)
	case scheduler.EventRemoved:
		printWarning("%s was removed: nothing is run here any more", c.path)
	case scheduler.EventMissed:
		printWarning("%d missed from %s to %s: %s", e.Gap.Count, e.Gap.From.Format(time.RFC3339), e.Gap.To.Format(time.RFC3339), e.Gap.Reason)
	}
}
