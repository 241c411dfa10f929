package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/scheduler"
)

// jobsDir is where "lockstep cron" keeps its schedulers, each with one job of the same name.
const jobsDir = "/lockstep/jobs"

// jobSelector are the flags that say where jobs are.
type jobSelector struct {
	connectionFlags
	scheduler string
}

func (p *jobSelector) addJobFlags(cmd *cobra.Command) {
	p.connectionFlags.addConnectionFlags(cmd)
	cmd.Flags().StringVar(&p.scheduler, "scheduler", "", "the path of a service's scheduler that has the job NAME (default the jobs of lockstep cron)")
}

// resolveJobName returns the scheduler and the name of the job that NAME means.
func (p *jobSelector) resolveJobName(name string) (path, job string, err error) {
	if p.scheduler == "" {
		if path, err = jobPath(name); err != nil {
			return "", "", err
		}
		_, job = znode.Split(path)
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
		Use:   "jobs [NAME] [flags]",
		Short: "Show and control scheduled jobs",
		Long: `Show the jobs of lockstep cron, or those of a service's scheduler: their schedules, when they
are due next, what they do, how the last run ended, and how many ticks were run and missed. With
a NAME one job is shown in detail: its schedule in words, the next ten ticks, the members that
have it and the one that runs it, the ticks that did not run and why, and the latest runs. If the
NAME is also that of a subcommand, give the path: /lockstep/jobs/run.

lockstep jobs computes which ticks are overdue: no process notices a job that no process has. With
--check it prints one line for each finding only, and the exit code is 1 if there is any. See also
lockstep check.

The subcommands store their request. They work on any machine, also if no process runs the job at
present.`,
		Example: `  lockstep jobs                                   those of lockstep cron
  lockstep jobs report                            one job, in detail
  lockstep jobs --scheduler /lockstep/scheduler   those of a service
  lockstep jobs --check || ./page.sh              the findings, for a monitoring system
  lockstep jobs run report                        run it once, now
  lockstep jobs pause team/report`,
		Args: cobra.MaximumNArgs(1),
	}
	check := cmd.Flags().Bool("check", false, "print a line for each finding, and end with 1 if there is any")
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error { return p.showJobs(cmd, args, *check) })
	p.addJobFlags(cmd)
	cmd.AddCommand(
		newControl("run NAME", "Run a job once, as soon as its policies permit", "to be run", (*scheduler.Scheduler).Trigger),
		newControl("pause NAME", "Do not run a job until it is resumed", "paused", (*scheduler.Scheduler).Pause),
		newControl("resume NAME", "Run a paused job again, from its next tick on", "resumed", (*scheduler.Scheduler).Resume),
		newControl("remove NAME", "Delete a job and its history; a process that is started with the job creates it again", "removed", (*scheduler.Scheduler).Remove),
	)
	return cmd
}

// newControl is a subcommand that does something to a job.
func newControl(use, short, done string, do func(*scheduler.Scheduler, context.Context, string) error) *cobra.Command {
	p := &jobSelector{}
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1)}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		path, job, err := p.resolveJobName(args[0])
		if err != nil {
			return err
		}
		return p.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
			jobs := scheduler.New(client, path)
			if err := do(jobs, ctx, job); err != nil {
				return err
			}
			printNotice("%s: %s", args[0], done)
			if cmd.Name() == "run" || cmd.Name() == "resume" {
				warnIfNoMemberRuns(ctx, jobs, args[0], job)
			}
			return nil
		})
	})
	p.addJobFlags(cmd)
	return cmd
}

// warnIfNoMemberRuns warns that the request waits for a member. It prints nothing if that cannot be determined.
func warnIfNoMemberRuns(ctx context.Context, s *scheduler.Scheduler, name, job string) {
	if r, err := s.Inspect(ctx, job); err == nil && r.Owner == nil {
		printWarning("%s: %s: it waits until a process that has the job is started; see lockstep jobs %s", name, inOneLine(r.Findings[0].Text), name)
	}
}

// showJobs shows all jobs or one, or their findings.
func (p *jobSelector) showJobs(cmd *cobra.Command, args []string, check bool) error {
	name := "x" // without a NAME this checks --scheduler only
	if len(args) > 0 {
		name = args[0]
	}
	path, job, err := p.resolveJobName(name)
	if err != nil {
		return err
	}
	client, err := p.connectClient(cmd)
	if err != nil {
		return endBySignal(cmd.Context(), err)
	}
	defer closeClient(client)
	var unread error
	var reports []scheduler.JobReport
	if len(args) == 0 {
		reports, unread = p.readJobs(cmd.Context(), client)
		if unread != nil && len(reports) == 0 {
			return endBySignal(cmd.Context(), unread)
		}
		if unread != nil {
			printWarning("%v", unread)
		}
	} else {
		one, err := scheduler.New(client, path).Inspect(cmd.Context(), job)
		if err != nil {
			return endBySignal(cmd.Context(), err)
		}
		if p.scheduler == "" {
			one.Name = name
		}
		reports = []scheduler.JobReport{one}
	}
	switch {
	case check:
		err = p.printFindings(reports, unread != nil)
	case len(args) > 0:
		runs, errRuns := scheduler.New(client, path).Runs(cmd.Context(), job)
		if errRuns != nil {
			return endBySignal(cmd.Context(), errRuns)
		}
		err = printJobDetail(os.Stdout, p.json, reports[0], runs)
	default:
		err = p.printJobs(reports)
	}
	if err != nil {
		return err
	}
	return exitCodeOfPrinted(unread)
}

func (p *jobSelector) printJobs(reports []scheduler.JobReport) error {
	if p.json {
		for _, r := range reports {
			if err := printResult(os.Stdout, true, jobView(r)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := jobTable(reports).printTo(os.Stdout); err != nil {
		return err
	}
	if len(reports) == 0 {
		printNotice("no jobs")
	}
	return nil
}

// printFindings prints the findings of jobs, and returns the exit code. It does not say that nothing is wrong if some jobs are unread.
func (p *jobSelector) printFindings(reports []scheduler.JobReport, someUnread bool) error {
	found := &findingPrinter{json: p.json}
	for _, r := range reports {
		if err := found.addJob(r.Name, r); err != nil {
			return err
		}
	}
	if found.count == 0 && someUnread {
		return nil
	}
	return found.exitCode(fmt.Sprintf("%d jobs", len(reports)))
}

// readJobs reports on one scheduler, or on all below jobsDir.
func (p *jobSelector) readJobs(ctx context.Context, client *framework.Client) ([]scheduler.JobReport, error) {
	if p.scheduler != "" {
		return scheduler.New(client, p.scheduler).InspectAll(ctx)
	}
	names, _, err := client.Children(ctx, jobsDir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, name := range sortNames(names) { // not jobsDir itself: jobs that are called jobs and changes would make it look like a scheduler
		roots = append(roots, znode.Join(jobsDir, name))
	}
	var unread []error
	var paths []string
	for path, err := range scheduler.Find(ctx, client, roots...) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		paths = append(paths, path)
	}
	reports, err := scheduler.InspectAt(ctx, client, paths...)
	for i, r := range reports {
		if r.Name == r.Path[strings.LastIndexByte(r.Path, '/')+1:] { // as "lockstep cron" has made it: this is the NAME for the other subcommands
			reports[i].Name = strings.TrimPrefix(r.Path, jobsDir+"/")
		}
	}
	return reports, errors.Join(append(unread, err)...)
}

// jobPath returns the scheduler of the job that NAME means. A part of a NAME must not have the name of one of the scheduler's
// own nodes: it would be taken for that node.
func jobPath(name string) (string, error) {
	parts := strings.Split(name, "/")
	if !strings.HasPrefix(name, "/") && slices.ContainsFunc(parts[1:], func(part string) bool { return slices.Contains(scheduler.OwnNodes(), part) }) {
		return "", usageError("the NAME %q cannot be used: no part after a / may be one of %s", name, strings.Join(scheduler.OwnNodes(), ", "))
	}
	return pathOf("jobs", name)
}
