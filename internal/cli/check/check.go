// Package check has the subcommands that report problems, once or as they begin and end.
package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/monitor"
)

// checkCommand is the subcommand that prints findings.
type checkCommand struct {
	cli.ConnectionFlags
	thresholds thresholdFlags
}

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newCheck(streams), newMonitor(streams)}
}

func newCheck(streams *cli.Streams) *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check [ROOT] [flags]",
		Short: "Print problems of jobs, locks, queues and workflows, for a monitoring system",
		Long: `Scan once all jobs, locks, queues and workflows below a path (default /, which is --root), and print
one line for each finding: the path, the problem, and a text. The exit code is 1 if there is a finding, or if
the path does not exist. Nothing is written.

Jobs: no member runs it, overdue ticks, runs that are stuck or failed, a latest tick that did
not run. Locks: more than 10 waiters, a holder that was asked to let go more than a minute ago and
still holds, deadlocks that are only reported, nodes that belong to no session, contenders of kinds
that do not see each other, sessions with nearly as many nodes as servers can delete at once.
Queues: dead letters, items older than an hour, items that have come back after 5 attempts, items
that a consumer has had for more than 5 minutes. Workflows: failed runs, runs that no member has
taken for more than 5 minutes. Nodes that could not be read, or that were left out because there are
too many, are findings too. lockstep monitor also finds problems that take several scans, and
lockstep doctor examines the servers.`,
		Example: `  lockstep check                       all that these credentials can read
  lockstep check /lockstep/jobs --json
  lockstep check --held-item 2h --without 'dead letters'
  lockstep check || ./page.sh`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(c.checkAll),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	c.thresholds.addTo(cmd)
	return cmd
}

func (c *checkCommand) checkAll(cmd *cobra.Command, args []string) error {
	root, err := cli.RootArgument(args, "ROOT", "/")
	if err != nil {
		return err
	}
	options, err := c.thresholds.options()
	if err != nil {
		return err
	}
	return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
		report, err := monitor.Check(ctx, client, root, options...)
		if err != nil {
			return err
		}
		if len(report.Jobs)+len(report.Locks)+len(report.Queues)+len(report.Runs)+len(report.Findings) == 0 {
			if err := cli.RequireNode(ctx, client, root, "nothing was checked", "check ROOT and --root"); err != nil {
				return err
			}
		}
		found := &cli.FindingPrinter{Streams: c.Streams, JSON: c.JSON}
		for _, f := range report.Findings {
			one, text := findingJSON{f, adviceOn(f)}, f.Text
			if one.Advice != "" {
				text += "; " + one.Advice
			}
			if err := found.Add(one, f.Path, string(f.Problem), text); err != nil {
				return err
			}
		}
		return found.ExitCode(fmt.Sprintf("%s, %s, %s and %s below %s",
			cli.FormatNumber(len(report.Jobs), "job"), cli.FormatNumber(len(report.Locks), "lock"),
			cli.FormatNumber(len(report.Queues), "queue"), cli.FormatNumber(len(report.Runs), "run"), root))
	})
}

// findingJSON is a finding and what to do about it, as JSON.
type findingJSON struct {
	monitor.Finding
	Advice string `json:"advice,omitempty"`
}

// adviceOn says what to do about a finding of a queue's item, a run or a deadlock, or "".
func adviceOn(f monitor.Finding) string {
	queue := cli.ShellWord(strings.TrimPrefix(f.Path, cli.QueuesDir+"/"))
	switch f.Problem {
	case monitor.ProblemDeadlock:
		return "see it with lockstep locks --deadlocks; lockstep revoke or lockstep release ends it at one of its locks"
	case monitor.ProblemFailingItem:
		return "see it with lockstep queue ls " + cli.ShellWord(f.Path) + " --json; " +
			"a consumer with WithMaxAttempts (lockstep queue take --max-attempts) makes a dead letter of it"
	case monitor.ProblemHeldItem:
		return fmt.Sprintf("see who has it with lockstep queue inflight %s; lockstep queue return %s ITEM takes it back",
			queue, queue)
	case monitor.ProblemFailedRuns:
		run := cli.ShellWord(f.Node)
		return fmt.Sprintf("see them with lockstep workflows %s --state failed; mend the cause, then "+
			"lockstep workflows retry %s, or lockstep workflows remove %s", cli.ShellWord(f.Path), run, run)
	case monitor.ProblemUntakenRun:
		return fmt.Sprintf("start a member that executes its kind, or more of them; if its queue was purged: "+
			"lockstep workflows requeue %s", cli.ShellWord(f.Node))
	}
	return ""
}
