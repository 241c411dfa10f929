package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	servers  []string
	members  int
	duration time.Duration
	timeout  time.Duration
	watchdog bool
	json     bool
	ui       bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.IntVar(&o.members, "members", 3, "number of member processes, 2 to 50")
	f.DurationVar(&o.duration, "duration", 20*time.Second, "how long the members run")
	session := demo.SessionFlags(f, "leader", "members", 30*time.Second)
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	f.BoolVar(&o.ui, "ui", false, "open the web page of the cluster, in which more goes wrong, until Ctrl-C")
	var err error
	if o.servers, err = demo.ParseFlags(f, "Shows how the members of a cluster take over from a leader that is killed.",
		args); err != nil {
		return o, err
	}
	o.timeout, o.watchdog = session()
	if o.ui && o.json {
		return o, fmt.Errorf("%w: -ui and -json: with the page there is no summary", demo.ErrUsage)
	}
	if o.members < 2 || o.members > 50 {
		return o, fmt.Errorf("%w: -members %d: want 2 to 50, one of them is killed", demo.ErrUsage, o.members)
	}
	return o, o.checkDuration(o.timeout)
}

// checkDuration checks that two thirds of the duration are enough for a takeover and two ticks.
// Without a watchdog a takeover takes up to two session timeouts.
func (o options) checkDuration(timeout time.Duration) error {
	if o.watchdog {
		timeout = time.Second
	}
	if least := (2*timeout + time.Second) * 3 / 2; o.duration < least {
		return fmt.Errorf("%w: -duration %v is too short to notice a death within %v: want %v or more", demo.ErrUsage,
			o.duration, 2*timeout, least)
	}
	return nil
}
