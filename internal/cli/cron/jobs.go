package cron

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/scheduler"
)

// A job's path is that of its scheduler and the job's name, such as /billing/jobs/report. The
// schedulers of lockstep cron are named after their only job, so that the scheduler's path is the
// job's.

// findJob returns the scheduler and the name of the job that a NAME or a path means. A path is also
// that of a scheduler, of which found is false.
func findJob(ctx context.Context, client *framework.Client, name string) (path, job string, found bool, err error) {
	if path, err = jobPath(name); err != nil {
		return "", "", false, err
	}
	dir, job := znode.Split(path)
	if !strings.HasPrefix(name, "/") {
		return path, job, true, nil
	}
	for _, scheduledAt := range []string{path, dir} {
		children, _, err := client.Children(ctx, scheduledAt)
		if err == nil && joblayout.HasLayout(children) {
			_, err = client.Exists(ctx, joblayout.Scheduler(scheduledAt).Job(job))
			return scheduledAt, job, err == nil, cli.IgnoreMissing(err)
		}
		if cli.IgnoreMissing(err) != nil {
			return "", "", false, err
		}
	}
	return path, job, false, nil
}

// requireJob is findJob for a subcommand that needs a job.
func requireJob(ctx context.Context, client *framework.Client, name string) (path, job string, err error) {
	path, job, found, err := findJob(ctx, client, name)
	if err == nil && !found {
		err = cli.ExitWith(cli.ExitMissing, fmt.Errorf("there is no job %s", cli.QuoteName(name)),
			"see which there are: lockstep jobs /")
	}
	return path, job, err
}

// jobsCommand is a subcommand that shows jobs, or does something to one.
type jobsCommand struct{ cli.ConnectionFlags }

// newJobs shows jobs; its subcommands control them.
func newJobs(streams *cli.Streams) *cobra.Command {
	p := &jobsCommand{}
	cmd := &cobra.Command{
		Use:   "jobs [NAME] [flags]",
		Short: "Show and control scheduled jobs",
		Long: `Show the jobs of lockstep cron, or with a path the jobs of the schedulers at and below it: their
schedules, when they are due next, what they do, how the last run ended, and how many ticks were run
and missed. With a NAME, or the path of a service's scheduler and the job's name, one job is shown in
detail: its schedule in words, the next ten ticks, the members that have it and the one that runs it,
the ticks that did not run and why, and the latest runs. If the NAME is also that of a subcommand,
give the path: /lockstep/jobs/trigger.

lockstep jobs computes which ticks are overdue: no process notices a job that no process has. With
--check it prints one line for each finding only, and the exit code is 1 if there is any. See also
lockstep check.

The subcommands store their request. They work on any machine, also if no process runs the job at
present.`,
		Example: `  lockstep jobs                                   those of lockstep cron
  lockstep jobs report                            one job, in detail
  lockstep jobs /billing                          those of a service
  lockstep jobs /billing/jobs/rollup              one of them, in detail
  lockstep jobs --check || ./page.sh              the findings, for a monitoring system
  lockstep jobs trigger report                    run it once, now
  lockstep jobs pause team/report`,
		Args: cobra.MaximumNArgs(1),
	}
	check := cmd.Flags().Bool("check", false, "print a line for each finding, and end with 1 if there is any")
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error { return p.showJobs(cmd, args, *check) })
	p.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.AddCommand(
		newControl(streams, "trigger NAME", "Run a job once, as soon as its policies permit", "to be run",
			(*scheduler.Scheduler).Trigger),
		newControl(streams, "pause NAME", "Do not run a job until it is resumed", "paused",
			(*scheduler.Scheduler).Pause),
		newControl(streams, "resume NAME", "Run a paused job again, from its next tick on", "resumed",
			(*scheduler.Scheduler).Resume),
		newControl(streams, "remove NAME",
			"Delete a job and its history; a process that is started with the job creates it again", "removed",
			(*scheduler.Scheduler).Remove),
	)
	return cmd
}

// newControl is a subcommand that does something to a job.
func newControl(streams *cli.Streams, use, short, done string, do func(*scheduler.Scheduler, context.Context,
	string) error) *cobra.Command {
	p := &jobsCommand{}
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		if _, err := jobPath(args[0]); err != nil {
			return err
		}
		return p.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
			path, job, err := requireJob(ctx, client, args[0])
			if err != nil {
				return err
			}
			jobs := scheduler.New(client, path)
			if err := do(jobs, ctx, job); err != nil {
				return err
			}
			streams.PrintNotice("%s: %s", args[0], done)
			if cmd.Name() == "trigger" || cmd.Name() == "resume" {
				warnIfNoMemberRuns(ctx, streams, jobs, args[0], job)
			}
			return nil
		})
	})
	p.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

// warnIfNoMemberRuns warns that the request waits for a member. It prints nothing if that cannot be
// determined.
func warnIfNoMemberRuns(ctx context.Context, streams *cli.Streams, s *scheduler.Scheduler, name, job string) {
	if r, err := s.Inspect(ctx, job); err == nil && r.Owner == nil {
		streams.PrintWarning("%s: %s: it waits until a process that has the job is started; see lockstep jobs %s", name,
			cli.InOneLine(r.Findings[0].Text), cli.ShellWord(name))
	}
}

// showJobs shows jobs or one job, or their findings.
func (p *jobsCommand) showJobs(cmd *cobra.Command, args []string, check bool) error {
	root, err := cli.RootOf("jobs", args)
	if err == nil && root != "/" && len(args) > 0 {
		_, err = jobPath(args[0])
	}
	if err != nil {
		return err
	}
	return cli.EndBySignal(cmd.Context(), p.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
		if len(args) > 0 && root != "/" {
			path, job, found, err := findJob(ctx, client, args[0])
			if err != nil {
				return err
			}
			if found {
				return p.showJob(ctx, scheduler.New(client, path), job, check)
			}
		}
		reports, unread := readJobs(ctx, client, root)
		switch {
		case unread != nil && len(reports) == 0:
			return unread
		case unread != nil:
			p.PrintWarning("%v", unread)
		case len(reports) == 0 && len(args) > 0 && root != "/":
			return cli.NothingFoundError(ctx, p.Streams, client, "jobs", root, "lockstep jobs")
		}
		if check {
			err = p.printFindings(reports, unread != nil)
		} else {
			err = p.printJobs(reports)
		}
		if err == nil && len(reports) == 0 && !p.JSON && !check {
			cli.PrintNone(ctx, p.Streams, "jobs", root, "lockstep jobs",
				func(ctx context.Context) iter.Seq2[string, error] { return scheduler.Find(ctx, client, "/") })
		}
		if err != nil {
			return err
		}
		return cli.ExitCodeOfPrinted(p.Streams, unread)
	}))
}

// showJob shows one job in detail, or its findings.
func (p *jobsCommand) showJob(ctx context.Context, s *scheduler.Scheduler, job string, check bool) error {
	report, err := s.Inspect(ctx, job)
	if err != nil {
		return err
	}
	if check {
		return p.printFindings([]scheduler.Report{report}, false)
	}
	runs, err := s.Runs(ctx, job)
	if err != nil {
		return err
	}
	return PrintDetail(p.Out, p.JSON, report, runs)
}

func (p *jobsCommand) printJobs(reports []scheduler.Report) error {
	if p.JSON {
		for _, r := range reports {
			if err := cli.PrintResult(p.Out, true, r); err != nil {
				return err
			}
		}
		return nil
	}
	return jobTable(reports).PrintTo(p.Out)
}

// printFindings prints the findings of jobs, and returns the exit code. It does not say that
// nothing is wrong if some jobs are unread.
func (p *jobsCommand) printFindings(reports []scheduler.Report, someUnread bool) error {
	found := &cli.FindingPrinter{Streams: p.Streams, JSON: p.JSON}
	for _, r := range reports {
		for _, f := range r.Findings {
			if err := found.Add(findingJSON{nameOf(r), f}, nameOf(r), string(f.Problem), f.Text); err != nil {
				return err
			}
		}
	}
	if found.Count == 0 && someUnread {
		return nil
	}
	return found.ExitCode(cli.FormatNumber(len(reports), "job"))
}

// findingJSON is a finding of a job as JSON.
type findingJSON struct {
	Name string `json:"name"`
	scheduler.Finding
}

// maxFound is how many nodes readJobs searches for schedulers, as scheduler.List does.
const maxFound = 20_000

// readJobs reports on the schedulers at and below a path.
func readJobs(ctx context.Context, client *framework.Client, root string) ([]scheduler.Report, error) {
	roots := []string{root}
	if root == cli.JobsDir {
		// not jobsDir itself: jobs that are called jobs and changes would make it look like a
		// scheduler
		names, _, err := client.Children(ctx, cli.JobsDir)
		if errors.Is(err, framework.ErrNoNode) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		roots = nil
		for _, name := range cli.SortNames(names) {
			roots = append(roots, znode.Join(cli.JobsDir, name))
		}
	}
	var unread []error
	var paths []string
	for found, err := range recipe.Find(ctx, client, roots, maxFound,
		recipe.Layout{Recognize: joblayout.HasLayout, Own: joblayout.OwnNodes()}) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		paths = append(paths, found.Path)
	}
	all, err := moduleonly.InspectSchedulers(ctx, client, paths)
	reports, _ := all.([]scheduler.Report)
	unread = append(unread, err)
	return reports, errors.Join(unread...)
}

// jobPath returns the scheduler of the job that NAME means. A part of a NAME must not have the name
// of one of the scheduler's own nodes: it would be taken for that node.
func jobPath(name string) (string, error) {
	parts := strings.Split(name, "/")
	if !strings.HasPrefix(name, "/") &&
		slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(joblayout.OwnNodes(), part) }) {
		return "", cli.UsageError("the NAME %q cannot be used: no part after a / may be one of %s", name,
			strings.Join(joblayout.OwnNodes(), ", "))
	}
	return cli.PathOf("jobs", name)
}
