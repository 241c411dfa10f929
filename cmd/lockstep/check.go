package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
)

// checkCommand is the subcommand that reports what is wrong.
type checkCommand struct{ connectionFlags }

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check [ROOT] [flags]",
		Short: "Print what is wrong with jobs, locks and queues, for monitoring",
		Long: `Look once at all jobs, locks and queues below a path (default /, which is --root), and print what
is wrong, one line for each finding: what, the problem, and a text. The exit code is 1 if anything
is. Nothing is written.

Jobs: no member runs it, overdue ticks, runs that are stuck or failed, a latest tick that did
not run. Locks: more than 10 waiters, a holder that was asked to let go and holds, nodes that
belong to no session, contenders of kinds that do not see each other, sessions near the size that
servers cannot delete. Queues: dead letters, items older than an hour. What could not be read, or
was left out since there is too much, is a finding too. See lockstep monitor for what takes
several looks, and lockstep doctor for the servers.`,
		Example: `  lockstep check                       all that these credentials can read
  lockstep check /lockstep/jobs --json
  lockstep check || ./page.sh`,
		Args: cobra.MaximumNArgs(1),
		RunE: withExitCodes(c.checkAll),
	}
	c.connectionFlags.addConnectionFlags(cmd)
	return cmd
}

// rootArgument is the ROOT of a command line, by default "/".
func rootArgument(args []string) (string, error) {
	if len(args) == 0 {
		return "/", nil
	}
	if err := framework.ValidatePath(args[0]); err != nil && args[0] != "/" {
		return "", usageError("the ROOT %q cannot be used: %w", args[0], err)
	}
	return args[0], nil
}

func (c *checkCommand) checkAll(cmd *cobra.Command, args []string) error {
	root, err := rootArgument(args)
	if err != nil {
		return err
	}
	client, err := c.connectClient(cmd)
	if err != nil {
		return endQuietlyOnSignal(cmd.Context(), err)
	}
	defer hangUp(client)
	report, err := monitor.Check(cmd.Context(), client, root)
	if err != nil {
		return endQuietlyOnSignal(cmd.Context(), err)
	}
	found := &findingPrinter{json: c.json}
	for _, f := range report.Findings {
		if err := found.add(findingJSON{Subject: f.Path, Problem: string(f.Problem), Since: knownTime(f.Since), Text: f.Text}); err != nil {
			return err
		}
	}
	return found.exitCode(fmt.Sprintf("%d jobs, %d locks and %d queues below %s", report.Jobs, report.Locks, report.Queues, root))
}
