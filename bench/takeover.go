package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/election"
)

// takeover is W5: the time from the leader's end to the other's lead.
func takeover(s settings) error {
	if s.how != "kill" && s.how != "close" {
		return fmt.Errorf("-how %q: want kill or close", s.how)
	}
	n := or(s.n, 1)
	laps := make([]time.Duration, 0, n)
	var total time.Duration
	for range n {
		d, err := takeoverOnce(s)
		if err != nil {
			return err
		}
		laps, total = append(laps, d), total+d
	}
	r := newResult(s, "lockstep", map[string]any{"how": s.how, "session": s.session.Seconds()}, n, total, laps)
	r.OpsPerS = nil
	return r.print()
}

func takeoverOnce(s settings) (time.Duration, error) {
	path := fmt.Sprintf("%s/w5-%d", root, rand.Int64())
	a, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer a.end()
	if _, err := a.await("LEADER"); err != nil {
		return 0, err
	}
	b, err := startProcess(s, path)
	if err != nil {
		return 0, err
	}
	defer b.end()
	if _, err := b.await("UP"); err != nil {
		return 0, err
	}
	time.Sleep(time.Second + rand.N(time.Second))
	gone := time.Now()
	if s.how == "kill" {
		a.end()
	} else if gone, err = a.resign(); err != nil {
		return 0, err
	}
	led, err := b.await("LEADER")
	if err != nil {
		return 0, err
	}
	_, err = b.resign()
	return led.Sub(gone), err
}

// candidate is one process of W5: it campaigns, and resigns when its standard input ends.
func candidate(s settings) error {
	ctx := context.Background()
	c, err := open(s)
	if err != nil {
		return err
	}
	defer closeAll(c)
	say("UP")
	term, err := election.New(c, s.member).Campaign(ctx)
	if err != nil {
		return err
	}
	say("LEADER")
	bufio.NewScanner(os.Stdin).Scan()
	say("RESIGN")
	return term.Resign(ctx)
}
