package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// registerers is how many jobs are registered at once.
const registerers = 32

// registerJobs stores the schedules of this member's jobs where there are none, or others that these replace, and
// tells the others. Its error is that of the first job that cannot be registered.
func (s *Scheduler) registerJobs(ctx context.Context) error {
	err := s.retryUntilSettled(ctx, func(session *framework.Session) error { return session.Sync(ctx, s.path) })
	if err != nil {
		return err
	}
	created, old, err := s.createStates(ctx)
	for some := range slices.Chunk(old, replacedAtOnce) {
		if err == nil {
			err = s.replaceSchedules(ctx, some)
		}
	}
	if err == nil && len(created) > 0 {
		err = s.announceChanges(ctx, changedJobs(created))
	}
	if err != nil {
		return err
	}
	s.sweepTombstones(ctx)
	return nil
}

// createStates enters this member's jobs, and returns the names of those that were created and what is to be
// replaced.
func (s *Scheduler) createStates(ctx context.Context) (created []string, old []outdatedSchedule, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan *job)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range registerers {
		all.Go(func() {
			for j := range jobs {
				fresh, stale, err := s.createStateIfAbsent(ctx, j)
				if err != nil {
					cancel(err)
				}
				mu.Lock()
				if fresh {
					created = append(created, j.Name)
				}
				old = append(old, stale...)
				mu.Unlock()
			}
		})
	}
	for _, j := range s.knownJobs() {
		if ctx.Err() == nil {
			jobs <- j
		}
	}
	close(jobs)
	all.Wait()
	return created, old, context.Cause(ctx)
}

// announceChanges tells the members that a job has changed, or all.
func (s *Scheduler) announceChanges(ctx context.Context, job string) error {
	return s.retryUntilSettled(ctx, func(session *framework.Session) error {
		tell, err := s.announceOp(ctx, session, job)
		if err != nil {
			return err
		}
		_, err = session.Multi(ctx, tell)
		return err
	})
}

// retryUntilSettled repeats a step on session after session until its outcome is known.
func (s *Scheduler) retryUntilSettled(ctx context.Context, f func(*framework.Session) error) error {
	back := s.client.Backoff()
	for {
		session, err := s.client.Session(ctx)
		if err != nil {
			return err
		}
		err = f(session)
		if err == nil || !shouldRetry(err) && !errors.Is(err, framework.ErrNodeExists) && !framework.IsTransient(err) {
			return err
		}
		if back.Pause(ctx) != nil {
			return framework.Ended(ctx)
		}
	}
}

// createStateIfAbsent stores a job's state if there is none or a tombstone, and reports whether it did; else it returns what is
// stored, if that is to be replaced. A definition that was updated registers nothing anew: the job was removed.
func (s *Scheduler) createStateIfAbsent(ctx context.Context, j *job) (created bool, old []outdatedSchedule, err error) {
	err = s.retryUntilSettled(ctx, func(session *framework.Session) error {
		b := newStateCache(s.node(j.Name))
		state, err := b.readState(ctx, session)
		unknown := errors.Is(err, ErrUnknownJob) || err == nil && !state.removed.IsZero()
		switch {
		case unknown && j.updated && j.entered.Load():
			s.dropRemovedJob(j)
			return nil
		case errors.Is(err, ErrUnknownJob):
			created = true
			return s.createState(ctx, session, j)
		case unknown:
			created = true
			return s.replaceTombstone(ctx, session, j, b, state)
		case err != nil:
			return err
		}
		if !j.updated || !j.entered.Load() {
			j.generation.Store(state.generation)
		}
		if !j.agreesWith(state) {
			old = []outdatedSchedule{{j, b, new([]Gap)}}
		}
		return nil
	})
	if err == nil {
		j.entered.Store(true)
	}
	return created, old, err
}

func (s *Scheduler) createState(ctx context.Context, session *framework.Session, j *job) error {
	spec, zone := j.storedSpec()
	data, err := State{Spec: spec, Zone: zone, Revision: j.Revision}.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, s.directory()); err != nil {
		return err
	}
	return session.Create(ctx, s.node(j.Name), data, framework.Persistent)
}

// replaceTombstone registers a job in the place of a tombstone.
func (s *Scheduler) replaceTombstone(ctx context.Context, session *framework.Session, j *job, b *stateCache, tombstone State) error {
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	state := tombstone.renewed(j, now)
	j.generation.Store(state.generation)
	_, err = b.writeState(ctx, session, state, nil, nil)
	return err
}

// registerInBackground registers a job in the background if the scheduler runs, behind the definition whose place it takes. The
// scheduler is locked.
func (s *Scheduler) registerInBackground(j, before *job) {
	t := s.current
	if t == nil || t.over {
		return
	}
	j.joining = make(chan struct{})
	t.joins.Go(func() {
		defer close(j.joining)
		earlier := []<-chan struct{}{t.registered}
		if before != nil && before.joining != nil {
			earlier = append(earlier, before.joining)
		}
		for _, done := range earlier {
			select {
			case <-done:
			case <-t.joining.Done():
				return
			}
		}
		s.registerWhileRunning(t.joining, j)
	})
}

// registerWhileRunning registers a job that was added or updated while the scheduler runs, and takes it up.
func (s *Scheduler) registerWhileRunning(ctx context.Context, j *job) {
	back := s.client.Backoff()
	for ctx.Err() == nil && !j.left.Load() {
		err := s.retryUntilSettled(ctx, func(session *framework.Session) error { return session.Sync(ctx, s.node(j.Name)) })
		var created bool
		var old []outdatedSchedule
		if err == nil {
			created, old, err = s.createStateIfAbsent(ctx, j)
		}
		if err == nil && len(old) > 0 {
			err = s.replaceSchedules(ctx, old)
		}
		if err == nil && created {
			err = s.announceChanges(ctx, j.Name)
		}
		if err == nil && (j.Placement == Spread || j.updated) {
			err = s.updateDescription(ctx)
		}
		if err == nil {
			s.assignJobs()
			return
		}
		if ctx.Err() == nil {
			s.client.Logger().Warn("a job cannot be registered yet", "path", s.path, "job", j.Name, "error", err)
			s.sendEvent(Event{Kind: EventFailed, Job: j.Name, Err: err})
		}
		_ = back.Pause(ctx) // the loop sees it
	}
}

// outdatedSchedule is a job whose stored schedule is not the one that it was added with, and counts no more.
type outdatedSchedule struct {
	job    *job
	book   *stateCache
	passed *[]Gap // what the latest try has recorded as missed
}

// replacedAtOnce is how many schedules are replaced in one transaction: states are small, and each transaction has
// every member look at its jobs.
const replacedAtOnce = 64

// errTooMany says that fewer schedules at once may do.
var errTooMany = errors.New("a transaction of many schedules was refused")

// replaceSchedules stores schedules in the place of others, each in a transaction that tells the members: those whom a job
// belongs to go by the old one until they hear of it. Jobs that run all the time, and those that make too large
// a request, are not kept from it by each other: what is refused is halved.
func (s *Scheduler) replaceSchedules(ctx context.Context, old []outdatedSchedule) error {
	err := s.retryUntilSettled(ctx, func(session *framework.Session) error {
		err := s.replaceSchedulesOnce(ctx, session, old)
		for _, o := range old {
			o.book.invalidate()
		}
		if len(old) > 1 && (errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrTooLarge)) {
			return errTooMany
		}
		return err
	})
	if err == nil {
		for _, o := range old {
			s.reportMissed(o.job.Name, *o.passed)
		}
	}
	if !errors.Is(err, errTooMany) {
		return err
	}
	half := len(old) / 2
	if err := s.replaceSchedules(ctx, old[:half]); err != nil {
		return err
	}
	return s.replaceSchedules(ctx, old[half:])
}

// replaceSchedulesOnce replaces those that are still to be.
func (s *Scheduler) replaceSchedulesOnce(ctx context.Context, session *framework.Session, old []outdatedSchedule) error {
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	var names []string
	var ops []framework.Op
	for _, o := range old {
		state, err := o.book.readState(ctx, session)
		switch {
		case o.job.left.Load(), o.job.updated && err == nil && !state.removed.IsZero():
			continue
		case errors.Is(err, ErrUnknownJob): // it was removed meanwhile
			err = s.createState(ctx, session, o.job)
		case err == nil && !state.removed.IsZero():
			err = s.replaceTombstone(ctx, session, o.job, o.book, state)
		case err == nil && o.job.agreesWith(state):
			continue
		case err == nil:
			var data []byte
			next := o.job.withSchedule(state, now)
			*o.passed = next.passed
			data, err = next.encode()
			ops = append(ops, framework.SetOp(o.book.node, data, o.book.version))
		}
		if err != nil {
			return err
		}
		names = append(names, o.job.Name)
	}
	if len(names) == 0 {
		return nil
	}
	tell, err := s.announceOp(ctx, session, changedJobs(names))
	if err != nil {
		return err
	}
	_, err = session.Multi(ctx, append(ops, tell)...)
	return err
}

// storedSpec is the job's schedule as it is stored.
func (j *job) storedSpec() (spec, zone string) {
	return j.schedule.String(), j.schedule.Location().String()
}

// declaredSchedule is the schedule that the releases have given, whatever it was changed to at run time.
func (s State) declaredSchedule() (spec, zone string) {
	if s.declaredSpec != "" {
		return s.declaredSpec, s.declaredZone
	}
	return s.Spec, s.Zone
}

// agreesWith reports whether a stored state need not be changed: its schedule was given by the same release, or
// one of a higher revision.
func (j *job) agreesWith(st State) bool {
	spec, zone := j.storedSpec()
	declaredSpec, declaredZone := st.declaredSchedule()
	return j.Revision < st.Revision || j.Revision == st.Revision && spec == declaredSpec && zone == declaredZone
}

// withSchedule is a state with the job's schedule as the stored one. What was changed at run time stays if the
// releases' schedule is the same.
func (j *job) withSchedule(st State, now time.Time) State {
	st = st.clone()
	st.Revision = j.Revision
	spec, zone := j.storedSpec()
	if was, in := st.declaredSchedule(); was == spec && in == zone {
		return st
	}
	st.declaredSpec, st.declaredZone = "", ""
	st.setSchedule(spec, zone, now)
	return st
}

// setSchedule changes the schedule. The old one's ticks that were not seen to are missed, and no tick of the
// new one before now is due, nor before the registration if the clock was set back since. Those behind a tick of the old one that was run ahead of its time are missed.
func (s *State) setSchedule(spec, zone string, now time.Time) {
	why := ReasonChanged
	if !s.Paused.IsZero() {
		why = ReasonPaused
	}
	old, err := s.schedule()
	if err == nil { // nobody can tell the ticks of one that cannot be read
		s.missDueTicks(old, now, why)
	}
	s.Since = laterOf(laterOf(s.Registered, s.Since), now)
	s.noteReplaced()
	s.Spec, s.Zone = spec, zone
	if schedule, err := s.schedule(); err == nil && s.Last.After(s.Since) {
		s.missTicksOfOldSchedule(schedule, why)
	}
}

// noteReplaced keeps the schedule that is about to be replaced while its latest tick lies ahead of Since, and forgets those of which
// none does.
func (s *State) noteReplaced() {
	s.replaced = append(s.replaced, replacedSchedule{Spec: s.Spec, Zone: s.Zone, Last: s.Last})
	s.replaced = slices.DeleteFunc(s.replaced, func(r replacedSchedule) bool { return !r.Last.After(s.Since) })
	if over := len(s.replaced) - maxReplaced; over > 0 {
		s.replaced = s.replaced[over:]
	}
}
