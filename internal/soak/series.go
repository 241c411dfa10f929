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

// seriesName names a series.
type seriesName struct{ whose, measure string }

// seriesByName is all series.
type seriesByName map[seriesName][]point

func (c seriesByName) add(whose, measure string, p point) {
	n := seriesName{whose, measure}
	c[n] = append(c[n], p)
}

// names are in the order of measures, then of processes.
func (c seriesByName) names() []seriesName {
	return slices.SortedFunc(maps.Keys(c), func(a, b seriesName) int {
		if a.measure != b.measure {
			return strings.Compare(a.measure, b.measure)
		}
		return strings.Compare(a.whose, b.whose)
	})
}

// coversRun reports whether a series covers most of a run. Those of killed workers do not.
func coversRun(points []point, run time.Duration) bool {
	return len(points) > 1 && points[len(points)-1].at-points[0].at > run/2
}

// after leaves the warm-up out.
func after(points []point, warmUp time.Duration) []point {
	i, _ := slices.BinarySearchFunc(points, warmUp, func(p point, t time.Duration) int { return int(p.at - t) })
	return points[i:]
}

// slope is the median of the slopes of all pairs of points (Theil and Sen's), in value per hour: a quarter of the points may
// lie anywhere.
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

// trend is what became of a series after the warm-up.
type trend struct {
	seriesName
	median  float64
	perHour float64
	rise    float64 // over the time that was fitted
	bound   float64 // what rise may be and still be called flat
}

// fitTrend fits a line. What is at most a tenth of the median, or the measure's grain, is flat.
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

// resolution is the largest change that counts as noise.
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

// verdict is "flat", "falls" or "GROWS".
func (f trend) verdict() string {
	switch {
	case f.rise > f.bound:
		return "GROWS"
	case f.rise < -f.bound:
		return "falls"
	}
	return "flat"
}
