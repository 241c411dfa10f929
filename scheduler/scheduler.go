package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Scheduler is one member of a cluster that runs jobs on schedules. Make it with New, give it the jobs with Add,
// and Run it. Its other methods read, and change, the cluster's jobs; they need no Run.
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

// New returns a scheduler at path, on a client. Members with the same path are one cluster. New creates no
// node; Run does. An argument that cannot be used makes every call return an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Scheduler {
	s := &Scheduler{jobs: newJobTable(), store: &store{client: client, nodes: nodes(path)}}
	switch {
	case client == nil:
		s.err = errors.New("the client is nil")
	default:
		s.err = framework.ValidatePath(path)
	}
	if s.err != nil {
		return s
	}
	s.settings, s.err = newSettings(opts)
	s.store.history = int64(s.settings.history)
	s.slots = &runSlots{most: s.settings.maxConcurrent}
	s.report = &reporter{path: path, log: client.Logger(), tel: newTelemetry(client, path), now: s.settings.now, observe: s.settings.observe}
	s.leadership = &leadership{election: election.New(client, s.store.nodes.election()), jobs: s.jobs, report: s.report}
	s.participation = &participation{
		settings: &s.settings, store: s.store, report: s.report, jobs: s.jobs, slots: s.slots, leadership: s.leadership, nonce: uuid.NewString()[:8],
	}
	s.leadership.changed = s.participation.assignJobs
	s.registrar = &registrar{store: s.store, report: s.report, jobs: s.jobs, removed: s.participation.dropRemoved, entered: s.participation.takeUp}
	return s
}

// Err says what is wrong with the arguments of New, or is nil. The other methods return it, too.
func (s *Scheduler) Err() error { return failure.Wrap("schedule", s.Path(), s.err) }

// Path is the scheduler's directory.
func (s *Scheduler) Path() string { return string(s.store.nodes) }

// Add gives this member a job, before Run or while it runs. In the latter case the job is registered in the
// background, and failures of it are logged, reported to the observer and retried. Its error wraps
// ErrInvalidJob, ErrInvalidSpec or ErrDuplicateJob.
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

// Update gives a job that this member has another definition: function, policies, placement and labels. Runs that
// start after it has returned have the new one; those that go on keep the old. A spec, zone or revision that differs
// replaces the stored schedule as it does when a member is started with it, and in the background as with Add.
// Other members keep their own definitions.
//
// Its error wraps ErrInvalidJob, ErrInvalidSpec, or ErrUnknownJob if this member does not have the job.
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

// Withdraw takes a job from this member: it claims no run of it any more, except that a claim which is under way may
// still become a run. The job stays registered, and other members
// that have it run it. Runs that go on here finish. While no other member has the job, its ticks wait, and are then
// run or missed by the misfire policy of the member that gets it; so they do while the leader lacks a job of OnLeader.
// The member may Add the job again.
//
// Its error wraps ErrInvalidJob, or ErrUnknownJob if this member does not have the job.
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

// Run registers the jobs, takes part, and runs those that belong to this member, until ctx ends. Then no run is
// started any more, other members take over at once, and those that go on here may finish within the drain
// time; after that their contexts end. Run returns once all have returned and are recorded: nil, or an error
// that wraps ErrStuck and names the runs that do not return.
//
// Its error otherwise wraps ErrBadState or ErrNewerState, when a job's stored state does not allow to
// run it; ErrNoJobs, unless WithWaitForJobs is given; ErrRunning; framework.ErrClosed, framework.ErrNoAuth or framework.ErrInvalidPath.
func (s *Scheduler) Run(ctx context.Context) error {
	for {
		err := s.runJobs(ctx)
		if !s.settings.waitForJobs || !errors.Is(err, ErrNoJobs) { // the only job may be gone before runJobs begins
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
	if !a.drainRuns(s.settings.drain, s.settings.stuckAfter) {
		stuck = fmt.Errorf("%w: %q", ErrStuck, s.jobs.runningNames())
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
		return ErrRunning
	case s.jobs.isEmpty():
		return ErrNoJobs
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

// campaignAndTakePart campaigns, if there are jobs of OnLeader, and takes part until the activation's context ends or one of both cannot
// go on.
func (s *Scheduler) campaignAndTakePart(a *activation) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	var campaign sync.WaitGroup
	var failed error
	campaign.Go(func() {
		defer cancel()
		failed = s.leadership.campaignWhileJobs(ctx)
	})
	err := s.participation.takePart(ctx, a)
	cancel()
	campaign.Wait()
	if a.ctx.Err() != nil {
		return nil
	}
	if errors.Is(failed, context.Canceled) {
		failed = nil
	}
	return errors.Join(err, failed)
}
