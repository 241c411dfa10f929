package main

import (
	"encoding/json"
	"fmt"
	"path"
	"time"
)

// job is the work of one run. Every worker gets it in its environment.
type job struct {
	Workers int           `json:"workers"`
	Items   int           `json:"items"` // of each phase
	Effort  time.Duration `json:"effort"`
	Until   time.Time     `json:"until"` // no round begins later, except for the first Rounds
	Rounds  int           `json:"rounds"`
}

// variable is the environment variable that gives the job to a worker.
func (j job) variable() string {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // it consists of numbers
	}
	return jobVariable + "=" + string(text)
}

// phase is one step of the pipeline: a function that computes the result of each item.
type phase struct {
	name  string
	apply func(int64) int64
}

// phases are the pipeline. The values of a phase are the results of the one before; the first
// begins with 1, 2, 3, …
var phases = []phase{
	{"square", func(n int64) int64 { return n * n }},
	{"triple", func(n int64) int64 { return 3 * n }},
	{"add one", func(n int64) int64 { return n + 1 }},
}

// sum returns the correct result of a round, as a single process would compute it.
func (j job) sum() (total int64) {
	for n := range int64(j.Items) {
		value := n + 1
		for _, p := range phases {
			value = p.apply(value)
		}
		total += value
	}
	return total
}

// total is the number of items of all phases of a round.
func (j job) total() int { return j.Items * len(phases) }

// dedupWindow returns the deduplication window: the time that a single worker needs for a phase,
// plus a minute.
func (j job) dedupWindow() time.Duration { return time.Minute + time.Duration(j.Items)*j.Effort }

// item is one piece of work in the queue.
type item struct {
	Round int   `json:"round"`
	Phase int   `json:"phase"`
	Index int   `json:"index"`
	Value int64 `json:"value"`
}

// id identifies an item. Because the queue deduplicates by id, a new leader that repeats a dead
// leader's plan puts no item twice.
func (i item) id() string { return fmt.Sprintf("%d-%d-%d", i.Round, i.Phase, i.Index) }

// result is the path of an item's result. The node is created once, however often the item is
// delivered.
func (i item) result() string {
	return path.Join(resultsPath(i.Round, i.Phase), fmt.Sprintf("%04d", i.Index))
}

// Paths below the root of this run.
const (
	leaderPath  = "/pipeline/leader"  // election: who plans and reports
	queuePath   = "/pipeline/queue"   // queue: the items
	barrierPath = "/pipeline/barrier" // double barrier: the end of each phase
	roundsPath  = "/pipeline/rounds"  // what belongs to one round
)

func roundPath(round int) string { return fmt.Sprintf("%s/%d", roundsPath, round) }

// reportPath is the leader's report of a round. It is persistent.
func reportPath(round int) string { return roundPath(round) + "/report" }

// reportedPath is a latch that opens when the report is stored.
func reportedPath(round int) string { return roundPath(round) + "/reported" }

// phasePath is the directory of one phase of a round.
func phasePath(round, phase int) string { return fmt.Sprintf("%s/phase-%d", roundPath(round), phase) }

// resultsPath is the directory of a phase's results.
func resultsPath(round, phase int) string { return phasePath(round, phase) + "/results" }

// donePath is a latch that each item of a phase counts down once.
func donePath(round, phase int) string { return phasePath(round, phase) + "/done" }

// overPath is a latch that opens when all workers have met at the barrier.
func overPath(round, phase int) string { return phasePath(round, phase) + "/over" }
