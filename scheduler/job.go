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
	// Name identifies the job in the cluster: it names the node of its state. It has 1 to 200 bytes
	// and no slash.
	Name string
	// Spec is its cron expression, in at most 1,000 bytes; see ParseSpec.
	Spec string
	// Zone is the time zone that Spec is read in. Default UTC.
	Zone *time.Location
	// Description says what the job does, for people, in at most 300 bytes of UTF-8, such as its
	// command. It is stored with the schedule. A member that replaces the stored schedule replaces
	// the description, too. Optional.
	Description string
	// Revision orders the schedules of different releases: a member does not replace a stored
	// schedule of a higher revision. It is not negative. See the package's documentation. Default
	// 0.
	Revision int64
	// Run does the work. Its context is done when the run's claim is lost, the run has timed out or
	// is replaced, the job was removed, or the scheduler was stopped and the run did not finish
	// within its grace. An error or a panic is recorded as the run's outcome.
	Run func(ctx context.Context, run Run) error

	// Guarantee is AtMostOnce or AtLeastOnce.
	Guarantee Guarantee
	// Misfire is MisfireLatest, MisfireSkip or MisfireAll.
	Misfire Misfire
	// Deadline is how late a tick may be started. By default it is the time to the schedule's next
	// tick, at least OnTime and at most an hour. So a nightly run may start an hour late, and a job
	// that is due each second runs no tick that is more than OnTime old.
	Deadline time.Duration
	// Overlap is OverlapForbid, OverlapAllow or OverlapReplace.
	Overlap Overlap

	// Timeout is how long each attempt may take: then its context ends, with the cause
	// framework.ErrTimeout. Default 0: no limit.
	Timeout time.Duration
	// Attempts is how often a member calls Run for one run, until an attempt succeeds, 1 to 1,000.
	// An error that Permanent returns ends the run. Default 1.
	Attempts int
	// FirstPause is the pause before the second attempt. It doubles with each further attempt, up
	// to a minute; a longer FirstPause stays as it is. Default a second.
	FirstPause time.Duration
	// Jitter is the bound of a delay, in whole milliseconds, by which each tick starts later: less
	// than Jitter, and not beyond the next tick. All members with the same Jitter agree on a tick's
	// delay. Default 0.
	Jitter time.Duration
	// MinHold is the least time between the starts of two runs. Ticks that come sooner are missed,
	// with ReasonMinHold; under MisfireAll they wait until the hold or their Deadline is over. A
	// run that is repeated because its member died or was stopped waits for no MinHold and does not
	// begin another. Default 0.
	MinHold time.Duration

	// Placement is OnLeader or Spread.
	Placement Placement
	// Labels pin a job of Placement Spread to members that have all of them, at most 64; see
	// WithLabels.
	Labels map[string]string
}

// The defaults of a job.
const (
	maxDefaultDeadline = time.Hour
	defaultFirstPause  = time.Second
)

// OnTime is how late a tick may be started and still count as on time.
const OnTime = 5 * time.Second

const (
	maxName        = 200
	maxDescription = 300
	maxAttempts    = 1000
	maxPause       = time.Minute
)

// job is this member's definition of a job.
type job struct {
	Job
	schedule   Schedule     // as it was added
	local      *localRuns   // its runs in this member, under any definition
	entered    atomic.Bool  // its state was found or created; if the state is missing later, the job was removed
	generation atomic.Int64 // of its registration
	dropped    atomic.Bool  // this member does not have the job any more, or has another definition of it

	registered chan struct{} // closed when its registration has ended; nil before Run
}

func newJob(j Job) (*job, error) {
	if err := validName(j.Name); err != nil {
		return nil, err
	}
	err := j.completeAndCheck()
	var schedule Schedule
	if err == nil {
		schedule, err = ParseSpec(j.Spec, j.Zone)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", errInvalidJob, j.Name, err)
	}
	j.Labels = maps.Clone(j.Labels)
	created := &job{Job: j, schedule: schedule}
	return created, nil
}

// completeAndCheck fills in the defaults and refuses values that cannot be used.
func (j *Job) completeAndCheck() error {
	if j.Attempts == 0 {
		j.Attempts = 1
	}
	if j.FirstPause == 0 {
		j.FirstPause = defaultFirstPause
	}
	err := errors.Join(
		checkPolicy("Guarantee", &j.Guarantee, AtMostOnce, AtLeastOnce),
		checkPolicy("Misfire", &j.Misfire, MisfireLatest, MisfireSkip, MisfireAll),
		checkPolicy("Overlap", &j.Overlap, OverlapForbid, OverlapAllow, OverlapReplace),
		checkPolicy("Placement", &j.Placement, OnLeader, Spread),
		notNegative("Deadline", j.Deadline), notNegative("Timeout", j.Timeout), notNegative("FirstPause", j.FirstPause),
		notNegative("Jitter", j.Jitter), notNegative("MinHold", j.MinHold),
	)
	switch {
	case err != nil:
		return err
	case j.Run == nil:
		return errors.New("Run is nil")
	case j.Attempts < 1 || j.Attempts > maxAttempts:
		return fmt.Errorf("%d Attempts: want 1 to %d", j.Attempts, maxAttempts)
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
		return fmt.Errorf("%w: the name is empty", errInvalidJob)
	case len(name) > maxName:
		return fmt.Errorf("%w: the name has %d bytes: want at most %d", errInvalidJob, len(name), maxName)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w %q: the name contains a slash", errInvalidJob, name)
	}
	if err := framework.ValidatePath("/" + name); err != nil {
		return fmt.Errorf("%w %q: %w", errInvalidJob, name, err)
	}
	return nil
}

// pauseAfter is how long a run waits for its next attempt, after so many attempts.
func (j *job) pauseAfter(attempts int) time.Duration {
	most := max(j.FirstPause, maxPause)
	d := j.FirstPause
	for ; attempts > 1 && d < most; attempts-- {
		d *= 2
	}
	return min(d, most)
}

// declaration is the schedule that the definition asks for, in the form in which it is stored.
func (j *job) declaration() declaration {
	return declaration{
		spec: j.schedule.String(), zone: j.schedule.Zone().String(), revision: j.Revision,
		description: j.Description,
		jitter:      j.Jitter.Truncate(time.Millisecond),
	}
}

// scheduleOf is the stored schedule. If that is the definition's own, it need not be parsed again.
func (j *job) scheduleOf(state jobState) (Schedule, error) {
	if state.Spec == j.schedule.String() && state.Zone == j.schedule.Zone().String() {
		return j.schedule, nil
	}
	return state.schedule()
}

// removedBy reports whether a stored state shows that the job was removed since it was entered: it
// is a tombstone, or was registered again. A state of an earlier registration is outdated and does
// not count.
func (j *job) removedBy(state jobState) bool {
	known := j.generation.Load()
	return state.Generation > known || state.Generation == known && !state.Removed.IsZero()
}
