package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// processResult is the result of one process of W3.
type processResult struct {
	Counts      []int
	Took        time.Duration
	Traffic     traffic
	HoldPeriods []holdPeriod
}

// contendedByProcesses is W3 with several processes on one path.
func contendedByProcesses(s settings) error {
	all, err := startProcesses(s, root+"/w3")
	defer func() {
		for _, p := range all {
			p.end()
		}
	}()
	for _, p := range all {
		if err == nil {
			_, err = p.readTime("UP")
		}
	}
	for _, p := range all {
		err = errors.Join(err, p.stdin.Close()) // begin
	}
	results := make([]processResult, len(all))
	for i, p := range all {
		if err == nil {
			err = p.readJSON("RESULT", &results[i])
		}
	}
	if err != nil {
		return err
	}
	return combine(s, results)
}

// startProcesses starts a workload's processes. If it returns an error, it also returns the
// processes that it has started.
func startProcesses(s settings, path string) (all []*process, err error) {
	for range s.procs {
		p, err := startProcess(s, path)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// combine checks that the processes excluded each other, and prints their common result. Its
// quantiles are those of the hand-offs from one token to the next, in one process or between two.
func combine(s settings, results []processResult) error {
	var counts []int
	var periods []holdPeriod
	var sent traffic
	for _, sh := range results {
		counts = append(counts, sh.Counts...)
		periods = append(periods, sh.HoldPeriods...)
		sent = sent.plus(sh.Traffic)
	}
	handoffs, err := handoffsOf(periods)
	if err != nil {
		return err
	}
	total := sum(counts)
	sent.Received /= len(results) // each process has read the count of all
	params := s.params(map[string]any{"c": len(results[0].Counts)})
	r := newResult(s, "lockstep", params, total, results[0].Took, handoffs).requests(sent)
	r.Least, r.Most = ptr(slices.Min(counts)), ptr(slices.Max(counts))
	for _, sh := range results {
		r.Shares = append(r.Shares, float64(sum(sh.Counts))/float64(max(total, 1)))
	}
	return r.print()
}

// handoffsOf returns the times between one hold period and the next, in the order of their tokens.
// It returns an error if two periods overlap.
func handoffsOf(periods []holdPeriod) ([]time.Duration, error) {
	slices.SortFunc(periods, func(a, b holdPeriod) int { return cmp.Compare(a.Token, b.Token) })
	var handoffs []time.Duration
	for i := 1; i < len(periods); i++ {
		before, t := periods[i-1], periods[i]
		if t.From < before.To || t.Token == before.Token {
			return nil, fmt.Errorf("%w: token %#x was held from %d, token %#x until %d",
				errViolated, t.Token, t.From, before.Token, before.To)
		}
		if t.Measured {
			handoffs = append(handoffs, time.Duration(t.From-before.To))
		}
	}
	return handoffs, nil
}

// contenderProcess is one process of W3. It begins when its standard input is closed.
func contenderProcess(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	lockers := sharedMutexes(s, c, s.member)
	printTime("UP")
	bufio.NewScanner(os.Stdin).Scan()
	g := criticalSection{keepHoldPeriods: true}
	t, err := contend(s, &g, lockers)
	if err != nil {
		return err
	}
	text, err := json.Marshal(processResult{t.counts, t.took, t.traffic, g.holdPeriods})
	if err == nil {
		_, err = fmt.Printf("RESULT %s\n", text)
	}
	return err
}
