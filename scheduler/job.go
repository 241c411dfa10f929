package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	// Description says what the job does, for people, in at most 300 bytes, such as its command. It is stored with the schedule. A member that
	// replaces the stored schedule replaces the description, too. Optional.
	Description string
	// Revision orders schedules of different releases: a member does not replace the schedule of a higher one. See
	// the package's documentation. Default 0.
	Revision int64
	// Run does the work. Its context is done when the run's claim is lost, the run has timed out or is
	// replaced, or the scheduler was stopped and the run did not finish within its drain time. An error or a
	// panic is recorded as the run's outcome.
	Run func(ctx context.Context, run Run) error

	// Guarantee is AtMostOnce or AtLeastOnce.
	Guarantee Guarantee
	// Misfire is MisfireLatest, MisfireSkip or MisfireAll.
	Misfire Misfire
	// Deadline is how late a tick may be started. By default it is the time to the schedule's next tick, at least
	// OnTime and at most an hour: a nightly run still starts an hour late, and of a job of each second
	// at most the ticks of the last seconds.
	Deadline time.Duration
	// Overlap is OverlapForbid, OverlapAllow or OverlapReplace.
	Overlap Overlap

	// Timeout ends the context of each attempt after so long. Default 0: no limit.
	Timeout time.Duration
	// Retries is how often a run that failed is tried again by its member. Default 0.
	Retries int
	// Backoff is the pause before the first retry; it doubles with each, to a minute or itself if that is
	// longer. Default a second.
	Backoff time.Duration
	// Jitter delays each start by less than so long, and not beyond the next tick. All members agree on a
	// tick's delay. Default 0.
	Jitter time.Duration
	// MinHold is the least time between the starts of two runs: ticks that come sooner are missed, with
	// ReasonHeld. A run that is repeated because its member died or was stopped waits for no MinHold and
	// does not begin another. Default 0.
	MinHold time.Duration

	// Placement is OnLeader or Spread.
	Placement Placement
	// Labels pin a job of Placement Spread to members that have all of them; see WithLabels.
	Labels map[string]string
}

// The defaults of a job.
const (
	maxDefaultDeadline = time.Hour
	defaultBackoff     = time.Second
)

// OnTime is how late a tick may be started and still count as on time.
const OnTime = 5 * time.Second

const (
	maxName        = 200
	maxDescription = 300
	maxRetries     = 1000
	mostBackoff    = time.Minute
)

// job is this member's definition of a job.
type job struct {
	Job
	schedule   Schedule     // as it was added
	local      *localRuns   // its runs in this member, under any definition
	updated    bool         // it has replaced another definition
	entered    atomic.Bool  // its state was found or created; if the state is missing later, the job was removed
	generation atomic.Int64 // of its registration
	left       atomic.Bool  // this member has dropped it, or has another definition

	registered chan struct{} // closed when its registration has ended; nil before Run
}

func newJob(j Job) (*job, error) {
	if err := validName(j.Name); err != nil {
		return nil, err
	}
	err := j.completeAndCheck()
	var schedule Schedule
	if err == nil {
		schedule, err = ParseSpec(j.Spec, j.Location)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", ErrInvalidJob, j.Name, err)
	}
	j.Labels = maps.Clone(j.Labels)
	return &job{Job: j, schedule: schedule}, nil
}

// completeAndCheck fills in the defaults and refuses values that cannot be used.
func (j *Job) completeAndCheck() error {
	if j.Backoff == 0 {
		j.Backoff = defaultBackoff
	}
	err := errors.Join(
		checkPolicy("Guarantee", &j.Guarantee, AtMostOnce, AtLeastOnce),
		checkPolicy("Misfire", &j.Misfire, MisfireLatest, MisfireSkip, MisfireAll),
		checkPolicy("Overlap", &j.Overlap, OverlapForbid, OverlapAllow, OverlapReplace),
		checkPolicy("Placement", &j.Placement, OnLeader, Spread),
		notNegative("Deadline", j.Deadline), notNegative("Timeout", j.Timeout), notNegative("Backoff", j.Backoff),
		notNegative("Jitter", j.Jitter), notNegative("MinHold", j.MinHold),
	)
	switch {
	case err != nil:
		return err
	case j.Run == nil:
		return errors.New("Run is nil")
	case j.Retries < 0 || j.Retries > maxRetries:
		return fmt.Errorf("%d Retries: want 0 to %d", j.Retries, maxRetries)
	case j.Revision < 0:
		return fmt.Errorf("the Revision %d: it must not be negative", j.Revision)
	case len(j.Description) > maxDescription || !utf8.ValidString(j.Description):
		return fmt.Errorf("the Description has %d bytes: want at most %d of UTF-8", len(j.Description), maxDescription)
	case len(j.Labels) > 0 && j.Placement != Spread:
		return fmt.Errorf("a job with Labels needs Placement %q", Spread)
	}
	return validLabels(j.Labels)
}

func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %v: it must not be negative", name, d)
	}
	return nil
}

// validName refuses names that cannot name a node.
func validName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalidJob)
	case len(name) > maxName:
		return fmt.Errorf("%w: the name has %d bytes: want at most %d", ErrInvalidJob, len(name), maxName)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w %q: the name contains a slash", ErrInvalidJob, name)
	}
	if err := framework.ValidatePath("/" + name); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidJob, name, err)
	}
	return nil
}

// retryPause is how long a run waits before it is retried, the first time after one try.
func (j *job) retryPause(tries int) time.Duration {
	most := max(j.Backoff, mostBackoff)
	d := j.Backoff
	for ; tries > 1 && d < most; tries-- {
		d *= 2
	}
	return min(d, most)
}

// declaration is the schedule that the definition asks for, as it is stored.
func (j *job) declaration() declaration {
	return declaration{
		spec: j.schedule.String(), zone: j.schedule.Location().String(), revision: j.Revision, description: j.Description,
		jitter: j.Jitter.Truncate(time.Millisecond),
	}
}

// scheduleOf is the stored schedule, which is the job's own unless it was changed.
func (j *job) scheduleOf(state jobState) (Schedule, error) {
	if state.Spec == j.schedule.String() && state.Zone == j.schedule.Location().String() {
		return j.schedule, nil
	}
	return state.schedule()
}

// removedBy reports whether a stored state shows that the job was removed since it was entered: it is a tombstone, or
// was registered again. A state of an earlier registration is outdated and does not count.
func (j *job) removedBy(state jobState) bool {
	known := j.generation.Load()
	return state.Generation > known || state.Generation == known && !state.Removed.IsZero()
}
