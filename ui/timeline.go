package ui

import (
	"cmp"
	"net/url"
	"strconv"
	"time"
)

// bar is what went on for a time, drawn on a timeline. X and Width are percent.
type bar struct {
	Class       string // b-good, b-warn, b-busy, b-rest, or b-missed for what did not go on
	Text        string
	From, Until time.Time // Until is zero while it goes on
	X, Width    string
}

// timeline are the bars within a range of time.
type timeline struct {
	Bars        []bar
	From, Until time.Time
	Ranges      []rangeLink
}

// rangeLink is a range that a visitor can choose.
type rangeLink struct {
	Name, Href string
	Current    bool
}

// ranges are those of timelines, by their values in a query.
var ranges = []struct {
	name string
	span time.Duration // 0: from the first bar on
}{{"1h", time.Hour}, {"6h", 6 * time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"all", 0}}

// timelineOf draws bars, the oldest first, in the query's range, up to the end of the minute: so
// the drawing changes once a minute.
func timelineOf(bars []bar, now time.Time, q url.Values) (t timeline) {
	t.Until = now.Truncate(time.Minute).Add(time.Minute)
	t.From = t.Until
	for _, b := range bars {
		if b.From.Before(t.From) {
			t.From = b.From
		}
	}
	chosen := q.Get("range")
	for _, r := range ranges {
		link := url.Values{"path": q["path"], "range": {r.name}}
		t.Ranges = append(t.Ranges, rangeLink{r.name, "?" + link.Encode(), r.name == cmp.Or(chosen, "all")})
		if r.name == chosen && r.span > 0 {
			t.From = t.Until.Add(-r.span)
		}
	}
	span := max(time.Minute, t.Until.Sub(t.From)).Seconds()
	for _, b := range bars {
		from, until := b.From, b.Until
		if until.IsZero() || until.After(t.Until) {
			until = t.Until
		}
		if until.Before(t.From) {
			continue
		}
		if from.Before(t.From) {
			from = t.From
		}
		b.X = percent(from.Sub(t.From).Seconds() / span)
		b.Width = percent(max(0.002, until.Sub(from).Seconds()/span))
		t.Bars = append(t.Bars, b)
	}
	return t
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" }
