package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// outdated is a job whose stored schedule is not the one that it was added with, and counts no more.
type outdated struct {
	job    *job
	book   *book
	passed *[]Gap // what the latest try has recorded as missed
}

// replacedAtOnce is how many schedules are replaced in one transaction: states are small, and each transaction has
// every member look at its jobs.
const replacedAtOnce = 64

// errHalve says that fewer schedules at once may do.
var errHalve = errors.New("a transaction of many schedules was refused")

// replace stores schedules in the place of others, each in a transaction that tells the members: those whom a job
// belongs to go by the old one until they hear of it. Jobs that run all the time, and those that make too large
// a request, are not kept from it by each other: what is refused is halved.
func (s *Scheduler) replace(ctx context.Context, old []outdated) error {
	err := s.settling(ctx, func(session *framework.Session) error {
		err := s.replaceOnce(ctx, session, old)
		for _, o := range old {
			o.book.forget()
		}
		if len(old) > 1 && (errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrTooLarge)) {
			return errHalve
		}
		return err
	})
	if err == nil {
		for _, o := range old {
			s.tellMissed(o.job.Name, *o.passed)
		}
	}
	if !errors.Is(err, errHalve) {
		return err
	}
	half := len(old) / 2
	if err := s.replace(ctx, old[:half]); err != nil {
		return err
	}
	return s.replace(ctx, old[half:])
}

// replaceOnce replaces those that are still to be.
func (s *Scheduler) replaceOnce(ctx context.Context, session *framework.Session, old []outdated) error {
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	var names []string
	var ops []framework.Op
	for _, o := range old {
		state, err := o.book.read(ctx, session)
		switch {
		case o.job.left.Load(), o.job.updated && err == nil && !state.removed.IsZero():
			continue
		case errors.Is(err, ErrUnknownJob): // it was removed meanwhile
			err = s.create(ctx, session, o.job)
		case err == nil && !state.removed.IsZero():
			err = s.recreate(ctx, session, o.job, o.book, state)
		case err == nil && o.job.agrees(state):
			continue
		case err == nil:
			var data []byte
			next := o.job.declare(state, now)
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
	tell, err := s.announce(ctx, session, subject(names))
	if err != nil {
		return err
	}
	_, err = session.Multi(ctx, append(ops, tell)...)
	return err
}

// spec is the job's schedule as it is stored.
func (j *job) spec() (spec, zone string) {
	return j.schedule.String(), j.schedule.Location().String()
}

// declared is the schedule that the releases have given, whatever it was changed to at run time.
func (s State) declared() (spec, zone string) {
	if s.declaredSpec != "" {
		return s.declaredSpec, s.declaredZone
	}
	return s.Spec, s.Zone
}

// agrees tells whether a stored state need not be changed: its schedule was given by the same release, or
// one of a higher revision.
func (j *job) agrees(st State) bool {
	spec, zone := j.spec()
	declaredSpec, declaredZone := st.declared()
	return j.Revision < st.Revision || j.Revision == st.Revision && spec == declaredSpec && zone == declaredZone
}

// declare is a state with the job's schedule as the stored one. What was changed at run time stays if the
// releases' schedule is the same.
func (j *job) declare(st State, now time.Time) State {
	st = st.clone()
	st.Revision = j.Revision
	spec, zone := j.spec()
	if was, in := st.declared(); was == spec && in == zone {
		return st
	}
	st.declaredSpec, st.declaredZone = "", ""
	st.reschedule(spec, zone, now)
	return st
}

// reschedule changes the schedule. The old one's ticks that were not seen to are missed, and no tick of the
// new one before now is due. Those behind a tick of the old one that was run ahead of its time are missed.
func (s *State) reschedule(spec, zone string, now time.Time) {
	why := ReasonChanged
	if !s.Paused.IsZero() {
		why = ReasonPaused
	}
	old, err := s.schedule()
	if err == nil { // nobody can tell the ticks of one that cannot be read
		s.pass(old, now, why)
	}
	s.Since = later(s.Since, now)
	s.noteReplaced()
	s.Spec, s.Zone = spec, zone
	if schedule, err := s.schedule(); err == nil && s.Last.After(s.Since) {
		s.passBehind(schedule, why)
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
