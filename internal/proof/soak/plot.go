package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// plotPanel is one small plot: one measure of the subjects whose names begin with one of the
// prefixes.
type plotPanel struct {
	title    string
	measure  string
	prefixes []string
	unit     float64 // of the axis
}

const mebibyte = 1 << 20

var panels = []plotPanel{
	{"live heap of workers that are not killed, and of the parent (MiB)", liveHeap, []string{"worker", "pipeline"},
		mebibyte},
	{"resident memory of the same (MiB)", residentMemory, []string{"worker", "pipeline"}, mebibyte},
	{"goroutines of the same", goroutines, []string{"worker", "pipeline"}, 1},
	{"descriptors of the same", openDescriptors, []string{"worker", "pipeline"}, 1},
	{"resident memory of the servers (MiB)", residentMemory, []string{"server"}, mebibyte},
	{"descriptors of the servers", openDescriptors, []string{"server"}, 1},
	{"znodes", "znodes", []string{"server"}, 1},
	{"watches of all servers", "watches", []string{"servers"}, 1},
	{"processes: workers, their watchdogs, the parent", processes, []string{"pipeline"}, 1},
	{"items done, and workers killed", itemsDone, []string{"pipeline"}, 1},
}

// The measures of a panel and of the page, in pixels.
const (
	columns    = 2
	panelWide  = 440
	panelHigh  = 190
	left       = 56 // of the axis
	top        = 34
	plotWide   = panelWide - left - 24
	plotHigh   = panelHigh - top - 40
	mostPoints = 180 // of a line
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="11">
<style>
  text { fill: #52514e } .title { fill: #0b0b0b; font-weight: 600 } .grid { stroke: #d9d8d4 }
  path { fill: none; stroke-width: 1.5; stroke-linejoin: round }
  .s0 { stroke: #2a78d6 } .s1 { stroke: #eb6834 } .s2 { stroke: #1baf7a }
  @media (prefers-color-scheme: dark) {
    text { fill: #c3c2b7 } .title { fill: #ffffff } .grid { stroke: #3a3a38 }
    .s0 { stroke: #3987e5 } .s1 { stroke: #d95926 } .s2 { stroke: #199e70 }
  }
</style>
`

// draw draws all panels as an SVG that is readable on light and dark pages.
func draw(c seriesByName) string {
	var b strings.Builder
	rows := (len(panels) + columns - 1) / columns
	fmt.Fprintf(&b, head, columns*panelWide, rows*panelHigh)
	run := end(c)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%columns*panelWide, i/columns*panelHigh)
		p.draw(&b, c, run)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// end returns the time of the last point.
func end(c seriesByName) (last time.Duration) {
	last = time.Second
	for _, points := range c {
		last = max(last, points[len(points)-1].at)
	}
	return last
}

func (p plotPanel) draw(b *strings.Builder, c seriesByName, run time.Duration) {
	names := p.names(c, run)
	highest := 0.0
	for _, n := range names {
		for _, q := range c[n] {
			highest = max(highest, q.value/p.unit)
		}
	}
	limit := roundUp(highest)
	fmt.Fprintf(b, `<text class="title" x="%d" y="14">%s</text>`+"\n", left, html.EscapeString(p.title))
	p.axes(b, limit, run)
	for i, n := range names {
		fmt.Fprintf(b, `<path class="s%d" d="%s"/>`+"\n", i%3, p.line(c[n], limit, run))
		x := left + i*110
		fmt.Fprintf(b, `<path class="s%d" d="M%d 25h14"/><text x="%d" y="28">%s</text>`+"\n", i%3, x, x+18,
			html.EscapeString(n.label()))
	}
}

// names returns the panel's series, without those that cover only a part of the run.
func (p plotPanel) names(c seriesByName, run time.Duration) (names []seriesName) {
	for _, n := range c.names() {
		wanted := n.measure == p.measure || p.measure == itemsDone && n.measure == workersKilled
		for _, prefix := range p.prefixes {
			if wanted && strings.HasPrefix(n.subject, prefix) && coversRun(c[n], run) {
				names = append(names, n)
			}
		}
	}
	return names
}

func (n seriesName) label() string {
	if n.measure == itemsDone || n.measure == workersKilled {
		return n.measure
	}
	return n.subject
}

func (p plotPanel) axes(b *strings.Builder, limit float64, run time.Duration) {
	const steps = 4
	for i := range steps + 1 {
		y := top + plotHigh - plotHigh*i/steps
		fmt.Fprintf(b, `<path class="grid" d="M%d %dh%d"/><text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
			left, y, plotWide, left-6, y+4, strconv.FormatFloat(limit*float64(i)/steps, 'f', -1, 32))
	}
	for i := range steps + 1 {
		x := left + plotWide*i/steps
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%.0f min</text>`+"\n",
			x, top+plotHigh+16, run.Minutes()*float64(i)/steps)
	}
}

// line returns a path through the points, or through some of them if there are many.
func (p plotPanel) line(points []point, limit float64, run time.Duration) string {
	var b strings.Builder
	stride := max(1, len(points)/mostPoints)
	for i := 0; i < len(points); i += stride {
		q := points[i]
		x := left + plotWide*q.at.Seconds()/run.Seconds()
		y := top + plotHigh*(1-q.value/p.unit/limit)
		fmt.Fprintf(&b, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x, y)
	}
	return b.String()
}

// roundUp returns the next of 1, 2, 4, 5 and 8 times a power of ten. A quarter of such a number has
// few digits.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 4, 5, 8} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
