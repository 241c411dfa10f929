package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// journal writes the live log and collects the figures of the report.
type journal struct {
	out   io.Writer
	style terminal.Style
	job   job
	asked int         // kills, so far
	note  func(event) // stores each event
	wrong []error     // violations

	round      int    // the latest
	leads      string // the current leader, or ""
	terms      []term
	kills      []kill
	plans      []int // items that leaders have put in this round, by phase
	results    []int // results that living workers have reported in this round, by phase
	met        []int // workers that were seen inside the barrier in this round, by phase
	stored     int   // results of all rounds
	deliveries int
	returned   int // deliveries of items that had been delivered before
	repeated   int // deliveries of items that had a result
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
	Leader bool   `json:"leader"` // it was the leader
}

// newJournal writes in colour on a terminal.
func newJournal(o options) *journal {
	j := &journal{out: o.log(), style: terminal.For(o.log()), job: o.job, note: func(event) {}}
	j.begin(1)
	return j
}

// begin checks the last round, and begins another.
func (j *journal) begin(round int) {
	j.wrong = append(j.wrong, j.overdone()...)
	n := len(phases)
	j.round, j.plans, j.results, j.met = round, make([]int, n), make([]int, n), make([]int, n)
	if round > 1 {
		j.log(time.Now(), j.style.Cyan("*"), "round %d begins", round)
	}
}

// overdone reports work of this round that was done too often.
func (j *journal) overdone() (errs []error) {
	for p, n := range j.plans {
		if n > j.job.Items {
			errs = append(errs, fmt.Errorf("%d items of %q were put, but there are %d", n, phases[p].name, j.job.Items))
		}
	}
	for p, n := range j.results {
		if n > j.job.Items {
			errs = append(errs, fmt.Errorf("%d results of %q were stored, but there are %d", n, phases[p].name, j.job.Items))
		}
	}
	return errs
}

const clock = "15:04:05.000"

// log writes one line of the live log.
func (j *journal) log(at time.Time, mark, format string, args ...any) {
	fmt.Fprintf(j.out, "%s  %s  %s\n", j.style.Dim(at.Local().Format(clock)), mark, fmt.Sprintf(format, args...))
}

// progress is the number of results of this round, in all phases.
func (j *journal) progress() (n int) {
	for _, r := range j.results {
		n += r
	}
	return n
}

// take notes an event of a worker.
func (j *journal) take(e event) {
	j.note(e)
	if e.Round > j.round {
		j.begin(e.Round)
	}
	switch e.Kind {
	case leading:
		j.leads = e.Worker
		j.terms = append(j.terms, term{e.Worker, e.Token, e.At})
		slices.SortStableFunc(j.terms, func(a, b term) int { return a.At.Compare(b.At) }) // events of different workers arrive in any order
		j.log(e.At, j.style.Cyan("*"), "%s leads with token %d", j.style.Bold(e.Worker), e.Token)
	case planned:
		j.count(e, j.plans, e.Count)
		j.log(e.At, j.style.Cyan("*"), "%s plans %q: %d items into the queue", e.Worker, phases[e.Phase].name, e.Count)
	case took:
		j.deliveries++
		if e.Attempt > 1 {
			j.returned++
			j.log(e.At, j.style.Yellow("!"), "%s has an item that a dead worker had, attempt %d", e.Worker, e.Attempt)
		}
	case worked:
		j.stored++
		j.count(e, j.results, 1)
	case repeated:
		j.repeated++
		j.log(e.At, j.style.Yellow("!"), "%s finds the item's result: it was stored before the death", e.Worker)
	case met:
		j.meets(e)
	case troubled:
		j.log(e.At, j.style.Yellow("!"), "%s leads no more: %s", e.Worker, e.Reason)
	}
}

// count counts an event of this round. A late event may belong to the last one.
func (j *journal) count(e event, counts []int, n int) {
	if e.Round == j.round {
		counts[e.Phase] += n
	}
}

func (j *journal) meets(e event) {
	j.count(e, j.met, 1)
	if e.Round == j.round && j.met[e.Phase] == j.job.Workers {
		j.log(e.At, j.style.Green("="), "all %d have met at the barrier: %q is over", j.job.Workers, phases[e.Phase].name)
	}
}

// killed notes a worker's death.
func (j *journal) killed(worker string, at time.Time) {
	j.note(event{Kind: killed, Worker: worker, At: at})
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
