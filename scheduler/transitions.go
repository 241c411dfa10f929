package scheduler

import (
	"fmt"
	"slices"
	"time"
)

// removeRun removes a run from those that go on.
func (s *jobState) removeRun(r storedRun) {
	if i := s.indexOfRun(r.Number); i >= 0 {
		s.Running = slices.Delete(s.Running, i, i+1)
	}
}

// recordEnd removes a run from those that go on, counts its failure, and makes it the latest that
// has ended.
func (s *jobState) recordEnd(r storedRun) {
	s.removeRun(r)
	if r.Outcome.IsFailure() {
		s.Failures++
	}
	if s.LastRun == nil || s.LastRun.Number < r.Number {
		s.LastRun = &r
	}
}

// addRequested adds a run to those that wait. Repeated runs go before those that were asked for.
func (s *jobState) addRequested(p pendingRun) {
	at := len(s.Pending)
	if !p.Manual || p.Attempt > 1 {
		at = 0
		for at < len(s.Pending) && s.Pending[at].Attempt > 1 {
			at++
		}
	}
	s.Pending = slices.Insert(s.Pending, at, p)
}

// addGap records a gap. If it continues the latest gap, it extends that one.
func (s *jobState) addGap(schedule Schedule, g Gap) {
	s.Missed[g.Reason] += g.Count
	if n := len(s.Gaps); n > 0 && s.Gaps[n-1].Reason == g.Reason && schedule.Next(s.Gaps[n-1].To).Equal(g.From) {
		s.Gaps[n-1].To = g.To
		s.Gaps[n-1].Count += g.Count
		return
	}
	s.Gaps = append(s.Gaps, storedGap{Gap: g})
	if over := len(s.Gaps) - maxGaps; over > 0 {
		s.Gaps = s.Gaps[over:]
	}
}

// missDueTicks records every tick that is due and not run yet as missed.
func (s *jobState) missDueTicks(schedule Schedule, now time.Time, why Reason) {
	if d := schedule.findDueTicks(s.ticksSeenUntil(), now); d.count > 0 {
		s.Last = d.latest
		s.missGap(schedule, d.asGap(why))
	}
}

func (s *jobState) missGap(schedule Schedule, g Gap) {
	s.addGap(schedule, g)
	s.newGaps = append(s.newGaps, g)
}

// missTicksOfOldSchedule records the schedule's ticks after Since and before the latest tick as
// missed: by an earlier schedule, the latest tick was run ahead of the ensemble's time. It leaves
// out ticks that were run or missed by the replaced schedules.
func (s *jobState) missTicksOfOldSchedule(schedule Schedule, why Reason) {
	var earlier []Schedule
	var last []time.Time
	for _, r := range s.Replaced {
		if parsed, err := readSchedule(r.Spec, r.Zone); err == nil { // the ticks of one that cannot be read are unknown
			earlier, last = append(earlier, parsed), append(last, r.Last)
		}
	}
	counted := func(tick time.Time) bool {
		for i, e := range earlier {
			if !tick.After(last[i]) && e.Next(tick.Add(-time.Second)).Equal(tick) {
				return true
			}
		}
		return false
	}
	missed := Gap{Reason: why}
	tick := schedule.Next(s.Since)
	for n := 0; n < maxTicksOneByOne && !tick.IsZero() && tick.Before(s.Last); n++ {
		if !counted(tick) {
			if missed.Count++; missed.Count == 1 {
				missed.From = tick.UTC()
			}
			missed.To = tick.UTC()
		}
		tick = schedule.Next(tick)
	}
	if missed.Count > 0 {
		s.missGap(schedule, missed)
	}
	if d := schedule.findDueTicks(tick.Add(-time.Second), s.Last.Add(-time.Second)); !tick.IsZero() && d.count > 0 {
		s.missGap(schedule, d.asGap(why)) // the ensemble's clock was set back by far
	}
}

// declaration is the schedule that a member's definition of a job asks for.
type declaration struct {
	spec, zone  string
	revision    int64
	description string
	jitter      time.Duration // in whole milliseconds
}

// declaredSchedule is the schedule of the releases, also while another one was set at run time.
func (s jobState) declaredSchedule() (spec, zone string) {
	if s.DeclaredSpec != "" {
		return s.DeclaredSpec, s.DeclaredZone
	}
	return s.Spec, s.Zone
}

// differenceFrom says how a declaration differs from the one that was stored last, or is empty.
func (s jobState) differenceFrom(d declaration) string {
	spec, zone := s.declaredSchedule()
	if d.spec == spec && d.zone == zone && d.description == s.Description {
		return ""
	}
	return fmt.Sprintf("stored with %q in %s, described as %q; here it has %q in %s, described as %q",
		spec, zone, s.Description, d.spec, d.zone, d.description)
}

// agreesWith reports whether a declaration leaves the schedule as it is: the stored schedule comes
// from the same release, or from one of a higher revision.
func (s jobState) agreesWith(d declaration) bool {
	spec, zone := s.declaredSchedule()
	same := d.spec == spec && d.zone == zone && d.description == s.Description && d.jitter.Milliseconds() == s.JitterMS
	return d.revision < s.Revision || d.revision == s.Revision && same
}

// withDeclared is the state with the declared schedule as the stored one. A schedule that was set
// at run time stays if the releases' schedule is the same.
func (s jobState) withDeclared(d declaration, now time.Time) jobState {
	s = s.clone()
	s.Revision, s.Description, s.JitterMS = d.revision, d.description, d.jitter.Milliseconds()
	if spec, zone := s.declaredSchedule(); spec == d.spec && zone == d.zone {
		return s
	}
	s.DeclaredSpec, s.DeclaredZone = "", ""
	s.setSchedule(d.spec, d.zone, now)
	return s
}

// setSchedule changes the schedule. It records due ticks of the old schedule that were not run as
// missed. Ticks of the new schedule count from now on, or from the registration if the clock was
// set back since. It records those before a tick of the old schedule that was run ahead of its time
// as missed.
func (s *jobState) setSchedule(spec, zone string, now time.Time) {
	why := ReasonChanged
	if !s.Paused.IsZero() {
		why = ReasonPaused
	}
	old, err := s.schedule()
	if err == nil { // the ticks of an unreadable one are unknown
		s.missDueTicks(old, now, why)
	}
	s.Since = latestOf(s.Registered, s.Since, now)
	s.recordReplaced()
	s.Spec, s.Zone = spec, zone
	if schedule, err := s.schedule(); err == nil && s.Last.After(s.Since) {
		s.missTicksOfOldSchedule(schedule, why)
	}
}

// recordReplaced keeps the schedule that is about to be replaced if its latest tick lies ahead of
// Since, and forgets replaced schedules whose latest tick does not.
func (s *jobState) recordReplaced() {
	s.Replaced = append(s.Replaced, replacedSchedule{Spec: s.Spec, Zone: s.Zone, Last: s.Last})
	s.Replaced = slices.DeleteFunc(s.Replaced, func(r replacedSchedule) bool { return !r.Last.After(s.Since) })
	if over := len(s.Replaced) - maxReplaced; over > 0 {
		s.Replaced = s.Replaced[over:]
	}
}

// markRemoved makes a state a tombstone. An earlier release does not know tombstones: it takes this
// one for a paused job without pending runs, and ends its runs.
func (s *jobState) markRemoved(now time.Time) {
	s.Removed, s.Paused = now, now
	s.Pending, s.LastRun, s.Gaps, s.Replaced = nil, nil, nil, nil
	for i := range s.Running {
		s.Running[i].Replace = true
	}
}

// renewedState returns the state of a job that is registered in the place of a tombstone. Runs of
// the former registration that go on keep their place, so that no other run overlaps them; an
// earlier release counts them for no tick.
func (s jobState) renewedState(d declaration, now time.Time) jobState {
	s = s.clone()
	for i := range s.Running {
		s.Running[i].Manual = true
	}
	since := latestOf(now, s.ticksSeenUntil())
	return jobState{
		Spec: d.spec, Zone: d.zone, Revision: d.revision, Description: d.description, JitterMS: d.jitter.Milliseconds(),
		Registered: since, Reregistered: since, Since: since, HoldUntil: s.HoldUntil,
		Number: s.Number, Running: s.Running, Requests: s.Requests, Generation: s.Generation + 1, unknown: s.unknown,
	}
}

// knowsRequest reports whether a control operation was applied before, also if its run has ended
// since.
func (s jobState) knowsRequest(request string) bool { return slices.Contains(s.Requests, request) }

// rememberRequest adds a control operation to the latest ones, so that it is known when its reply
// is lost.
func (s *jobState) rememberRequest(request string) {
	s.Requests = append(s.Requests, request)
	if over := len(s.Requests) - maxRequests; over > 0 {
		s.Requests = s.Requests[over:]
	}
}

// asGap returns the gap of these ticks.
func (d dueTicks) asGap(why Reason) Gap {
	return Gap{From: d.first, To: d.latest, Count: d.count, Reason: why}
}
