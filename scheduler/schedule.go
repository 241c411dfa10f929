package scheduler

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// dueTicks are the ticks of a schedule after one time and not after another.
type dueTicks struct {
	count         int64
	first, latest time.Time
}

// findDueTicks finds the ticks after from and not after to in bounded work, however many they are.
func (s Schedule) findDueTicks(from, to time.Time) dueTicks {
	n := s.ticks.countTicks(from, to)
	if n <= 0 {
		return dueTicks{}
	}
	return dueTicks{count: n, first: s.Next(from).UTC(), latest: s.latestTick(from, to)}
}

// latestTick is the last tick that is not after to. The caller knows that there is a tick after
// from and not after to.
func (s Schedule) latestTick(from, to time.Time) time.Time {
	seconds := int(to.Unix() - from.Unix())
	// The first offset from which on the next tick lies after to.
	past := sort.Search(seconds, func(i int) bool {
		next := s.Next(time.Unix(from.Unix()+int64(i)+1, 0))
		return next.IsZero() || next.After(to)
	})
	if past == 0 {
		return s.Next(from).UTC()
	}
	return s.Next(time.Unix(from.Unix()+int64(past), 0)).UTC()
}

// everySchedule is the schedule of @every. It counts from 1970-01-01 UTC, so that all members agree
// on its ticks.
type everySchedule struct {
	seconds int64
	zone    *time.Location
}

func parseEvery(period string, zone *time.Location) (tickSet, error) {
	d, err := time.ParseDuration(strings.TrimSpace(period))
	switch {
	case err != nil:
		return nil, err
	case d < time.Second:
		return nil, fmt.Errorf("a period of %v is less than a second", d)
	case d%time.Second != 0:
		return nil, fmt.Errorf("a period of %v is not of whole seconds", d)
	}
	return everySchedule{int64(d / time.Second), zone}, nil
}

func (e everySchedule) next(t time.Time) time.Time {
	return time.Unix((e.ticksUntil(t)+1)*e.seconds, 0).In(e.zone)
}

func (e everySchedule) countTicks(from, to time.Time) int64 {
	return max(0, e.ticksUntil(to)-e.ticksUntil(from))
}

// ticksUntil counts the ticks from 1970 to t.
func (e everySchedule) ticksUntil(t time.Time) int64 {
	n := t.Unix() / e.seconds
	if t.Unix()%e.seconds < 0 {
		n--
	}
	return n
}

// At is the spec of a job that runs once, at a time that is cut to whole seconds: "@at" and the
// time in RFC 3339.
//
// All members must give the same time: one that is known to all, such as the end of a contract, not
// one that is counted from the start of the process. If no member can run the job at its time, the
// first one that can does, within the job's Misfire and Deadline, as with other ticks. A job that
// is registered after its time does not run: trigger it instead. That is no error, so a member may
// be started with the job long after its run. The job stays listed after its run, without a next
// tick, until somebody removes it.
func At(t time.Time) string { return "@at " + t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// onceSchedule is the schedule of @at: one instant.
type onceSchedule struct{ at time.Time }

func parseAt(text string, zone *time.Location) (tickSet, error) {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("want a time such as 2026-12-24T18:00:00Z: %w", err)
	case at.Nanosecond() != 0:
		return nil, fmt.Errorf("%v is not at a whole second", at)
	case !at.After(anyTime):
		return nil, fmt.Errorf("%v is before the year 2000", at)
	}
	return onceSchedule{at.In(zone)}, nil
}

func (o onceSchedule) next(t time.Time) time.Time {
	if o.at.After(t) {
		return o.at
	}
	return time.Time{}
}

func (o onceSchedule) countTicks(from, to time.Time) int64 {
	if o.at.After(from) && !o.at.After(to) {
		return 1
	}
	return 0
}

// calendar is the schedule of a cron expression in a zone: a set of local times, and the instants
// at which a clock there shows them.
//
// The library's own Next is not used: it drops the whole day when a change of the clocks skips
// midnight (Cairo, each last Friday of April), and fires twice when a change repeats the hour. Here
// next advances from field to field within a period in which the local clock runs evenly. It stops
// at each change of the clocks and compares all fields again.
type calendar struct {
	second, minute, hour, day, month, weekday uint64 // bit n: the value n
	bothDays                                  bool   // day and weekday must both match, since one of them is *
	anyHour                                   bool   // the hour is *
	zone                                      *time.Location
}

// horizon is how far calendars are searched for a tick. The rarest, February 29th, may be 8 years
// away.
const horizon = 10

// star marks a field that was written as * or ?, in the library's sets.
const star = 1 << 63

func newCalendar(s *cron.SpecSchedule, zone *time.Location) calendar {
	return calendar{
		second: s.Second &^ star, minute: s.Minute &^ star, hour: s.Hour &^ star,
		day: s.Dom &^ star, month: s.Month &^ star, weekday: s.Dow &^ star,
		bothDays: (s.Dom|s.Dow)&star != 0, anyHour: s.Hour&star != 0, zone: zone,
	}
}

func maskHas(set uint64, value int) bool { return set>>value&1 != 0 }

func (c calendar) next(after time.Time) time.Time {
	t := c.secondAfter(after)
	for limit := t.AddDate(horizon, 0, 0); t.Before(limit); {
		d := c.timeToNextMatch(t)
		if d == 0 {
			return t
		}
		t = advanceLocal(t, d)
	}
	return time.Time{}
}

// secondAfter is the first whole second after t.
func (c calendar) secondAfter(t time.Time) time.Time {
	return t.In(c.zone).Truncate(time.Second).Add(time.Second)
}

// advanceLocal adds d of the local clock, but does not go past a change of the clocks. For years
// beyond a zone's table, Go puts the bound at the end of a leap year a day too early, which may be
// before t; such a bound is ignored.
func advanceLocal(t time.Time, d time.Duration) time.Time {
	after := t.Add(d)
	if _, change := t.ZoneBounds(); change.After(t) && change.Before(after) {
		return change.In(t.Location())
	}
	return after
}

// timeToNextMatch is how far the local clock must run before t can match, by the largest field that
// does not: 0 when t matches.
func (c calendar) timeToNextMatch(t time.Time) time.Duration {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	intoHour := time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	switch {
	case !maskHas(c.month, int(month)):
		days := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day() - day
		return time.Duration(days*24+24-hour)*time.Hour - intoHour
	case !c.matchesDay(t):
		return time.Duration(24-hour)*time.Hour - intoHour
	case !c.anyHour && repeatedTime(t) > 0:
		return repeatedTime(t)
	case !maskHas(c.hour, hour):
		return time.Hour - intoHour
	case !maskHas(c.minute, minute):
		return time.Minute - time.Duration(second)*time.Second
	case !maskHas(c.second, second):
		return time.Second
	}
	return 0
}

// matchesDay reports whether the local date matches.
func (c calendar) matchesDay(t time.Time) bool {
	day, weekday := maskHas(c.day, t.Day()), maskHas(c.weekday, int(t.Weekday()))
	if !maskHas(c.month, int(t.Month())) {
		return false
	}
	if c.bothDays {
		return day && weekday
	}
	return day || weekday
}

// repeatedTime is how much longer the local clock repeats the times that it showed before it was
// last set back. It is zero or negative if the clock does not repeat them at t.
func repeatedTime(t time.Time) time.Duration {
	change, _ := t.ZoneBounds()
	if change.IsZero() {
		return 0
	}
	_, now := t.Zone()
	_, before := change.Add(-time.Second).Zone()
	return time.Duration(before-now)*time.Second - t.Sub(change)
}

// countTicks adds up the ticks of each local day, which it computes from the sets of the fields.
func (c calendar) countTicks(from, to time.Time) (n int64) {
	end := c.secondAfter(to)
	for t := c.secondAfter(from); t.Before(end); {
		hour, minute, second := t.Clock()
		past := hour*3600 + minute*60 + second
		stop := advanceLocal(t, time.Duration(24*3600-past)*time.Second)
		if stop.After(end) {
			stop = end
		}
		n += c.countWithinDay(t, stop)
		t = stop
	}
	return n
}

// countWithinDay counts the ticks from t on and before stop, on one local day without a change of
// the clocks.
func (c calendar) countWithinDay(t, stop time.Time) int64 {
	if !c.matchesDay(t) {
		return 0
	}
	hour, minute, second := t.Clock()
	first := hour*3600 + minute*60 + second
	last := first + int(stop.Sub(t)/time.Second)
	if !c.anyHour {
		first += int(max(0, repeatedTime(t)) / time.Second)
	}
	return max(0, c.countBeforeSecond(last)-c.countBeforeSecond(first))
}

// countBeforeSecond counts the ticks of a day of which the local clock's second-of-day is below s.
func (c calendar) countBeforeSecond(s int) int64 {
	hour, minute, second := s/3600, s/60%60, s%60
	n := countBelow(c.hour, hour) * countBelow(c.minute, 60) * countBelow(c.second, 60)
	if maskHas(c.hour, hour) {
		n += countBelow(c.minute, minute) * countBelow(c.second, 60)
		if maskHas(c.minute, minute) {
			n += countBelow(c.second, second)
		}
	}
	return n
}

// countBelow counts a set's values below n.
func countBelow(set uint64, n int) int64 { return int64(bits.OnesCount64(set & (1<<n - 1))) }

// earlierOf is the earlier of two times, the first of which may be zero.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// latestOf is the latest of several times.
func latestOf(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// readSchedule reads a stored schedule.
func readSchedule(spec, zone string) (Schedule, error) {
	in, err := readZone(zone)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w %q: %w", errInvalidSpec, spec, err)
	}
	return ParseSpec(spec, in)
}
