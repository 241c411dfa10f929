package scheduler

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// calendar is the schedule of a cron expression in a zone: a set of local times, and the instants at
// which a clock there shows them.
//
// The library's own Next is not used: it drops the whole day when a change of the clocks skips midnight
// (Cairo, each last Friday of April), and fires twice when one repeats the hour. Here, time is walked in
// stretches in which the local clock runs evenly; at each change of the clocks everything is looked at
// anew.
type calendar struct {
	second, minute, hour, day, month, weekday uint64 // bit n: the value n
	bothDays                                  bool   // day and weekday must match: one of them is *
	anyHour                                   bool   // the hour is *
	zone                                      *time.Location
}

// horizon is how far calendars are searched for a tick. The rarest, February 29th, may be 8 years away.
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

func has(set uint64, value int) bool { return set>>value&1 != 0 }

func (c calendar) next(after time.Time) time.Time {
	t := c.secondAfter(after)
	for limit := t.AddDate(horizon, 0, 0); t.Before(limit); {
		d := c.until(t)
		if d == 0 {
			return t
		}
		t = walk(t, d)
	}
	return time.Time{}
}

// secondAfter is the first whole second after t.
func (c calendar) secondAfter(t time.Time) time.Time {
	return t.In(c.zone).Truncate(time.Second).Add(time.Second)
}

// walk goes on by d of the local clock, but not past a change of the clocks. Beyond a zone's table, Go puts
// the bound at the end of a leap year a day too early, which must not stop the walk.
func walk(t time.Time, d time.Duration) time.Time {
	after := t.Add(d)
	if _, change := t.ZoneBounds(); change.After(t) && change.Before(after) {
		return change.In(t.Location())
	}
	return after
}

// until is how far the local clock must run before t can match, by the largest field that does not:
// 0 when t matches.
func (c calendar) until(t time.Time) time.Duration {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	intoHour := time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	switch {
	case !has(c.month, int(month)):
		days := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day() - day
		return time.Duration(days*24+24-hour)*time.Hour - intoHour
	case !c.onDay(t):
		return time.Duration(24-hour)*time.Hour - intoHour
	case !c.anyHour && repeated(t) > 0:
		return repeated(t)
	case !has(c.hour, hour):
		return time.Hour - intoHour
	case !has(c.minute, minute):
		return time.Minute - time.Duration(second)*time.Second
	case !has(c.second, second):
		return time.Second
	}
	return 0
}

// onDay tells whether the local date matches.
func (c calendar) onDay(t time.Time) bool {
	day, weekday := has(c.day, t.Day()), has(c.weekday, int(t.Weekday()))
	if !has(c.month, int(t.Month())) {
		return false
	}
	if c.bothDays {
		return day && weekday
	}
	return day || weekday
}

// repeated is how much longer the local clock shows what it has shown before it was set back, or not
// positive.
func repeated(t time.Time) time.Duration {
	change, _ := t.ZoneBounds()
	if change.IsZero() {
		return 0
	}
	_, now := t.Zone()
	_, before := change.Add(-time.Second).Zone()
	return time.Duration(before-now)*time.Second - t.Sub(change)
}

// count adds up the local days' ticks, each computed.
func (c calendar) count(from, to time.Time) (n int64) {
	end := c.secondAfter(to)
	for t := c.secondAfter(from); t.Before(end); {
		hour, minute, second := t.Clock()
		past := hour*3600 + minute*60 + second
		stop := walk(t, time.Duration(24*3600-past)*time.Second)
		if stop.After(end) {
			stop = end
		}
		n += c.within(t, stop)
		t = stop
	}
	return n
}

// within counts the ticks from t on and before stop, on one local day without a change of the clocks.
func (c calendar) within(t, stop time.Time) int64 {
	if !c.onDay(t) {
		return 0
	}
	hour, minute, second := t.Clock()
	first := hour*3600 + minute*60 + second
	last := first + int(stop.Sub(t)/time.Second)
	if !c.anyHour {
		first += int(max(0, repeated(t)) / time.Second)
	}
	return max(0, c.before(last)-c.before(first))
}

// before counts the ticks of a day of which the local clock's second-of-day is below s.
func (c calendar) before(s int) int64 {
	hour, minute, second := s/3600, s/60%60, s%60
	n := below(c.hour, hour) * below(c.minute, 60) * below(c.second, 60)
	if has(c.hour, hour) {
		n += below(c.minute, minute) * below(c.second, 60)
		if has(c.minute, minute) {
			n += below(c.second, second)
		}
	}
	return n
}

// below counts a set's values below n.
func below(set uint64, n int) int64 { return int64(bits.OnesCount64(set & (1<<n - 1))) }
