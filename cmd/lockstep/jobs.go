package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/scheduler"
)

// jobsDir is where "lockstep cron" keeps its schedulers, each with one job of the same name.
const jobsDir = "/lockstep/jobs"

// jobSelector is where the jobs of a command line are.
type jobSelector struct {
	connectionFlags
	scheduler string
}

func (p *jobSelector) addJobFlags(cmd *cobra.Command) {
	p.connectionFlags.addConnectionFlags(cmd)
	cmd.Flags().StringVar(&p.scheduler, "scheduler", "", "the path of a service's scheduler, whose job NAME is (default: those of lockstep cron)")
}

// findJob is the scheduler and the name of the job that NAME means.
func (p *jobSelector) findJob(name string) (path, job string, err error) {
	if p.scheduler == "" {
		if path, err = jobPath(name); err != nil {
			return "", "", err
		}
		_, job = framework.Split(path)
		return path, job, nil
	}
	if err := framework.ValidatePath(p.scheduler); err != nil {
		return "", "", usageError("--scheduler %q cannot be used: %w", p.scheduler, err)
	}
	return p.scheduler, name, nil
}

// newJobs shows jobs; its subcommands control them.
func newJobs() *cobra.Command {
	p := &jobSelector{}
	cmd := &cobra.Command{
		Use:   "jobs [flags]",
		Short: "Show and control scheduled jobs",
		Long: `Show the jobs of lockstep cron, or those of a service's scheduler: their schedules, when they
are due next, how the last run ended, and how many ticks were run and missed.

The subcommands work wherever the job runs, and whether or not it does at present: what they
ask for is stored.`,
		Example: `  lockstep jobs                                   those of lockstep cron
  lockstep jobs --scheduler /lockstep/scheduler   those of a service
  lockstep jobs run report                        once, now
  lockstep jobs pause team/report`,
		Args: cobra.NoArgs,
		RunE: withExitCodes(p.listJobs),
	}
	p.addJobFlags(cmd)
	cmd.AddCommand(
		newControl("run NAME", "Run a job once, as soon as it may", "to be run", (*scheduler.Scheduler).Trigger),
		newControl("pause NAME", "Run a job no more until it is resumed", "paused", (*scheduler.Scheduler).Pause),
		newControl("resume NAME", "Run a paused job again, from its next tick on", "resumed", (*scheduler.Scheduler).Resume),
		newControl("remove NAME", "Delete a job, its history and its place, until a process is started with it", "removed", (*scheduler.Scheduler).Remove),
	)
	return cmd
}

// newControl is a subcommand that does something to a job.
func newControl(use, short, done string, do func(*scheduler.Scheduler, context.Context, string) error) *cobra.Command {
	p := &jobSelector{}
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		path, job, err := p.findJob(args[0])
		if err != nil {
			return err
		}
		client, err := p.connectClient(cmd)
		if err != nil {
			return endQuietlyOnSignal(cmd.Context(), err)
		}
		defer hangUp(client)
		if err := do(scheduler.New(client, path), cmd.Context(), job); err != nil {
			return endQuietlyOnSignal(cmd.Context(), err)
		}
		printNotice("%s: %s", args[0], done)
		return nil
	})
	p.addJobFlags(cmd)
	return cmd
}

// listJobs shows all jobs.
func (p *jobSelector) listJobs(cmd *cobra.Command, _ []string) error {
	if _, _, err := p.findJob("x"); err != nil {
		return err
	}
	client, err := p.connectClient(cmd)
	if err != nil {
		return endQuietlyOnSignal(cmd.Context(), err)
	}
	defer hangUp(client)
	reports, err := p.readJobs(cmd.Context(), client)
	if err != nil && len(reports) == 0 {
		return endQuietlyOnSignal(cmd.Context(), err)
	}
	if err != nil {
		printWarning("%v", err)
	}
	for _, r := range reports {
		if !p.json {
			continue
		}
		if err := printResult(os.Stdout, true, jobView(r, time.Now())); err != nil {
			return err
		}
	}
	if !p.json {
		if err := jobTable(reports, time.Now()).printTo(os.Stdout); err != nil {
			return err
		}
		if len(reports) == 0 {
			printNotice("no jobs")
		}
	}
	return exitCodeOfPrinted(err)
}

// readJobs looks at one scheduler, or at all below jobsDir.
func (p *jobSelector) readJobs(ctx context.Context, client *framework.Client) ([]scheduler.State, error) {
	if p.scheduler != "" {
		return scheduler.New(client, p.scheduler).Jobs(ctx)
	}
	var all []scheduler.State
	var errs []error
	for _, path := range jobPaths(ctx, client, jobsDir, &errs) {
		reports, err := scheduler.New(client, path).Jobs(ctx)
		_, own := framework.Split(path)
		for i := range reports {
			if reports[i].Name == own { // as "lockstep cron" has made it: what the other subcommands call it
				reports[i].Name = strings.TrimPrefix(path, jobsDir+"/")
			}
		}
		all, errs = append(all, reports...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// schedulerNodes are the nodes that a scheduler keeps in its directory.
var schedulerNodes = []string{"changes", "election", "election~term", "election~waiting", "jobs", "members"}

// jobPaths returns the schedulers at any depth below a directory, in order. A NAME may have slashes, and be the
// beginning of another: team and team/report. What cannot be read is added to errs.
func jobPaths(ctx context.Context, client *framework.Client, directory string, errs *[]error) (paths []string) {
	names, _, err := client.Children(ctx, directory)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		*errs = append(*errs, err)
		return nil
	}
	if directory != jobsDir && slices.Contains(names, "jobs") {
		paths = append(paths, directory)
	}
	for _, name := range sortNames(names) {
		if directory == jobsDir || !slices.Contains(schedulerNodes, name) {
			paths = append(paths, jobPaths(ctx, client, framework.Join(directory, name), errs)...)
		}
	}
	return paths
}

// jobPath is the scheduler of the job that NAME means. A part that is called as a node of the scheduler
// above it would be taken for that node.
func jobPath(name string) (string, error) {
	parts := strings.Split(name, "/")
	if !strings.HasPrefix(name, "/") && slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(schedulerNodes, part) }) {
		return "", usageError("the NAME %q cannot be used: after a /, none of %s can stand", name, strings.Join(schedulerNodes, ", "))
	}
	return pathOf("jobs", name)
}
