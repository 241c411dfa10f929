package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// Scheduler is one member of a cluster that runs jobs on schedules. Make it with New, give it the jobs with Add,
// and Run it. Its other methods look at, and change, the cluster's jobs; they need no Run.
type Scheduler struct {
	client      *framework.Client
	path        string
	election    *election.Election
	tel         telemetry
	nonce       string // tells members of one session apart
	err         error  // of the arguments
	waitForJobs bool

	drain      time.Duration
	stuckAfter time.Duration
	history    int
	labels     map[string]string
	now        func() time.Time
	observe    func(Event)
	maxPause   time.Duration
	slots      runSlots

	jobsChanged chan struct{} // wakes campaign and waitForJob; buffered

	mu            sync.Mutex
	jobs          map[string]*job
	local         map[string]*localRuns // of the jobs that it has, and of those that still run here
	current       *activation           // nil unless it runs
	activeSession *memberSession        // the present one, or nil
	term          *election.Term        // while this member leads
}

// activation is one call of Run.
type activation struct {
	ctx       context.Context // of the call: no run is started once it is done
	cut       context.Context // done when runs have been given long enough to finish
	done      context.Context // done when nothing is waited for any more
	runs      sync.WaitGroup
	listeners sync.WaitGroup // those who listen to changes

	joining    context.Context // done when no job is registered any more
	joins      sync.WaitGroup  // of jobs that are added or updated meanwhile
	registered chan struct{}   // closed when the jobs that were there first are registered

	over bool // nothing is added to runs, joins and ears any more; guarded by the scheduler
}

// New returns a scheduler at path, on a client. Members with the same path are one cluster. Nothing is
// created before Run. An argument that cannot be used makes every call return an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Scheduler {
	s := &Scheduler{
		client: client, path: path, nonce: uuid.NewString()[:8], jobs: map[string]*job{}, local: map[string]*localRuns{},
		drain: DefaultDrain, stuckAfter: DefaultStuckAfter, history: DefaultHistory, now: time.Now, maxPause: maxPause,
		jobsChanged: make(chan struct{}, 1),
	}
	if s.err = s.check(); s.err != nil {
		return s
	}
	s.election, s.tel = election.New(client, framework.Join(path, "election")), newTelemetry(client, path)
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(s); err != nil && s.err == nil {
			s.err = err
		}
	}
	return s
}

func (s *Scheduler) check() error {
	if s.client == nil {
		return errors.New("the client is nil")
	}
	return framework.ValidatePath(s.path)
}

// Err says what is wrong with the arguments of New, or is nil. The other methods return it, too.
func (s *Scheduler) Err() error { return framework.Wrap("schedule", s.path, s.err) }

// Path is the scheduler's directory.
func (s *Scheduler) Path() string { return s.path }

// Election is the one that decides which member leads. It is for looking at.
func (s *Scheduler) Election() *election.Election { return s.election }

// Add gives this member a job, before Run or while it runs. In the latter case the job is registered in the
// background, and trouble with that is logged, told to the observer and retried. Its error wraps
// ErrInvalidJob, ErrInvalidSpec or ErrDuplicateJob.
func (s *Scheduler) Add(j Job) error {
	if s.err != nil {
		return framework.Wrap("schedule", s.path, s.err)
	}
	added, err := newJob(j)
	if err != nil {
		return framework.Wrap("schedule", s.path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.Name] != nil {
		return framework.Wrap("schedule", s.path, fmt.Errorf("%w %q", ErrDuplicateJob, j.Name))
	}
	added.local = s.useRuns(j.Name)
	added.local.latest = added
	s.jobs[j.Name] = added
	s.signalJobsChanged()
	s.registerInBackground(added, nil)
	return nil
}

// Update gives a job that this member has another definition: function, policies, placement and labels. Runs that
// start after it has returned have the new one; those that go on keep the old. A spec, zone or revision that differs
// replaces the stored schedule as it does when a member is started with it, and in the background as with Add.
// Other members keep their own definitions.
//
// Its error wraps ErrInvalidJob, ErrInvalidSpec, or ErrUnknownJob if this member does not have the job.
func (s *Scheduler) Update(j Job) error {
	if s.err != nil {
		return framework.Wrap("update", s.path, s.err)
	}
	updated, err := newJob(j)
	if err != nil {
		return framework.Wrap("update", s.path, err)
	}
	s.mu.Lock()
	old := s.jobs[j.Name]
	if old == nil {
		s.mu.Unlock()
		return framework.Wrap("update", s.path, fmt.Errorf("%w %q: this member does not have it", ErrUnknownJob, j.Name))
	}
	updated.updated, updated.local = true, s.useRuns(j.Name)
	updated.local.latest = updated
	updated.generation.Store(old.generation.Load())
	updated.entered.Store(old.entered.Load())
	old.left.Store(true)
	s.leaveRuns(old.local)
	s.jobs[j.Name] = updated
	s.signalJobsChanged()
	s.registerInBackground(updated, old)
	s.mu.Unlock()
	s.assignJobs()
	return nil
}

// Withdraw takes a job from this member: it claims no run of it any more, except that a claim which is under way may
// still become a run. The job stays registered, and other members
// that have it run it. Runs that go on here finish. While no other member has the job, its ticks wait, and are then
// run or missed by the misfire policy of the member that gets it; so they do while the leader lacks a job of OnLeader.
// The member may Add the job again.
//
// Its error wraps ErrInvalidJob, or ErrUnknownJob if this member does not have the job.
func (s *Scheduler) Withdraw(name string) error {
	if err := s.checkName(name); err != nil {
		return framework.Wrap("withdraw", s.path, err)
	}
	j := s.jobNamed(name)
	if j == nil || !s.dropDefinition(j) {
		return framework.Wrap("withdraw", s.path, fmt.Errorf("%w %q: this member does not have it", ErrUnknownJob, name))
	}
	s.updateDescriptionLater(j)
	return nil
}

// jobNamed is this member's definition of a job, or nil.
func (s *Scheduler) jobNamed(name string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[name]
}

// dropDefinition takes a definition from this member, and reports false if it was not the member's any more. Runs go on.
func (s *Scheduler) dropDefinition(j *job) bool {
	s.mu.Lock()
	if s.jobs[j.Name] != j {
		s.mu.Unlock()
		return false
	}
	delete(s.jobs, j.Name)
	j.left.Store(true)
	s.leaveRuns(j.local)
	s.signalJobsChanged()
	sh := s.activeSession
	s.mu.Unlock()
	if sh != nil {
		sh.jobsMu.Lock()
		if p := sh.posts[j.Name]; p != nil && p.job == j {
			sh.unassign(p)
		}
		sh.jobsMu.Unlock()
	}
	return true
}

// updateDescriptionLater tells the others, in the background, that this member does not have a job of Placement Spread any more.
func (s *Scheduler) updateDescriptionLater(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh := s.activeSession; sh != nil && j.Placement == Spread && !sh.activation.over {
		sh.activation.listeners.Go(sh.updateDescriptionUntilDone)
	}
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
		if !s.waitForJobs || !errors.Is(err, ErrNoJobs) { // the only job may be gone before runJobs looks
			return err
		}
		if s.waitForJob(ctx) != nil {
			return nil
		}
	}
}

// runJobs is Run for a scheduler that has a job.
func (s *Scheduler) runJobs(ctx context.Context) error {
	cut, end := context.WithCancelCause(context.Background())
	defer end(ErrDrained)
	done, finish := context.WithCancel(context.Background())
	defer finish()
	joining, noMore := context.WithCancel(ctx)
	defer noMore()
	t := &activation{ctx: ctx, cut: cut, done: done, joining: joining, registered: make(chan struct{})}
	if err := s.beginRunning(t); err != nil {
		return framework.Wrap("schedule", s.path, err)
	}
	defer s.endRunning()
	err := s.registerJobs(ctx)
	close(t.registered)
	if err == nil {
		err = s.campaignAndTakePart(t)
	}
	noMore()
	stuck := s.drainRuns(t, end)
	finish()
	t.listeners.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	return framework.Wrap("schedule", s.path, errors.Join(err, stuck))
}

func (s *Scheduler) beginRunning(t *activation) error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != nil:
		return ErrRunning
	case len(s.jobs) == 0:
		return ErrNoJobs
	}
	for _, j := range s.jobs {
		j.updated = false // registered anew if they were removed
	}
	s.current = t
	return nil
}

func (s *Scheduler) endRunning() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
}

// campaignAndTakePart campaigns, if there are jobs of OnLeader, and takes part until ctx ends or one of them cannot go on.
func (s *Scheduler) campaignAndTakePart(t *activation) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	var campaign sync.WaitGroup
	var failed error
	campaign.Go(func() {
		defer cancel()
		failed = s.campaignWhileNeeded(ctx)
	})
	err := s.takePart(ctx, t)
	cancel()
	campaign.Wait()
	if t.ctx.Err() != nil {
		return nil
	}
	if errors.Is(failed, context.Canceled) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// holdTerm holds a term. What it guards is refused once it is over, so that there is nothing to wait for.
func (s *Scheduler) holdTerm(ctx context.Context, term *election.Term) error {
	leading := Event{Kind: EventLeading, Run: Run{Token: term.Token()}}
	s.sendEvent(leading)
	s.leadTerm(term)
	<-ctx.Done()
	s.leadTerm(nil)
	leading.Kind = EventFollowing
	s.sendEvent(leading)
	return nil
}

func (s *Scheduler) leadTerm(term *election.Term) {
	s.mu.Lock()
	s.term = term
	s.mu.Unlock()
	s.assignJobs()
}

// drainRuns waits for the runs that go on, and ends their contexts in time. Its error tells which do not
// return.
func (s *Scheduler) drainRuns(t *activation, cut context.CancelCauseFunc) error {
	s.mu.Lock()
	t.over = true
	s.mu.Unlock()
	t.joins.Wait()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.runs.Wait()
	}()
	if waitAtMost(done, s.drain) {
		return nil
	}
	cut(ErrDrained)
	if waitAtMost(done, s.stuckAfter) {
		return nil
	}
	var names []string
	for _, l := range s.runningJobs() {
		names = append(names, l.name)
	}
	return fmt.Errorf("%w: %q", ErrStuck, names)
}

// waitAtMost waits for done until d has passed, and reports whether it came.
func waitAtMost(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// knownJobs are this member's jobs, by name.
func (s *Scheduler) knownJobs() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := make([]*job, 0, len(s.jobs))
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		jobs = append(jobs, s.jobs[name])
	}
	return jobs
}

// runningJobs are the jobs, sorted by name, of which runs go on in this member, also those that it does not have any more.
func (s *Scheduler) runningJobs() (going []*localRuns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.local)) {
		if l := s.local[name]; len(l.allRuns()) > 0 {
			going = append(going, l)
		}
	}
	return going
}

// directory holds the jobs' states, node is that of one, claim that of one of its runs.
func (s *Scheduler) directory() string       { return framework.Join(s.path, "jobs") }
func (s *Scheduler) members() string         { return framework.Join(s.path, "members") }
func (s *Scheduler) changes() string         { return framework.Join(s.path, "changes") }
func (s *Scheduler) removedNode() string     { return framework.Join(s.path, "removed") }
func (s *Scheduler) node(name string) string { return framework.Join(s.directory(), name) }
func (s *Scheduler) claim(name string, number int64) string {
	return framework.Join(s.node(name), fmt.Sprintf("%s%d", claimPrefix, number))
}
