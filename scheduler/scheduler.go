package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// Scheduler is one member of a cluster that runs jobs on schedules. Make it with New, give it the jobs with Add,
// and Run it.
type Scheduler struct {
	client   *framework.Client
	path     string
	election *election.Election
	drain    time.Duration
	now      func() time.Time
	observe  func(Event)
	err      error // of the arguments

	mu      sync.Mutex
	jobs    []*job
	running bool

	runs sync.WaitGroup
	cut  context.Context // done when runs have been given long enough to finish
}

// New returns a scheduler at path, on a client. Members with the same path are one cluster. Nothing is
// created before Run. An argument that cannot be used makes every call return an error that says so.
func New(client *framework.Client, path string, opts ...Option) *Scheduler {
	s := &Scheduler{client: client, path: path, drain: DefaultDrain, now: time.Now}
	if s.err = s.check(); s.err != nil {
		return s
	}
	s.election = election.New(client, framework.Join(path, "election"))
	for _, o := range opts {
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

// Path is the scheduler's directory.
func (s *Scheduler) Path() string { return s.path }

// Election is the one that decides which member schedules. It is for looking at.
func (s *Scheduler) Election() *election.Election { return s.election }

// Add gives the scheduler a job, before Run. Its error wraps ErrInvalidJob, ErrInvalidSpec, ErrDuplicateJob
// or ErrRunning.
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
	switch {
	case s.running:
		err = fmt.Errorf("%w: job %q must be added before", ErrRunning, j.Name)
	case slices.ContainsFunc(s.jobs, func(o *job) bool { return o.Name == j.Name }):
		err = fmt.Errorf("%w %q", ErrDuplicateJob, j.Name)
	default:
		s.jobs = append(s.jobs, added)
	}
	return framework.Wrap("schedule", s.path, err)
}

// Run registers the jobs, campaigns, and schedules while this member leads, until ctx ends. Then it
// resigns, lets runs finish within the drain time, ends their contexts after that, and returns nil once
// all have returned.
//
// Its error wraps ErrSpecMismatch, ErrBadState or ErrNewerState, when a job's stored state does not allow to
// run it; ErrNoJobs; ErrRunning; framework.ErrClosed, framework.ErrNoAuth or framework.ErrInvalidPath.
func (s *Scheduler) Run(ctx context.Context) error {
	jobs, err := s.begin()
	if err != nil {
		return framework.Wrap("schedule", s.path, err)
	}
	defer s.end()
	for _, j := range jobs {
		if err == nil {
			_, err = s.register(ctx, j)
		}
	}
	if err == nil {
		err = s.work(ctx, jobs)
	}
	if ctx.Err() != nil {
		return nil
	}
	return framework.Wrap("schedule", s.path, err)
}

func (s *Scheduler) begin() ([]*job, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running:
		return nil, ErrRunning
	case len(s.jobs) == 0:
		return nil, ErrNoJobs
	}
	s.running = true
	return s.jobs, nil
}

func (s *Scheduler) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// work campaigns and leads until ctx ends, and drains.
func (s *Scheduler) work(ctx context.Context, jobs []*job) error {
	var cut context.CancelCauseFunc
	s.cut, cut = context.WithCancelCause(context.Background())
	defer cut(nil)
	err := s.election.Lead(ctx, func(ctx context.Context, term *election.Term) error {
		return s.lead(ctx, term, jobs)
	})
	t := time.AfterFunc(s.drain, func() { cut(ErrDrained) })
	defer t.Stop()
	s.runs.Wait()
	return err
}

// Jobs lists the names of the jobs that are registered at the path, sorted.
func (s *Scheduler) Jobs(ctx context.Context) ([]string, error) {
	if s.err != nil {
		return nil, framework.Wrap("jobs", s.path, s.err)
	}
	names, _, err := s.client.Children(ctx, s.directory())
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, framework.Wrap("jobs", s.path, err)
}

// State reads the stored state of a job, which this member need not have. Its error wraps ErrUnknownJob,
// ErrInvalidJob, ErrBadState or ErrNewerState.
func (s *Scheduler) State(ctx context.Context, name string) (State, error) {
	err := s.err
	if err == nil {
		err = validName(name)
	}
	if err != nil {
		return State{}, framework.Wrap("state", s.path, err)
	}
	data, st, err := s.client.Get(ctx, s.node(name))
	if errors.Is(err, framework.ErrNoNode) {
		err = fmt.Errorf("%w %q", ErrUnknownJob, name)
	}
	if err != nil {
		return State{}, framework.Wrap("state", s.path, err)
	}
	state, err := decodeState(data)
	state.Registered = st.Ctime.UTC()
	return state, framework.Wrap("state", s.node(name), err)
}

// directory holds the jobs' states, node is that of one, claim that of its run.
func (s *Scheduler) directory() string        { return framework.Join(s.path, "jobs") }
func (s *Scheduler) node(name string) string  { return framework.Join(s.directory(), name) }
func (s *Scheduler) claim(name string) string { return framework.Join(s.node(name), "run") }
