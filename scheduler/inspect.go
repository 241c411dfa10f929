package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Report is a job's state, its members and its problems at one moment.
type Report struct {
	State
	// Path is the scheduler's.
	Path string `json:"path"`
	// At is the time of the report, by this machine's clock.
	At time.Time `json:"at"`
	// Overdue are the due ticks that were neither run nor recorded as missed, without a known
	// reason. It has no Reason. For a job without an owner these are all due ticks. Otherwise a
	// tick is overdue 75 s after its start time: members wait that long when the clocks differ.
	Overdue Gap `json:"overdue,omitzero"`
	// Members are the members that have the job and its labels, by ID.
	Members []Member `json:"-"`
	// Owner is the member that starts the job's runs, or nil if no member does.
	Owner *Member `json:"-"`
	// Leader is the id of the scheduler's leader, or "". If there is a leader and no Owner, the
	// leader does not have the job.
	Leader string `json:"leader,omitempty"`
	// Abandoned are the runs among Running whose member is gone. The next owner records them as
	// lost.
	Abandoned []RunRecord `json:"abandoned,omitempty"`
	// Alive is the latest time at which a member is known to have dealt with the job.
	Alive time.Time `json:"alive,omitzero"`
	// Findings are what is wrong with the job, the most urgent first. A paused job is not wrong.
	Findings []Finding `json:"-"`
}

// MarshalJSON returns the report with the path by which the command line names the job, the
// schedule in words, the next tick and the number of runs that wait as "job_path", "words", "next"
// and "pending". Of the members there are the ids.
func (r Report) MarshalJSON() ([]byte, error) {
	type fields Report
	report := struct {
		JobPath string `json:"job_path"`
		fields
		Words    string    `json:"words,omitempty"`
		Jitter   float64   `json:"jitter_seconds,omitzero"`
		Next     time.Time `json:"next,omitzero"`
		Pending  int       `json:"pending"`
		Owner    string    `json:"owner,omitempty"`
		Members  []string  `json:"members"`
		Findings []Finding `json:"findings"`
	}{JobPath: r.JobPath(), fields: fields(r), Jitter: r.Jitter.Seconds(), Next: r.Next(r.At),
		Pending: len(r.State.Pending), Members: []string{}, Findings: append([]Finding{}, r.Findings...)}
	if schedule, err := r.Schedule(); err == nil {
		report.Words = schedule.Words()
	}
	if r.Owner != nil {
		report.Owner = r.Owner.ID
	}
	for _, m := range r.Members {
		report.Members = append(report.Members, m.ID)
	}
	return json.Marshal(report)
}

// JobPath returns the path by which the command line and the monitor name the job: the scheduler's
// path and the job's name. The schedulers of "lockstep cron" are named after their only job, and
// have its path.
func (r Report) JobPath() string { return jobPath(r.Path, r.Name) }

// Problem is the kind of what is wrong with a job.
type Problem string

// The problems.
const (
	// ProblemNoMember: no member has the job, or its leader does not.
	ProblemNoMember Problem = "no member runs it"
	// ProblemOverdue: a member has the job, but ticks are overdue.
	ProblemOverdue Problem = "overdue"
	// ProblemStuck: a run does not return although its context has ended.
	ProblemStuck Problem = "stuck"
	// ProblemFailed: the latest run failed, panicked, timed out or was lost.
	ProblemFailed Problem = "failed"
	// ProblemMissed: the latest tick did not run, for another reason than a pause, a change, the
	// overlap policy or the job's MinHold.
	ProblemMissed Problem = "missed"
	// ProblemSchedule: this machine cannot read the stored schedule.
	ProblemSchedule Problem = "unreadable schedule"
)

// Finding is one problem of a job.
type Finding struct {
	Problem Problem `json:"problem"`
	// Since is when it began, or the zero time.
	Since time.Time `json:"since,omitzero"`
	// Text says it in words, without the job's name.
	Text string `json:"text"`
}

// overdueAfter is how late a tick may be while its job has an owner: OnTime, and the delay when the
// clocks differ.
const overdueAfter = OnTime + MaxAhead + behindAfter

// Inspect reports on a job. It only reads, from the connected server, which may lag behind the
// others. This member need not have the job, and need not run. Its error wraps
// framework.ErrNotFound, framework.ErrInvalid, framework.ErrBadRecord or framework.ErrNewer.
func (s *Scheduler) Inspect(ctx context.Context, name string) (Report, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return Report{}, err
	}
	r := newJobsReader(s.store.client, s.settings.now, s.Path())
	r.found[0].states = []State{state}
	err = r.readMembers(ctx)
	if err == nil {
		err = r.found[0].err
	}
	if err != nil {
		return Report{}, failure.Wrap("inspect", s.Path(), err)
	}
	reports, err := r.report(ctx)
	if err != nil {
		return Report{}, failure.Wrap("inspect", s.store.nodes.Job(name), err)
	}
	return reports[0], nil
}

// List yields a report of each job that is registered at the path, sorted by name. It reads them
// together, when the loop begins: about 10 requests for 1,000 jobs. It yields an error for a job
// that cannot be read, after the reports, as Jobs does. Any other error is the last.
func (s *Scheduler) List(ctx context.Context) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		if s.err != nil {
			yield(Report{}, failure.Wrap("jobs", s.Path(), s.err))
			return
		}
		yieldReports(ctx, newJobsReader(s.store.client, s.settings.now, s.Path()), yield)
	}
}

// inspectedAtOnce is how many schedulers List reads together.
const inspectedAtOnce = 500

// List yields a report of each job of the schedulers at and below root, scheduler after scheduler
// in the order of Find, as Scheduler.List does for one. It reads up to 500 schedulers together:
// about 20 requests for 1,000 schedulers of one job. It yields an error for a directory, a
// scheduler or a job that cannot be read, and goes on. Any other error is the last.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		for paths, err := range recipe.Chunks(Find(ctx, client, root), inspectedAtOnce) {
			if err != nil {
				if !yield(Report{}, err) {
					return
				}
				continue
			}
			if !yieldReports(ctx, newJobsReader(client, time.Now, paths...), yield) {
				return
			}
		}
	}
}

// yieldReports yields what a reader reports, and the errors. It returns false if that was the last.
func yieldReports(ctx context.Context, r *jobsReader, yield func(Report, error) bool) bool {
	reports, unread, err := r.inspectAll(ctx)
	for _, report := range reports {
		if !yield(report, nil) {
			return false
		}
	}
	for _, err := range unread {
		if !yield(Report{}, err) {
			return false
		}
	}
	if err != nil {
		yield(Report{}, err)
	}
	return err == nil
}

func init() {
	moduleonly.InspectSchedulers = func(ctx context.Context, client *framework.Client, paths []string) (any, error) {
		if len(paths) == 0 {
			return []Report(nil), nil
		}
		reports, unread, err := newJobsReader(client, time.Now, paths...).inspectAll(ctx)
		return reports, errors.Join(append(unread, err)...)
	}
	moduleonly.RunsOfJobs = func(ctx context.Context, client *framework.Client, reports any) (any, error) {
		return runsOf(ctx, client, reports.([]Report)...)
	}
}

// inspectAll reports on all jobs. unread are the errors of what cannot be read, beside the reports.
// After err nothing is known.
func (r *jobsReader) inspectAll(ctx context.Context) (reports []Report, unread []error, err error) {
	if err := r.readStates(ctx); err != nil {
		return nil, nil, failure.Wrap("jobs", string(r.found[0].nodes), err)
	}
	if err := r.readMembers(ctx); err != nil {
		return nil, nil, failure.Wrap("inspect", string(r.found[0].nodes), err)
	}
	for i := range r.found {
		s := &r.found[i]
		if len(s.states) > 0 && s.err != nil {
			s.states, s.errs = nil, append(s.errs, failure.Wrap("inspect", string(s.nodes), s.err))
		}
		unread = append(unread, s.errs...)
	}
	if reports, err = r.report(ctx); err != nil {
		return nil, nil, failure.Wrap("inspect", string(r.found[0].nodes), err)
	}
	return reports, unread, nil
}

// report adds the members, the claims and the clock to the states.
func (r *jobsReader) report(ctx context.Context) (reports []Report, err error) {
	var claims []string
	for _, s := range r.found {
		for _, state := range s.states {
			for _, run := range state.Running {
				claims = append(claims, s.nodes.Claim(state.Name, run.Number))
			}
		}
	}
	claimed, err := recipe.GetMany(ctx, r.client, claims)
	if err != nil {
		return nil, err
	}
	at := r.now()
	for _, s := range r.found {
		for _, state := range s.states {
			report := Report{State: state, Path: string(s.nodes), At: at}
			report.addMembers(s.members)
			for _, run := range state.Running {
				if errors.Is(claimed[0].Err, framework.ErrNoNode) { // one that may not be read is there
					report.Abandoned = append(report.Abandoned, run)
				}
				claimed = claimed[1:]
			}
			report.Alive = latestOf(state.Registered, state.Last)
			if state.LastRun != nil {
				report.Alive = latestOf(report.Alive, state.LastRun.Started, state.LastRun.Ended)
			}
			report.findProblems()
			reports = append(reports, report)
		}
	}
	return reports, nil
}

// runsOf returns the latest runs of the jobs of some reports, in their order, each as
// Scheduler.Runs does, and read together. Of jobs whose runs cannot be read it returns the errors,
// joined, beside the others' runs.
func runsOf(ctx context.Context, client *framework.Client, reports ...Report) ([][]RunRecord, error) {
	if client == nil {
		return nil, errors.New("runs: the client is nil")
	}
	dirs := make([]string, len(reports))
	for i, r := range reports {
		dirs[i] = joblayout.Scheduler(r.Path).Job(r.Name)
	}
	lists, err := recipe.ListMany(ctx, client, dirs)
	if err != nil {
		return nil, failure.Wrap("runs", dirs[0], err)
	}
	var past []string
	for i := range lists {
		lists[i].Names = slices.DeleteFunc(lists[i].Names,
			func(name string) bool { return !joblayout.IsPastRun(name) })
		for _, name := range lists[i].Names {
			past = append(past, znode.Join(dirs[i], name))
		}
	}
	read, err := recipe.GetMany(ctx, client, past)
	if err != nil {
		return nil, failure.Wrap("runs", dirs[0], err)
	}
	runs, errs := make([][]RunRecord, len(reports)), make([]error, len(reports))
	for i, list := range lists {
		ended, err := storedRuns(read[:len(list.Names)])
		read = read[len(list.Names):]
		if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
			err = list.Err
		}
		if err != nil {
			errs[i] = failure.Wrap("runs", dirs[i], err)
			continue
		}
		runs[i] = mergeRuns(reports[i].Running, ended)
	}
	return runs, errors.Join(errs...)
}

// findProblems compares the state with the members and the clock.
func (r *Report) findProblems() {
	r.Overdue, r.Findings = Gap{}, nil
	r.addOverdue()
	r.addFindings()
}

// addMembers finds the members that have the job, and the one that it belongs to.
func (r *Report) addMembers(present []presentMember) {
	key := jobKey(r.Name)
	var spread []member
	owner := ""
	for _, m := range present {
		if m.Leads {
			r.Leader = m.ID
		}
		_, spreads := slices.BinarySearch(m.keys, key)
		_, leads := slices.BinarySearch(m.leads, key)
		if !spreads && !leads {
			continue
		}
		r.Members = append(r.Members, m.Member)
		if spreads {
			spread = append(spread, m.member)
		}
		if leads && m.Leads {
			owner = m.node
		}
	}
	if owner == "" {
		owner = (&job{Job: Job{Name: r.Name}}).ownerAmong(spread) // they publish only what fits their labels
	}
	for _, m := range present {
		if m.node == owner {
			r.Owner = &m.Member
		}
	}
}

// addOverdue finds the ticks that should have been dealt with.
func (r *Report) addOverdue() {
	schedule, err := r.Schedule()
	if err != nil || !r.Paused.IsZero() {
		return
	}
	until := r.At
	if r.Owner != nil {
		if len(r.Running) > len(r.Abandoned) || r.HoldUntil.After(r.At) {
			return // they may wait for a run or a hold, by the job's policies
		}
		until = r.At.Add(-r.Jitter).Add(-overdueAfter) // not in one sum, which may overflow
	}
	if from := latestOf(r.Registered, r.Since, r.Last); until.After(from) {
		r.Overdue = schedule.findDueTicks(from, until).asGap("")
	}
}

// addFindings finds what is wrong with the job.
func (r *Report) addFindings() {
	add := func(problem Problem, since time.Time, format string, args ...any) {
		r.Findings = append(r.Findings, Finding{problem, since, fmt.Sprintf(format, args...)})
	}
	schedule, err := r.Schedule()
	// not a job of At that has run, or whose time is over
	hasWork := err != nil || r.Overdue.Count > 0 || len(r.Running)+len(r.State.Pending) > 0 ||
		!schedule.Next(r.At).IsZero()
	switch {
	case r.Owner == nil && hasWork:
		text := r.withoutOwner()
		if r.Overdue.Count > 0 {
			text += fmt.Sprintf("; %s due since %s", countOf(r.Overdue.Count, "tick"), formatInstant(r.Overdue.From))
		} else {
			text += fmt.Sprintf("; a member last dealt with it at %s, and no tick is due since", formatInstant(r.Alive))
		}
		// zero if no tick is due: the servers do not tell when the members left
		add(ProblemNoMember, r.Overdue.From, "%s", text)
	case r.Owner != nil && r.Overdue.Count > 0:
		add(ProblemOverdue, r.Overdue.From, "%s overdue since %s, although %s has the job",
			countOf(r.Overdue.Count, "tick"), formatInstant(r.Overdue.From), r.Owner.ID)
	}
	for _, run := range r.Running {
		if run.Stuck {
			add(ProblemStuck, run.Started, "run %d does not return on %s", run.Number, run.Runner)
		}
	}
	if last := r.LastRun; last != nil && last.Outcome.IsFailure() {
		text := fmt.Sprintf("the latest run %s", last.Outcome)
		if last.Outcome == Lost {
			text = "the latest run was lost with its member"
		}
		if last.Error != "" {
			text += ": " + last.Error
		}
		add(ProblemFailed, last.Started, "%s", text)
	}
	if g, missed := r.latestMissed(); missed {
		add(ProblemMissed, g.From, "the latest tick did not run: %s, %s until %s", g.Reason, countOf(g.Count, "tick"),
			formatInstant(g.To))
	}
	if err != nil {
		add(ProblemSchedule, time.Time{}, "%v", err)
	}
}

// withoutOwner says why no member runs the job.
func (r *Report) withoutOwner() string {
	switch {
	case len(r.Members) == 0 && r.Leader != "":
		return fmt.Sprintf("no member has it; %s leads without it", r.Leader)
	case len(r.Members) == 0:
		return string(ProblemNoMember)
	case r.Leader != "":
		return fmt.Sprintf("%s leads and does not have it; %s does", r.Leader, r.Members[0].ID)
	}
	return "no member leads"
}

// latestMissed returns the latest gap, and whether it includes the latest tick and counts as a
// problem.
func (r *Report) latestMissed() (Gap, bool) {
	if len(r.Gaps) == 0 {
		return Gap{}, false
	}
	g := r.Gaps[len(r.Gaps)-1]
	switch g.Reason {
	case ReasonNoLeader, ReasonLate, ReasonBusy:
		return g, !g.To.Before(r.Last) && len(r.Running) == 0
	}
	return g, false // a lost run is found as such
}

func countOf(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func formatInstant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
