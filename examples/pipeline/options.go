package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	job
	servers  []string
	kills    int           // in each round
	spared   int           // the workers that are not killed, from the first
	lasts    time.Duration // rounds begin until it is over; 0: one round
	events   string        // a file, or ""
	timeout  time.Duration
	watchdog bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.IntVar(&o.Workers, "workers", 4, "number of worker processes, 2 to 50")
	f.IntVar(&o.Items, "items", 120, "items of each phase, 8 to 1000")
	f.DurationVar(&o.Effort, "effort", 25*time.Millisecond, "how long one item takes, 1ms to 1m")
	f.IntVar(&o.kills, "kills", 6, "how many workers to kill in each round, at most a quarter of the items")
	f.IntVar(&o.spared, "spare", 0, "how many workers are not killed, less than -workers")
	f.DurationVar(&o.lasts, "for", 0, "begin new rounds until this time is over (default one round)")
	f.IntVar(&o.Rounds, "rounds", 1, "run at least this many rounds")
	f.StringVar(&o.events, "events", "", "append the workers' events to this file, as lines of JSON")
	session := demo.SessionFlags(f, "worker", "workers", 30*time.Second)
	f.BoolVar(&o.json, "json", false, "print the report as JSON on standard output, and the log on standard error")
	var err error
	if o.servers, err = demo.ParseFlags(f, "Kills workers at random, and shows that the result is right nevertheless.",
		args); err != nil {
		return o, err
	}
	o.timeout, o.watchdog = session()
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.Workers < 2 || o.Workers > 50:
		return fmt.Errorf("%w: -workers %d: want 2 to 50", demo.ErrUsage, o.Workers)
	case o.Items < 8 || o.Items > 1000:
		return fmt.Errorf("%w: -items %d: want 8 to 1000", demo.ErrUsage, o.Items)
	case o.Effort < time.Millisecond || o.Effort > time.Minute:
		return fmt.Errorf("%w: -effort %v: want 1ms to 1m", demo.ErrUsage, o.Effort)
	case o.kills < 0 || o.kills > o.Items/4:
		return fmt.Errorf("%w: -kills %d: want 0 to %d, a quarter of the items", demo.ErrUsage, o.kills, o.Items/4)
	case o.spared < 0 || o.spared >= o.Workers:
		return fmt.Errorf("%w: -spare %d: want less than the %d workers", demo.ErrUsage, o.spared, o.Workers)
	case o.lasts < 0:
		return fmt.Errorf("%w: -for %v: want 0 or more", demo.ErrUsage, o.lasts)
	case o.Rounds < 1 || o.Rounds > 1000:
		return fmt.Errorf("%w: -rounds %d: want 1 to 1000", demo.ErrUsage, o.Rounds)
	}
	return nil
}

// patience bounds the whole run. It is far above the time that a run takes.
func (o options) patience() time.Duration {
	round := 2*time.Duration(o.total())*(o.Effort+50*time.Millisecond) + 3*time.Duration(o.kills+1)*o.timeout
	return o.lasts + time.Minute + time.Duration(o.Rounds)*round
}

// drawKills draws when workers are killed: each time as a number of results. It draws none from the
// last quarter of the results, because killed workers may not have reported all of theirs.
func drawKills(kills, items int) []int {
	picked := make([]int, kills)
	for n := range picked {
		picked[n] = 1 + rand.IntN(items*3/4)
	}
	slices.Sort(picked)
	return picked
}
