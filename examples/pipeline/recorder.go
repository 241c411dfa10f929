package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

// recorder writes the live log and collects the figures of the report.
type recorder struct {
	demo.Log
	job         job
	wantedKills int         // kills, so far
	store       func(event) // stores each event
	violations  []error     // violations

	round      int    // the latest
	leader     string // the current leader, or ""
	terms      []term
	kills      []kill
	plans      []int // items that leaders have put in this round, by phase
	results    []int // results that living workers have reported in this round, by phase
	met        []int // workers that were seen inside the barrier in this round, by phase
	stored     int   // results of all rounds
	deliveries int
	returned   int // deliveries of items that had been delivered before
	repeated   int // deliveries of items that had a result
	elapsed    time.Duration
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

func newRecorder(o options) *recorder {
	j := &recorder{Log: demo.NewLog(o.json), job: o.job, store: func(event) {}}
	j.beginRound(1)
	return j
}

// beginRound checks the last round, and begins another.
func (rec *recorder) beginRound(round int) {
	rec.violations = append(rec.violations, rec.duplicateWork()...)
	n := len(phases)
	rec.round, rec.plans, rec.results, rec.met = round, make([]int, n), make([]int, n), make([]int, n)
	if round > 1 {
		rec.Marked(time.Now(), rec.Cyan("*"), "round %d begins", round)
	}
}

// duplicateWork returns an error for each kind of work that was done too often in this round.
func (rec *recorder) duplicateWork() (errs []error) {
	for p, n := range rec.plans {
		if n > rec.job.Items {
			errs = append(errs, fmt.Errorf("%d items of %q were put, but there are %d", n, phases[p].name,
				rec.job.Items))
		}
	}
	for p, n := range rec.results {
		if n > rec.job.Items {
			errs = append(errs, fmt.Errorf("%d results of %q were stored, but there are %d", n, phases[p].name,
				rec.job.Items))
		}
	}
	return errs
}

// progress returns the number of results of this round, of all phases.
func (rec *recorder) progress() (n int) {
	for _, r := range rec.results {
		n += r
	}
	return n
}

// record adds an event of a worker.
func (rec *recorder) record(e event) {
	rec.store(e)
	if e.Round > rec.round {
		rec.beginRound(e.Round)
	}
	switch e.Kind {
	case leading:
		rec.leader = e.Worker
		rec.terms = append(rec.terms, term{e.Worker, e.Token, e.At})
		// events of different workers arrive in any order
		slices.SortStableFunc(rec.terms, func(a, b term) int { return a.At.Compare(b.At) })
		rec.Marked(e.At, rec.Cyan("*"), "%s leads with token %d", rec.Bold(e.Worker), e.Token)
	case planned:
		rec.count(e, rec.plans, e.Count)
		rec.Marked(e.At, rec.Cyan("*"), "%s plans %q: %d items into the queue", e.Worker, phases[e.Phase].name, e.Count)
	case delivered:
		rec.deliveries++
		if e.Attempt > 1 {
			rec.returned++
			rec.Marked(e.At, rec.Yellow("!"), "%s has an item that a dead worker had, attempt %d", e.Worker, e.Attempt)
		}
	case worked:
		rec.stored++
		rec.count(e, rec.results, 1)
	case repeated:
		rec.repeated++
		rec.Marked(e.At, rec.Yellow("!"), "%s finds the item's result, stored before the death", e.Worker)
	case met:
		rec.countMet(e)
	case leadFailed:
		rec.Marked(e.At, rec.Yellow("!"), "%s no longer leads: %s", e.Worker, e.Reason)
	}
}

// count counts an event of this round. A late event may belong to the last one.
func (rec *recorder) count(e event, counts []int, n int) {
	if e.Round == rec.round {
		counts[e.Phase] += n
	}
}

func (rec *recorder) countMet(e event) {
	rec.count(e, rec.met, 1)
	if e.Round == rec.round && rec.met[e.Phase] == rec.job.Workers {
		rec.Marked(e.At, rec.Green("="), "all %d have met at the barrier: %q is over", rec.job.Workers,
			phases[e.Phase].name)
	}
}

// recordKill records that a worker was killed.
func (rec *recorder) recordKill(worker string, at time.Time) {
	rec.store(event{Kind: killed, Worker: worker, At: at})
	leader := worker == rec.leader
	rec.kills = append(rec.kills, kill{worker, leader})
	if leader {
		rec.leader = ""
	}
	what := map[bool]string{true: ", the leader,"}[leader]
	rec.Marked(at, rec.Red("x"), "%s%s is killed (SIGKILL)", rec.Bold(worker), what)
}

// killedLeaders returns how many of the killed workers were leaders.
func (rec *recorder) killedLeaders() (n int) {
	for _, k := range rec.kills {
		if k.Leader {
			n++
		}
	}
	return n
}
