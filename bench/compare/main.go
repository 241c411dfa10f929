//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := flag.NewFlagSet("compare", flag.ExitOnError)
	only := f.String("only", "", "measure only rows whose work/servers/library matches this regular expression")
	turns := f.Int("turns", 5, "how often each measurement is made")
	asJSON := f.Bool("json", false, "print JSON instead of a table")
	write := f.String("write", "", "also write compare.json, charts and the tables of the documentation to this directory")
	holders := f.Bool("holders", false, "instead measure for how long two clients believe to hold, under faults")
	frozenFor := f.Duration("frozen", time.Minute, "-holders: for how long a holder stands still")
	list := f.Bool("list", false, "print the names of the rows")
	var m measurement
	f.StringVar(&m.work, "measure", "", "make one measurement, for which servers run (used by the program itself)")
	f.StringVar(&m.peer, "peer", "", "-measure: the library")
	f.StringVar(&m.servers, "servers", "", "-measure: host:port, separated by commas")
	f.DurationVar(&m.session, "session", 10*time.Second, "-measure: session timeout, time to live or expiry")
	f.StringVar(&m.name, "name", "compare", "-measure lock and election: what the members share")
	f.StringVar(&m.pids, "pids", "", "-measure idle: the servers' processes")
	f.DurationVar(&m.warmup, "warmup", time.Second, "time before the measured time")
	f.DurationVar(&m.span, "t", 2*time.Second, "measured time of work that is repeated")
	if err := f.Parse(args); err != nil {
		return err
	}
	if m.work != "" {
		return m.run(ctx)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *turns < 1 || *frozenFor <= 0 || m.span <= 0 || m.warmup < 0 {
		return fmt.Errorf("-turns %d, -frozen %v, -t %v, -warmup %v: the last may be 0, all others are above", *turns,
			*frozenFor, m.span, m.warmup)
	}
	if *holders {
		if !slices.ContainsFunc(trials(), func(t trial) bool { return pattern.MatchString(t.String()) }) {
			return fmt.Errorf("-only %q: no trial matches", *only)
		}
		r, err := compareHolders(ctx, pattern.MatchString, *turns, *frozenFor)
		if err != nil {
			return err
		}
		r.Command = fmt.Sprintf("make compare-holders TURNS=%d FROZEN=%v", *turns, *frozenFor)
		if *write != "" {
			err = r.write(*write)
		}
		return errors.Join(err, r.print(os.Stdout))
	}
	selected := selectJobs(pattern)
	if len(selected) == 0 {
		return fmt.Errorf("-only %q: no row matches; -list prints their names", *only)
	}
	if *list {
		for _, j := range selected {
			fmt.Println(j)
		}
		return nil
	}
	r, err := compare(ctx, selected, *turns, m.warmup, m.span)
	if err != nil {
		return err
	}
	r.Command = fmt.Sprintf("make compare TURNS=%d", *turns)
	if *only != "" {
		r.Command += fmt.Sprintf(" ONLY='%s'", *only)
	}
	if *write != "" {
		err = r.write(*write)
	}
	if *asJSON {
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(r))
	}
	return errors.Join(err, r.printTable(os.Stdout))
}
