//go:build linux

package main

import (
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run has measured: docs/compare.json.
type report struct {
	Command  string
	Date     string
	Machine  string
	Turns    int
	Versions map[string]string
	Rows     []row
}

// row is one library at one piece of work. Its ratio says how many times as fast as this library
// Lockstep is, or redislock for locks on Redis: the median of the turns, the least and the most.
type row struct {
	Work, Servers, Peer, Unit string
	Figures                   []float64
	Median, Least, Most       float64
	Against                   string  `json:",omitempty"`
	Ratio                     *spread `json:",omitempty"`
}

type spread struct{ Median, Least, Most float64 }

func spreadOf(figures []float64) spread {
	return spread{median(figures), slices.Min(figures), slices.Max(figures)}
}

func newReport(selected []job, turns int, s *stores) *report {
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), Turns: turns, Versions: versions(s),
		Machine: machine()}
	for _, j := range selected {
		r.Rows = append(r.Rows, row{Work: j.work, Servers: j.servers, Peer: j.peer, Unit: workOf(j.work).unit})
	}
	return r
}

// summarize computes medians, ranges and ratios, and rounds what was measured to four digits.
func (r *report) summarize() {
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Figures = rounded(row.Figures)
		all := spreadOf(row.Figures)
		row.Median, row.Least, row.Most = all.Median, all.Least, all.Most
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		against := job{row.Work, row.Servers, row.Peer}.against()
		base := r.row(against)
		if base == nil || base == row {
			continue
		}
		ratios := make([]float64, len(row.Figures))
		for k, f := range row.Figures {
			ratios[k] = base.Figures[k] / f
			if row.Unit == milliseconds {
				ratios[k] = 1 / ratios[k]
			}
		}
		s := spreadOf(rounded(ratios))
		row.Against, row.Ratio = against.peer, &s
	}
}

func (r *report) row(j job) *row {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Work == j.work && row.Servers == j.servers && row.Peer == j.peer {
			return row
		}
	}
	return nil
}

func rounded(figures []float64) []float64 {
	out := make([]float64, len(figures))
	for i, f := range figures {
		_, _ = fmt.Sscan(fmt.Sprintf("%.4g", f), &out[i])
	}
	return out
}

func (r *report) printTable(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s; %s; %d turns\n", r.Command, r.Date, r.Machine, r.Turns)
	for _, name := range slices.Sorted(keys(r.Versions)) {
		fmt.Fprintf(out, "  %s %s\n", name, r.Versions[name])
	}
	for _, w := range works {
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		some := false
		for _, row := range r.Rows {
			if row.Work != w.name {
				continue
			}
			if !some {
				fmt.Fprintf(out, "\n%s: %s\n", w.name, w.title)
				fmt.Fprintf(t, "servers\tlibrary\t%s\trange\tours is so many times as fast\trange\n", w.unit)
				some = true
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s–%s\t%s\n", row.Servers, row.Peer, short(row.Median), short(row.Least),
				short(row.Most), row.ratioCells("\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r row) ratioCells(between string) string {
	if r.Ratio == nil {
		return between
	}
	return fmt.Sprintf("%s%s%s–%s", short(r.Ratio.Median), between, short(r.Ratio.Least), short(r.Ratio.Most))
}

// short writes a figure with three digits.
func short(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// versions are those of the servers that run, and of the libraries.
func versions(s *stores) map[string]string {
	v := map[string]string{"Go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/go-zookeeper/zk", "github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9",
				"go.etcd.io/etcd/client/v3", "github.com/jackc/pgx/v5", "github.com/riverqueue/river":
				v[m.Path] = m.Version
			}
		}
	}
	number := regexp.MustCompile(`\d+\.\d+(\.\d+)?`)
	for _, e := range s.ensembles {
		if text, err := e.FourLetter(0, "srvr"); err == nil {
			v["Apache ZooKeeper"] = number.FindString(text)
		}
	}
	for name, p := range s.processes {
		if text, err := exec.Command(p.command.Path, "--version").Output(); err == nil {
			v[strings.Fields(name)[0]] = number.FindString(string(text))
		}
	}
	return v
}
