package check

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/monitor"
)

const (
	monitorsDir   = "/lockstep/monitors"
	eventKill     = 2 * time.Second // between SIGTERM and SIGKILL
	maxEnvValue   = 4 << 10
	maxEventsSeen = 4096
)

// monitorCommand is the subcommand that reports when problems begin and end.
type monitorCommand struct {
	cli.ConnectionFlags
	path         string
	onEvent      string
	timeout      cli.DurationFlag
	interval     cli.DurationFlag
	begin, end   int
	longHold     cli.DurationFlag
	growthScans  int
	growthItems  int
	thresholds   thresholdFlags
	noWatchdog   bool
	keepAuth     hold.KeepAuthFlag
	printed      map[string]bool
	endWithError func(error) // ends the program, since an event cannot be printed
}

func newMonitor(streams *cli.Streams) *cobra.Command {
	c := &monitorCommand{timeout: cli.DurationFlag(monitor.DefaultEventTimeout),
		interval: cli.DurationFlag(30 * time.Second),
		longHold: cli.DurationFlag(5 * time.Minute),
		printed:  map[string]bool{}}
	cmd := &cobra.Command{
		Use:   "monitor [ROOT] [flags]",
		Short: "Report when problems with locks, jobs, queues and workflows begin and end",
		Long: `Scan all locks, jobs, queues and workflows below a path (default /, which is --root) at an interval, and
report each problem once when it begins and once when it ends. A line has the time, begins or ends,
the path, the problem and a text. Start it on several machines: one scans, the others stand by, and
the next one goes on where the one before has stopped. It runs until a signal comes.

A problem begins after --begin-after scans in a row with it, and ends after --end-after scans without
it. The path need not exist yet: if nothing is below it when a monitor begins to scan, a line on its
standard error says so. Problems, for --without:
` + problemList() + `
With --on-event lockstep runs a program for each event, one at a time, for --on-event-timeout at most.
The program gets the event as a line of JSON on its standard input, and in its environment
LOCKSTEP_EVENT (begins or ends), LOCKSTEP_EVENT_ID (the same for both), LOCKSTEP_PROBLEM,
LOCKSTEP_PATH, LOCKSTEP_TEXT and LOCKSTEP_LASTED (seconds). Unprintable characters are escaped in all of
them. If the program fails, lockstep runs it again after the next scans, three times in all. So the
program may get an event twice.

lockstep stores only its findings and the election of the one that scans, below ` + monitorsDir + `. Use
other means to notice that no monitor scans, such as the metric lockstep.monitor.up of a program with
package monitor.`,
		Example: `  lockstep monitor
  lockstep monitor /apps --on-event ./page.sh --waiters 50
  lockstep monitor --json --without 'dead letters' --hold 1h`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(c.watchOver),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	f := cmd.Flags()
	f.StringVar(&c.path, "path", "", "where the monitors of this ROOT elect the one that scans (default below "+
		monitorsDir+")")
	f.StringVar(&c.onEvent, "on-event", "", "run this program for each event")
	f.Var(&c.timeout, "on-event-timeout", "stop the program of --on-event after this time")
	f.Var(&c.interval, "interval", "time from the start of a scan to the start of the next")
	f.IntVar(&c.begin, "begin-after", 2, "a problem begins after so many scans in a row with it")
	f.IntVar(&c.end, "end-after", 2, "a problem ends after so many scans in a row without it")
	f.Var(&c.longHold, "hold", "a lock that is held for longer while others wait is a finding")
	f.IntVar(&c.growthScans, "growth-scans", 10,
		"a queue that has grown at so many scans in a row, and has --growth-items, is a finding")
	f.IntVar(&c.growthItems, "growth-items", 100, "how many items such a queue has at least")
	f.BoolVar(&c.noWatchdog, cli.NoWatchdogFlag, false,
		"start no second process that closes the session if this one is killed; others then wait for the "+
			"session timeout")
	cli.OfferFiles(cmd, "on-event")
	c.thresholds.addTo(cmd)
	c.keepAuth.AddTo(cmd)
	return cmd
}

// problemList returns the problems in lines of 90 letters at most.
func problemList() string {
	var b strings.Builder
	line := " "
	for i, p := range moduleonly.MonitorProblems {
		word := " " + p
		if i < len(moduleonly.MonitorProblems)-1 {
			word += ","
		}
		if len(line)+len(word) > 90 {
			b.WriteString(line + "\n")
			line = " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

// monitorPath returns the path of the monitors of a root. Different roots have different paths.
func monitorPath(root string) string {
	return monitorsDir + "/" + strings.NewReplacer("%", "%25", "~", "%7E", "/", "~").Replace(root)
}

func (c *monitorCommand) options() ([]monitor.Option, error) {
	thresholds, err := c.thresholds.options()
	return append(thresholds, monitor.WithInterval(time.Duration(c.interval)), monitor.WithHysteresis(c.begin, c.end),
		monitor.WithLongHold(time.Duration(c.longHold)),
		monitor.WithGrowth(c.growthScans, c.growthItems),
		monitor.WithOnEvent(time.Duration(c.timeout)+2*eventKill, c.handleEvent)), err
}

func (c *monitorCommand) watchOver(cmd *cobra.Command, args []string) error {
	root, err := cli.RootArgument(args, "ROOT", "/")
	if err != nil {
		return err
	}
	if c.path == "" {
		c.path = monitorPath(root)
	}
	if c.onEvent != "" {
		if err := hold.FindCommand([]string{c.onEvent}); err != nil {
			return err
		}
	}
	options, err := c.options()
	if err != nil {
		return err
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return cli.EndQuietlyOnSignal(cmd.Context(), err)
	}
	defer cli.CloseClient(c.Streams, client)
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	c.endWithError = cancel
	m := monitor.New(client, c.path, root, options...)
	if err := m.Validate(); err != nil {
		return cli.UsageError("%w", err)
	}
	stopPrinting := hold.PrintLeaderChanges(ctx, c.Streams, client, m.ElectionPath(), "scans", 0)
	defer stopPrinting()
	err = m.Run(ctx)
	if cause := context.Cause(ctx); cause != nil && cmd.Context().Err() == nil {
		err = cause
	}
	return cli.EndQuietlyOnSignal(cmd.Context(), err)
}

// handleEvent prints an event, and runs the program of --on-event. It does not print an event again
// that is repeated.
func (c *monitorCommand) handleEvent(ctx context.Context, e monitor.Event) error {
	if id := e.ID + string(e.Kind); !c.printed[id] {
		if len(c.printed) == maxEventsSeen {
			clear(c.printed)
		}
		c.printed[id] = true
		if err := c.print(e); err != nil {
			c.endWithError(err)
			return err
		}
	}
	if c.onEvent == "" {
		return nil
	}
	return c.runOnEvent(ctx, e)
}

func (c *monitorCommand) print(e monitor.Event) error {
	style := terminal.For(c.Out)
	at, kind, text := e.Began, style.Red(string(e.Kind)), cli.InOneLine(e.Text)
	if e.Kind == monitor.Ends {
		at, kind, text = e.Ended, style.Green(string(e.Kind)),
			fmt.Sprintf("it lasted %v: %s", e.Lasted().Round(time.Second), text)
	}
	return cli.PrintResult(c.Out, c.JSON, e, cli.FormatTime(at), kind, style.Bold(cli.InOneLine(e.Path)),
		cli.InOneLine(string(e.Problem)), text)
}

// runOnEvent runs the program with the event, and stops it with its whole process group when its
// time is over.
func (c *monitorCommand) runOnEvent(ctx context.Context, e monitor.Event) error {
	line, err := cli.MarshalLine(e)
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer write.Close()      // the program may have read enough
		_, _ = write.Write(line) // as above
	}()
	defer func() { <-written }()
	defer read.Close() // it was only read
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(c.timeout),
		fmt.Errorf("%s took longer than %v", c.onEvent, time.Duration(c.timeout)))
	defer cancel()
	run := procguard.Command{Args: []string{c.onEvent}, Stdin: read, Stdout: c.Err, Stderr: c.Err,
		KillAfter: eventKill, Withheld: c.keepAuth.Withheld(), Env: eventEnv(e)}
	code, err := run.Run(procguard.Hold{Context: ctx, Remaining: func() time.Duration { return time.Hour }})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d", c.onEvent, code)
	}
	return err
}

// eventEnv returns an event as environment variables. No value is longer than 4 KiB.
func eventEnv(e monitor.Event) []string {
	var env []string
	for _, v := range [][2]string{
		{"EVENT", string(e.Kind)}, {"EVENT_ID", e.ID}, {"PROBLEM", string(e.Problem)}, {"PATH", e.Path},
		{"TEXT", e.Text}, {"LASTED", fmt.Sprintf("%.0f", e.Lasted().Seconds())},
	} {
		text := cli.InOneLine(v[1])
		// the cut may have left a part of a character
		whole := strings.ToValidUTF8(text[:min(len(text), maxEnvValue)], "")
		env = append(env, "LOCKSTEP_"+v[0]+"="+whole)
	}
	return env
}
