package scheduler

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Job is a function that the cluster runs on a schedule.
type Job struct {
	// Name identifies the job in the cluster: it names the node of its state.
	Name string
	// Spec is its cron expression; see ParseSpec.
	Spec string
	// Location is the time zone that Spec is read in. Default UTC.
	Location *time.Location
	// Deadline is how late a tick may still be run, when it was due while nobody led or the leader was
	// held up. Default a minute. Only the latest due tick is run late, so that it is never run later than one
	// period.
	Deadline time.Duration
	// Run does the work. Its context is done when the leader's term is lost, or the scheduler was stopped and
	// the run did not finish within its drain time; a function that ignores it overlaps the next run. An
	// error or a panic is recorded as the run's outcome. The tick is not run again.
	Run func(ctx context.Context, run Run) error
}

// Run is one run of a job.
type Run struct {
	// Job is the job's name.
	Job string
	// Tick is the scheduled time, in UTC: what identifies the run, whenever it is started.
	Tick time.Time
	// Token is the fencing token of the leader's term. It never falls from one run to the next.
	Token int64
	// ID is unique in the cluster: the tick and the token.
	ID string
}

// DefaultDeadline is how late a tick is run when its job does not say.
const DefaultDeadline = time.Minute

// maxName bounds a job's name.
const maxName = 200

// job is a job that was added, and what this member does with it.
type job struct {
	Job
	schedule Schedule

	mu      sync.Mutex
	started time.Time // the latest tick that was started here
	active  bool      // a run goes on here
}

func newJob(j Job) (*job, error) {
	if err := validName(j.Name); err != nil {
		return nil, err
	}
	switch {
	case j.Run == nil:
		return nil, fmt.Errorf("%w %q: Run is nil", ErrInvalidJob, j.Name)
	case j.Deadline < 0:
		return nil, fmt.Errorf("%w %q: Deadline is %v: it must be positive", ErrInvalidJob, j.Name, j.Deadline)
	case j.Deadline == 0:
		j.Deadline = DefaultDeadline
	}
	schedule, err := ParseSpec(j.Spec, j.Location)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrInvalidJob, j.Name, err)
	}
	return &job{Job: j, schedule: schedule}, nil
}

// validName refuses what cannot be the name of a node.
func validName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalidJob)
	case len(name) > maxName:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are taken", ErrInvalidJob, len(name), maxName)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w %q: the name contains a slash", ErrInvalidJob, name)
	}
	if err := framework.ValidatePath("/" + name); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidJob, name, err)
	}
	return nil
}

// begin marks a tick as started here; false if it was before: no tick starts twice, whatever the
// caller has read.
func (j *job) begin(tick time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !tick.After(j.started) {
		return false
	}
	j.started, j.active = tick, true
	return true
}

func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active = false
}

// going tells whether a run goes on here.
func (j *job) going() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.active
}
