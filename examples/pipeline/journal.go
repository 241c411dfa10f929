package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// journal is the live log, and the notes for the report.
type journal struct {
	out   io.Writer
	style terminal.Style
	job   job
	asked int // kills

	leads      string // who leads, or ""
	terms      []term
	kills      []kill
	plans      []int // items that leaders have put, by phase
	results    []int // results that were stored, by phase, as far as workers lived to tell
	met        []int // workers that were seen inside the barrier, by phase
	deliveries int
	returned   int // deliveries of items that had been delivered before
	repeated   int // deliveries whose result was there
	took       time.Duration
	reported   result
}

type term struct {
	Leader string    `json:"leader"`
	Token  int64     `json:"token"`
	At     time.Time `json:"-"`
}

type kill struct {
	Worker string `json:"worker"`
	Leader bool   `json:"leader"` // it led
}

// newJournal writes in colour if somebody may be watching.
func newJournal(o options) *journal {
	n := len(phases)
	return &journal{
		out: o.log(), style: terminal.For(o.log()), job: o.job, asked: o.kills,
		plans: make([]int, n), results: make([]int, n), met: make([]int, n),
	}
}

const clock = "15:04:05.000"

// log writes one line of the live log.
func (j *journal) log(at time.Time, mark, format string, args ...any) {
	fmt.Fprintf(j.out, "%s  %s  %s\n", j.style.Dim(at.Local().Format(clock)), mark, fmt.Sprintf(format, args...))
}

// progress is the number of items that have been worked on, in all phases.
func (j *journal) progress() (n int) {
	for _, r := range j.results {
		n += r
	}
	return n
}

// take notes what a worker tells.
func (j *journal) take(e event) {
	switch e.Kind {
	case leading:
		j.leads = e.Worker
		j.terms = append(j.terms, term{e.Worker, e.Token, e.At})
		slices.SortStableFunc(j.terms, func(a, b term) int { return a.At.Compare(b.At) }) // each has a pipe of its own
		j.log(e.At, j.style.Cyan("*"), "%s leads with token %d", j.style.Bold(e.Worker), e.Token)
	case planned:
		j.plans[e.Phase] += e.Count
		j.log(e.At, j.style.Cyan("*"), "%s plans %q: %d items into the queue", e.Worker, phases[e.Phase].name, e.Count)
	case took:
		j.deliveries++
		if e.Attempt > 1 {
			j.returned++
			j.log(e.At, j.style.Yellow("!"), "%s has an item that a dead worker had, attempt %d", e.Worker, e.Attempt)
		}
	case worked:
		j.results[e.Phase]++
	case repeated:
		j.repeated++
		j.log(e.At, j.style.Yellow("!"), "%s finds the item's result: it was stored before the death", e.Worker)
	case met:
		j.meets(e)
	case troubled:
		j.log(e.At, j.style.Yellow("!"), "%s leads no more: %s", e.Worker, e.Reason)
	}
}

func (j *journal) meets(e event) {
	j.met[e.Phase]++
	if j.met[e.Phase] == j.job.Workers {
		j.log(e.At, j.style.Green("="), "all %d have met at the barrier: %q is over", j.job.Workers, phases[e.Phase].name)
	}
}

// killed notes a worker's death.
func (j *journal) killed(worker string, at time.Time) {
	leader := worker == j.leads
	j.kills = append(j.kills, kill{worker, leader})
	if leader {
		j.leads = ""
	}
	what := map[bool]string{true: ", the leader,"}[leader]
	j.log(at, j.style.Red("x"), "%s%s is killed (SIGKILL)", j.style.Bold(worker), what)
}

// leaders is the number of leaders among the killed.
func (j *journal) leaders() (n int) {
	for _, k := range j.kills {
		if k.Leader {
			n++
		}
	}
	return n
}
