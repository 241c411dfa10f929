package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Scheduler is one member of a cluster that runs jobs on schedules. Make it with New, give it the
// jobs with Add, and Run it. Its other methods read, and change, the cluster's jobs; they need no
// Run.
type Scheduler struct {
	err           error // of the arguments
	settings      settings
	store         *store
	report        *reporter
	jobs          *jobTable
	slots         *runSlots
	leadership    *leadership
	participation *participation
	registrar     *registrar

	mu      sync.Mutex  // also makes the registrations of added jobs begin in the order of the table's changes
	running *activation // nil unless it runs
}

// New returns a scheduler at path, on a client. Members with the same path are one cluster. New
// creates no node; Run does. An argument that cannot be used makes every call return an error that
// says so.
func New(client *framework.Client, path string, opts ...Option) *Scheduler {
	s := &Scheduler{jobs: newJobTable(), store: &store{client: client, nodes: joblayout.Scheduler(path)}}
	if s.err = recipe.CheckClientAndPath(client, path, "a scheduler"); s.err != nil {
		return s
	}
	s.settings, s.err = newSettings(opts)
	s.store.history = int64(s.settings.history)
	s.slots = &runSlots{most: s.settings.maxConcurrent}
	s.report = &reporter{path: path, log: client.Logger(), tel: newTelemetry(client, path), now: s.settings.now,
		onEvent: s.settings.onEvent}
	s.leadership = &leadership{client: client, election: election.New(client, s.store.nodes.Election()), jobs: s.jobs,
		report: s.report}
	s.participation = &participation{
		settings: &s.settings, store: s.store, report: s.report, jobs: s.jobs, slots: s.slots, leadership: s.leadership,
		nonce: uuid.NewString()[:8],
	}
	s.leadership.changed = s.participation.assignJobs
	s.registrar = &registrar{store: s.store, report: s.report, jobs: s.jobs, removed: s.participation.dropRemoved,
		publishAndAssign: s.participation.publishAndAssign}
	return s
}

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (s *Scheduler) Validate() error { return failure.Wrap("schedule", s.Path(), s.err) }

// Grace returns how long runs may go on when the scheduler is stopped; see WithGrace.
func (s *Scheduler) Grace() time.Duration { return s.settings.grace }

// Path is the scheduler's directory.
func (s *Scheduler) Path() string { return string(s.store.nodes) }

// Add gives this member a job, before Run or while it runs. In the latter case the job is
// registered in the background, and failures of it are logged, passed to WithOnEvent, and
// retried. Its error wraps framework.ErrInvalid.
func (s *Scheduler) Add(j Job) error {
	added, err := s.defineJob(j)
	if err != nil {
		return failure.Wrap("schedule", s.Path(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.jobs.addJob(added); err != nil {
		return failure.Wrap("schedule", s.Path(), err)
	}
	if s.running != nil {
		s.registrar.registerInBackground(s.running, added, nil)
	}
	return nil
}

func (s *Scheduler) defineJob(j Job) (*job, error) {
	if s.err != nil {
		return nil, s.err
	}
	return newJob(j)
}

// Update replaces this member's definition of a job: function, policies, placement and labels. A
// run that starts after Update has returned uses the new definition. A run that goes on keeps the
// old one, and so does a run whose claim was under way when the job was withdrawn. A spec, zone,
// description or revision that differs replaces the stored schedule as when a member is started
// with it, and in the background as with Add. Other members keep their own definitions.
//
// Its error wraps framework.ErrInvalid, or framework.ErrNotFound if this member does not have the
// job.
func (s *Scheduler) Update(j Job) error {
	updated, err := s.defineJob(j)
	if err == nil {
		err = s.replaceDefinition(updated)
	}
	if err != nil {
		return failure.Wrap("update", s.Path(), err)
	}
	s.participation.assignJobs()
	return nil
}

func (s *Scheduler) replaceDefinition(updated *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.jobs.replaceJob(updated)
	if err == nil && s.running != nil {
		s.registrar.registerInBackground(s.running, updated, old)
	}
	return err
}

// Withdraw takes a job from this member, which then claims no further run of it; a claim that is
// under way may still become a run. The job stays registered, and other members that have it run
// it. Runs that go on here finish. While no other member has the job, or the leader lacks a job of
// OnLeader, its ticks wait. The member that gets the job runs or misses them by its misfire policy.
// This member may Add the job again.
//
// Its error wraps framework.ErrInvalid, or framework.ErrNotFound if this member does not have the
// job.
func (s *Scheduler) Withdraw(name string) error {
	err := s.checkName(name)
	if err == nil {
		j := s.jobs.findJob(name)
		if j == nil || !s.participation.dropJob(j) {
			err = errNotHere(name)
		} else {
			s.participation.describeLater()
		}
	}
	return failure.Wrap("withdraw", s.Path(), err)
}

// Run registers the jobs, becomes a member, and runs the jobs that belong to this member, until ctx
// ends. Then it starts no further run, other members take the jobs over at once, and runs that go
// on here may finish within the grace (WithGrace); after that their contexts end. Run returns once
// all runs have returned and their outcomes are stored: nil, or an error that wraps
// framework.ErrUnfinished and names the jobs with a run that has not returned within
// WithStuckAfter.
//
// Otherwise its error wraps framework.ErrBadRecord or framework.ErrNewer, when a job's stored state
// cannot be read; framework.ErrInvalid for a scheduler that has no jobs, unless WithWaitForJobs is
// given, or that is running; framework.ErrClosed, framework.ErrAuthFailed; a refusal of the servers
// or of the client, such as framework.ErrNoAuth, framework.ErrQuotaExceeded or
// framework.ErrTooLarge; or another error of election.Election.Campaign, such as
// framework.ErrForeign.
//
// Once this member's node is there, a refusal of a later node does not end Run: Run logs it, stays
// out of the election and tries again. Two minutes after the jobs are registered, Run tries a
// failed campaign again, too. Only framework.ErrClosed and framework.ErrAuthFailed end Run then.
func (s *Scheduler) Run(ctx context.Context) error {
	for {
		err := s.runJobs(ctx)
		if !s.settings.waitForJobs || !errors.Is(err, errNoJobs) { // the only job may be gone before runJobs begins
			return err
		}
		for s.jobs.isEmpty() {
			select {
			case <-s.jobs.changed:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// runJobs is Run for a scheduler that has a job.
func (s *Scheduler) runJobs(ctx context.Context) error {
	a := newActivation(ctx)
	defer a.endContexts()
	if err := s.beginRun(a); err != nil {
		return failure.Wrap("schedule", s.Path(), err)
	}
	defer s.endRun()
	err := s.registrar.registerAll(ctx)
	close(a.registered)
	if err == nil {
		err = s.campaignAndTakePart(a)
	}
	var stuck error
	if !a.drainRuns(drain.Grace(ctx, s.settings.grace), s.settings.stuckAfter) {
		stuck = fmt.Errorf("%w: %q", errStuck, s.jobs.runningNames())
	}
	a.finish()
	a.listeners.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	return failure.Wrap("schedule", s.Path(), errors.Join(err, stuck))
}

func (s *Scheduler) beginRun(a *activation) error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running != nil:
		return errRunning
	case s.jobs.isEmpty():
		return errNoJobs
	}
	s.jobs.allowReregistration()
	s.running = a
	return nil
}

func (s *Scheduler) endRun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
}

// campaignAndTakePart campaigns while there are jobs of OnLeader, and takes part. It returns when
// the activation's context ends, or when the campaign or the participation has failed for good.
func (s *Scheduler) campaignAndTakePart(a *activation) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	var campaign sync.WaitGroup
	var failed error
	campaign.Go(func() {
		defer cancel()
		failed = s.leadership.campaignWhileJobs(ctx)
	})
	err := s.participation.runMemberSessions(ctx, a)
	cancel()
	campaign.Wait()
	if a.ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, failed)
}
