package scheduler

import (
	"sort"
	"time"
)

// due are the ticks of a schedule after one time and not after another.
type due struct {
	count         int64
	first, latest time.Time
}

// dueTicks finds the ticks after from and not after to in bounded work, however many they are.
func (s Schedule) dueTicks(from, to time.Time) due {
	n := s.ticks.count(from, to)
	if n <= 0 {
		return due{}
	}
	return due{count: n, first: s.Next(from).UTC(), latest: s.latest(from, to)}
}

// latest is the last tick not after to, of which there is one after from.
func (s Schedule) latest(from, to time.Time) time.Time {
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

// gap is these ticks, missed.
func (d due) gap(why Reason) Gap {
	return Gap{From: d.first, To: d.latest, Count: d.count, Reason: why}
}
