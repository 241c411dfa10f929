package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// JobReport is a job's state, its members and its problems at one moment.
type JobReport struct {
	State
	// At is the time of the report, by this machine's clock.
	At time.Time
	// Overdue are the due ticks that were neither run nor recorded as missed, without a known reason. It
	// has no Reason. For a job without an owner these are all due ticks. Otherwise a tick is overdue 75 s after its start time: members wait
	// so long when the clocks differ.
	Overdue Gap
	// Members are the members that have the job and its labels, by ID.
	Members []Member
	// Owner is the member that starts the job's runs, or nil if no member does.
	Owner *Member
	// Leader is the id of the scheduler's leader, or "". If there is a leader and no Owner, the leader does not have the job.
	Leader string
	// Abandoned are the runs among Running whose member is gone. The next owner records them as lost.
	Abandoned []RunRecord
	// Alive is the latest time at which a member is known to have dealt with the job.
	Alive time.Time
	// Findings are what is wrong with the job, the most urgent first. A paused job is not wrong.
	Findings []Finding
}

// Member is one scheduler that takes part.
type Member struct {
	// ID is its client's identity.
	ID string
	// Session is the number of its session.
	Session int64
	// Labels are those of WithLabels.
	Labels map[string]string
	// Since is when it joined, by the ensemble's clock.
	Since time.Time
	// Leads says that it is the leader.
	Leads bool
}

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
	// ProblemMissed: the latest tick did not run, for another reason than a pause, a change, the overlap policy or the job's MinHold.
	ProblemMissed Problem = "missed"
	// ProblemSchedule: this machine cannot read the stored schedule.
	ProblemSchedule Problem = "unreadable schedule"
)

// Finding is one problem of a job.
type Finding struct {
	Problem Problem
	// Since is when it began, or the zero time.
	Since time.Time
	// Text says it in words, without the job's name.
	Text string
}

// overdueAfter is how late a tick may be while its job has an owner: OnTime, and the delay when the clocks differ.
const overdueAfter = OnTime + MaxAhead + behindAfter

// Inspect reports on a job. Nothing is written. This member need not have the job, and need not run. The report is of the connected
// server, which may lag behind the others. Its error wraps ErrUnknownJob, ErrInvalidJob, ErrBadState or ErrNewerState.
func (s *Scheduler) Inspect(ctx context.Context, name string) (JobReport, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return JobReport{}, err
	}
	members, err := s.readMembers(ctx)
	if err != nil {
		return JobReport{}, failure.Wrap("inspect", s.Path(), err)
	}
	report, err := s.newReport(ctx, state, members)
	return report, failure.Wrap("inspect", s.store.nodes.job(name), err)
}

// InspectAll reports on all jobs that are registered at the path, sorted by name. Of jobs that cannot be read, it returns the errors beside
// the other jobs' reports, as Jobs does.
func (s *Scheduler) InspectAll(ctx context.Context) ([]JobReport, error) {
	states, err := s.Jobs(ctx)
	if len(states) == 0 {
		return nil, err
	}
	members, errMembers := s.readMembers(ctx)
	if errMembers != nil {
		return nil, errors.Join(err, failure.Wrap("inspect", s.Path(), errMembers))
	}
	reports, errs := make([]JobReport, len(states)), make([]error, len(states))
	slots := make(chan struct{}, maxParallel)
	var all sync.WaitGroup
	for i, state := range states {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			reports[i], errs[i] = s.newReport(ctx, state, members)
		})
	}
	all.Wait()
	return reports, errors.Join(append(errs, err)...)
}

// presentMember is a member and the description that it has stored.
type presentMember struct {
	Member
	member
}

// readMembers reads the members and the leader.
func (s *Scheduler) readMembers(ctx context.Context) ([]presentMember, error) {
	names, _, err := s.store.client.Children(ctx, s.store.nodes.members())
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	leader, err := s.leadership.election.Leader(ctx)
	if err != nil && !errors.Is(err, election.ErrNoLeader) {
		return nil, err
	}
	var present []presentMember
	for _, name := range names {
		data, st, err := s.store.client.Get(ctx, s.store.nodes.member(name))
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		described, err := decodeMember(name, data)
		if errors.Is(err, ErrBadState) || errors.Is(err, ErrNewerState) {
			continue // it gets no jobs from others either
		}
		if err != nil {
			return nil, err
		}
		leads := leader.Node != "" && leader.Session == st.EphemeralOwner
		present = append(present, presentMember{
			Member{ID: described.id, Session: st.EphemeralOwner, Labels: described.labels, Since: st.Ctime.UTC(), Leads: leads}, described,
		})
	}
	slices.SortFunc(present, func(a, b presentMember) int {
		return strings.Compare(a.ID+"\x00"+a.node, b.ID+"\x00"+b.node)
	})
	return present, nil
}

// newReport adds the members and the clock to a state.
func (s *Scheduler) newReport(ctx context.Context, state State, present []presentMember) (JobReport, error) {
	r := JobReport{State: state, At: s.report.now()}
	r.addMembers(present)
	for _, run := range state.Running {
		_, err := s.store.client.Exists(ctx, s.store.nodes.claim(state.Name, run.Number))
		if errors.Is(err, framework.ErrNoNode) {
			r.Abandoned = append(r.Abandoned, run)
		} else if err != nil {
			return r, err
		}
	}
	r.Alive = latestOf(state.Registered, state.Last)
	if state.LastRun != nil {
		r.Alive = latestOf(r.Alive, state.LastRun.Started, state.LastRun.Ended)
	}
	r.findProblems()
	return r, nil
}

// findProblems compares the state with the members and the clock.
func (r *JobReport) findProblems() {
	r.Overdue, r.Findings = Gap{}, nil
	r.addOverdue()
	r.addFindings()
}

// addMembers finds the members that have the job, and the one that it belongs to.
func (r *JobReport) addMembers(present []presentMember) {
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
func (r *JobReport) addOverdue() {
	schedule, err := r.Schedule()
	if err != nil || !r.Paused.IsZero() {
		return
	}
	until := r.At
	if r.Owner != nil {
		if len(r.Running) > len(r.Abandoned) || r.HoldUntil.After(r.At) {
			return // they may wait for a run or a hold, by the job's policies
		}
		until = r.At.Add(-overdueAfter - r.Jitter)
	}
	if from := latestOf(r.Registered, r.Since, r.Last); until.After(from) {
		r.Overdue = schedule.findDueTicks(from, until).asGap("")
	}
}

// addFindings finds what is wrong with the job.
func (r *JobReport) addFindings() {
	add := func(problem Problem, since time.Time, format string, args ...any) {
		r.Findings = append(r.Findings, Finding{problem, since, fmt.Sprintf(format, args...)})
	}
	if r.Owner == nil {
		text, since := r.withoutOwner(), r.Alive
		if r.Overdue.Count > 0 {
			since = r.Overdue.From
			text += fmt.Sprintf("; %s due since %s", countOf(r.Overdue.Count, "tick"), formatInstant(since))
		} else {
			text += fmt.Sprintf("; a member last dealt with it at %s", formatInstant(since))
		}
		add(ProblemNoMember, since, "%s", text)
	} else if r.Overdue.Count > 0 {
		add(ProblemOverdue, r.Overdue.From, "%s overdue since %s, although %s has the job", countOf(r.Overdue.Count, "tick"), formatInstant(r.Overdue.From), r.Owner.ID)
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
		add(ProblemMissed, g.From, "the latest tick did not run: %s, %s until %s", g.Reason, countOf(g.Count, "tick"), formatInstant(g.To))
	}
	if _, err := r.Schedule(); err != nil {
		add(ProblemSchedule, time.Time{}, "%v", err)
	}
}

// withoutOwner says why no member runs the job.
func (r *JobReport) withoutOwner() string {
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

// latestMissed returns the latest gap, and whether it includes the latest tick and counts as a problem.
func (r *JobReport) latestMissed() (Gap, bool) {
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
