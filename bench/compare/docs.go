//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// write writes the report to a directory, with its charts, and renews the tables of the pages
// there.
func (r *report) write(dir string) error {
	return errors.Join(writeJSON(filepath.Join(dir, "compare.json"), r),
		os.WriteFile(filepath.Join(dir, "compare-light.svg"), r.chart(light), 0o644),
		os.WriteFile(filepath.Join(dir, "compare-dark.svg"), r.chart(dark), 0o644), writeTables(dir))
}

func writeJSON(file string, r any) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// tables are the parts of pages that are made from reports, each between two comments with its
// name.
var tables = []struct {
	page, name string
	table      func(dir string) (string, error)
}{
	{"performance.md", "compare", func(dir string) (string, error) {
		var r report
		return read(filepath.Join(dir, "compare.json"), &r, r.markdown)
	}},
	{"comparison.md", "holders", func(dir string) (string, error) {
		var r holdersReport
		return read(filepath.Join(dir, "compare-holders.json"), &r, r.markdown)
	}},
}

func read(file string, into any, markdown func() string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return "", err
	}
	return markdown(), nil
}

// writeTables renews the tables of the pages in a directory. It leaves out pages that are not
// there.
func writeTables(dir string) error {
	for _, t := range tables {
		file := filepath.Join(dir, t.page)
		page, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			page, err = withTable(page, t.name, func() (string, error) { return t.table(dir) })
		}
		if err == nil {
			err = os.WriteFile(file, page, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withTable returns a page with what table returns between its comments.
func withTable(page []byte, name string, table func() (string, error)) ([]byte, error) {
	begin, end := []byte("<!-- "+name+": generated -->\n"), []byte("<!-- "+name+": end -->")
	before, rest, begun := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !begun || !ended {
		return nil, fmt.Errorf("the page has no comments %s and %s", bytes.TrimSpace(begin), end)
	}
	text, err := table()
	return slices.Concat(before, begin, []byte(text), end, after), err
}

func (r *report) markdown() string {
	var out strings.Builder
	var with []string
	for _, name := range slices.Sorted(keys(r.Versions)) {
		with = append(with, strings.TrimPrefix(name, "github.com/")+" "+r.Versions[name])
	}
	fmt.Fprintf(&out, "`%s`, %s, %s, turns: %d, with %s.\n\n", r.Command, r.Date, r.Machine, r.Turns,
		strings.Join(with, ", "))
	fmt.Fprintln(&out, "| work | servers | library | median | range | ratio | range |\n|---|---|---|---|---|---|---|")
	for _, w := range works {
		title := w.title
		for _, row := range r.Rows {
			if row.Work != w.name {
				continue
			}
			unit := " ms"
			if row.Unit == perSecond {
				unit = "/s"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s%s | %s–%s | %s |\n", title, row.Servers, row.Peer,
				short(row.Median), unit, short(row.Least), short(row.Most), row.ratioCells(" | "))
			title = ""
		}
	}
	return out.String()
}

func (r *holdersReport) markdown() string {
	var out strings.Builder
	turns := 0
	for _, row := range r.Rows {
		turns = max(turns, len(row.Outcomes))
	}
	fmt.Fprintf(&out, "`%s`, %s, %s, turns: %d. Session timeout, time to live or expiry: %s; ", r.Command, r.Date,
		r.Machine, turns, r.Session)
	fmt.Fprintf(&out, "a holder stands still for %s. ≥: for all the time that was watched.\n\n", r.Frozen)
	fmt.Fprintln(&out, "| | library | | both believe to hold: median | range |\n|---|---|---|---|---|")
	former := ""
	for _, row := range r.Rows {
		fault := row.Fault
		if fault == former {
			fault = ""
		}
		former = row.Fault
		median, all := row.together()
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", fault, row.Peer, row.Note, median, all)
	}
	return out.String()
}

// colours are those of a chart.
type colours struct{ background, text, faint, ours, others, limit string }

var (
	light = colours{"#ffffff", "#1f2328", "#59636e", "#0969da", "#818b98", "#d1d9e0"}
	dark  = colours{"#0d1117", "#f0f6fc", "#9198a1", "#4493f8", "#656c76", "#3d444d"}
)

// charted is the work that the chart shows: that of which more is better, on stores with sessions.
var charted = []string{"uncontended", "contended", "goroutines", "handover", "queue", "counter"}

// chart draws a bar for each row, as long as its median beside the longest of the same work.
func (r *report) chart(c colours) []byte {
	const width, left, right, line = 860, 260, 90, 20
	var bars strings.Builder
	y := 12
	for _, name := range charted {
		w, longest := workOf(name), 0.0
		for _, row := range r.Rows {
			if row.Work == name {
				longest = max(longest, row.Median)
			}
		}
		if longest == 0 {
			continue
		}
		y += line
		fmt.Fprintf(&bars, `<text x="12" y="%d" font-weight="600" fill="%s">%s, %s</text>`+"\n", y, c.text,
			html.EscapeString(w.title), w.unit)
		y += 8
		for _, row := range r.Rows {
			if row.Work != name {
				continue
			}
			colour := c.others
			switch row.Peer {
			case lockstepPeer, redislockPeer:
				colour = c.ours
			case barePeer:
				colour = c.limit
			}
			length := max(2, row.Median/longest*(width-left-right))
			fmt.Fprintf(&bars, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s, %s</text>`, left-8, y+14, c.faint,
				html.EscapeString(row.Peer), html.EscapeString(row.Servers))
			fmt.Fprintf(&bars, `<rect x="%d" y="%d" width="%.0f" height="%d" rx="2" fill="%s"/>`, left, y+3, length, line-6,
				colour)
			fmt.Fprintf(&bars, `<text x="%.0f" y="%d" fill="%s">%s</text>`+"\n", left+length+6, y+14, c.text,
				short(row.Median))
			y += line
		}
		y += 10
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-size="12" `+
		`font-family="system-ui, sans-serif" role="img" aria-label="Medians of make compare">
<rect width="100%%" height="100%%" fill="%s"/>
%s</svg>
`, width, y+8, c.background, bars.String())
}
