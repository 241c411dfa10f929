package cron

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/scheduler"
)

// newRuns is the subcommand that shows a job's latest runs.
func newRuns(streams *cli.Streams) *cobra.Command {
	p := &jobsCommand{}
	cmd := &cobra.Command{
		Use:   "runs NAME [flags]",
		Short: "Show the latest runs of a scheduled job",
		Long: `Show the runs of a job, the newest first: those under way and the latest that have ended, with the
scheduled time, when and on which member each was started, how long it took and how it ended.

Ticks that did not run are not listed here: "lockstep jobs NAME" shows them with the reasons.`,
		Example: `  lockstep runs report
  lockstep runs /billing/jobs/rollup --json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		if _, err := jobPath(args[0]); err != nil {
			return err
		}
		return p.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
			path, job, err := requireJob(ctx, client, args[0])
			if err != nil {
				return err
			}
			runs, err := scheduler.New(client, path).Runs(ctx, job)
			if err != nil {
				return err
			}
			return p.printRuns(args[0], runs)
		})
	})
	p.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func (p *jobsCommand) printRuns(name string, runs []scheduler.RunRecord) error {
	if !p.JSON {
		if len(runs) == 0 {
			p.PrintNotice("%s has not run yet", name)
		}
		return runTable(runs).PrintTo(p.Out)
	}
	for _, r := range runs {
		if err := cli.PrintResult(p.Out, true, r); err != nil {
			return err
		}
	}
	return nil
}
