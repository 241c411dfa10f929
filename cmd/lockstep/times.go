package main

import (
	"fmt"
	"math"
	"time"
)

// All texts for people show times with formatTime, and ages with formatAge: columns show ages,
// sentences times. Where the zone matters, such as for the ticks of a job with its own zone, and in
// fields of other programs, times are those of RFC 3339.

// formatTime formats a time in the zone of this machine, or "" if it is zero.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// formatSince is how long ago a time was, or "" if it is zero.
func formatSince(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatAge(now.Sub(t))
}

// formatAge is how long ago something was, in at most two units.
func formatAge(d time.Duration) string {
	seconds := int64(math.Max(0, d.Seconds())) // clocks differ
	units := []struct {
		name string
		size int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}
	for i, u := range units {
		if seconds < u.size {
			continue
		}
		text := fmt.Sprint(seconds/u.size, u.name)
		if i+1 < len(units) {
			next := units[i+1]
			text += fmt.Sprintf("%02d%s", seconds%u.size/next.size, next.name)
		}
		return text + " ago"
	}
	return "just now"
}
