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

// share is the result of one process of W3.
type share struct {
	Counts  []int
	Took    time.Duration
	Traffic traffic
	Tenures []holdPeriod
}

// sharedByProcesses is W3 with several processes on one path.
func sharedByProcesses(s settings) error {
	all, err := startProcesses(s, root+"/w3")
	defer func() {
		for _, p := range all {
			p.end()
		}
	}()
	for _, p := range all {
		if err == nil {
			_, err = p.await("UP")
		}
	}
	for _, p := range all {
		err = errors.Join(err, p.tell.Close()) // begin
	}
	shares := make([]share, len(all))
	for i, p := range all {
		if err == nil {
			err = p.hear("SHARE", &shares[i])
		}
	}
	if err != nil {
		return err
	}
	return compare(s, shares)
}

// startProcesses starts a workload's members. What has started is returned beside an error too.
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

// compare checks that the processes excluded each other, and prints what they did together. The
// quantiles are those of hand-offs between tokens, in one process or between two.
func compare(s settings, shares []share) error {
	var counts []int
	var tenures []holdPeriod
	var sent traffic
	for _, sh := range shares {
		counts = append(counts, sh.Counts...)
		tenures = append(tenures, sh.Tenures...)
		sent = sent.plus(sh.Traffic)
	}
	handoffs, err := handoffsOf(tenures)
	if err != nil {
		return err
	}
	total := sum(counts)
	sent.Received /= len(shares) // each process has read the count of all
	params := s.params(map[string]any{"c": len(shares[0].Counts)})
	r := newResult(s, "lockstep", params, total, shares[0].Took, handoffs).requests(sent)
	r.Least, r.Most = of(slices.Min(counts)), of(slices.Max(counts))
	for _, sh := range shares {
		r.Shares = append(r.Shares, float64(sum(sh.Counts))/float64(max(total, 1)))
	}
	return r.print()
}

// handoffsOf returns the times between tenures, in the order of their tokens, and an error if two overlap.
func handoffsOf(tenures []holdPeriod) ([]time.Duration, error) {
	slices.SortFunc(tenures, func(a, b holdPeriod) int { return cmp.Compare(a.Token, b.Token) })
	var handoffs []time.Duration
	for i := 1; i < len(tenures); i++ {
		before, t := tenures[i-1], tenures[i]
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

// sharer is one process of W3. It begins when its standard input is closed.
func sharer(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	lockers := sharing(s, c, s.member)
	say("UP")
	bufio.NewScanner(os.Stdin).Scan()
	g := guarded{keep: true}
	t, err := contend(s, &g, lockers)
	if err != nil {
		return err
	}
	said, err := json.Marshal(share{t.counts, t.took, t.traffic, g.tenures})
	if err == nil {
		_, err = fmt.Printf("SHARE %s\n", said)
	}
	return err
}
