package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// point is one value at a time since the beginning.
type point struct {
	at    time.Duration
	value float64
}

// seriesName identifies a series: a measure of a subject, which is a process, a server, or all
// servers.
type seriesName struct{ subject, measure string }

// seriesByName has all series.
type seriesByName map[seriesName][]point

func (s seriesByName) add(subject, measure string, p point) {
	n := seriesName{subject, measure}
	s[n] = append(s[n], p)
}

// names returns the names of all series, in the order of their measures, then of their subjects.
func (s seriesByName) names() []seriesName {
	return slices.SortedFunc(maps.Keys(s), func(a, b seriesName) int {
		if a.measure != b.measure {
			return strings.Compare(a.measure, b.measure)
		}
		return strings.Compare(a.subject, b.subject)
	})
}

// coversRun reports whether a series covers most of a run. Those of killed workers do not.
func coversRun(points []point, run time.Duration) bool {
	return len(points) > 1 && points[len(points)-1].at-points[0].at > run/2
}

// after returns the points after the warm-up.
func after(points []point, warmUp time.Duration) []point {
	i, _ := slices.BinarySearchFunc(points, warmUp, func(p point, t time.Duration) int { return int(p.at - t) })
	return points[i:]
}

// slope returns the median of the slopes of all pairs of points (the Theil-Sen estimator), in units
// per hour. Outliers do not change it as long as they are less than a quarter of the points.
func slope(points []point) float64 {
	var slopes []float64
	for i, p := range points {
		for _, q := range points[i+1:] {
			slopes = append(slopes, (q.value-p.value)/(q.at-p.at).Hours())
		}
	}
	return median(slopes)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// trend is the line that was fitted to a series after the warm-up.
type trend struct {
	seriesName
	median  float64
	perHour float64
	rise    float64 // over the time that was fitted
	bound   float64 // what rise may be and still be called flat
}

// fitTrend fits a line to a series. A rise of at most a tenth of the median, or of at most the
// measure's resolution, is flat.
func fitTrend(n seriesName, points []point) trend {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.value
	}
	f := trend{seriesName: n, median: median(values), perHour: slope(points)}
	f.rise = f.perHour * (points[len(points)-1].at - points[0].at).Hours()
	f.bound = max(f.median/10, resolution(n.measure))
	return f
}

// resolution returns the largest change of a measure that counts as noise.
func resolution(measure string) float64 {
	switch measure {
	case residentMemory, anonymousMemory:
		return 2 << 20
	case liveHeap:
		return 512 << 10
	case "data":
		return 64 << 10
	}
	return 3
}

// verdict returns "flat", "falls" or "GROWS".
func (t trend) verdict() string {
	switch {
	case t.rise > t.bound:
		return "GROWS"
	case t.rise < -t.bound:
		return "falls"
	}
	return "flat"
}
