package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/scheduler"
)

// policyFlags are the flags that say how a job is run.
type policyFlags struct {
	misfire, overlap                            string
	deadline, timeout, backoff, jitter, minHold durationFlag
	retries                                     int
	revision                                    int64
	atLeastOnce                                 bool
}

func (p *policyFlags) addPolicyFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.misfire, "misfire", "latest", "of ticks that could not be run in time, run the latest, all, or skip them")
	f.Var(&p.deadline, "deadline", "how late a tick may be run (default: until the next tick, 5s to 1h)")
	f.StringVar(&p.overlap, "overlap", "forbid", "while the command runs, forbid the next, allow it, or replace the command by it")
	f.Var(&p.timeout, "timeout", "end the command after so long (default never)")
	f.IntVar(&p.retries, "retries", 0, "run a command that failed again, so many times")
	f.Var(&p.backoff, "backoff", "pause before the first retry; it doubles to a minute (default 1s)")
	f.Var(&p.jitter, "jitter", "start each tick later by less than so long, the same in all processes")
	f.Var(&p.minHold, "min-hold", "least time between two starts")
	f.BoolVar(&p.atLeastOnce, "at-least-once", false, "run a tick again whose process has died")
	f.Int64Var(&p.revision, "revision", 0, "replace no schedule of a higher one")
}

// newJob is the job without its function.
func (p *policyFlags) newJob(name string, schedule scheduler.Schedule) scheduler.Job {
	j := scheduler.Job{
		Name: name, Spec: schedule.String(), Location: schedule.Location(), Revision: p.revision,
		Misfire: scheduler.Misfire(p.misfire), Overlap: scheduler.Overlap(p.overlap), Deadline: time.Duration(p.deadline),
		Timeout: time.Duration(p.timeout), Retries: p.retries, Backoff: time.Duration(p.backoff),
		Jitter: time.Duration(p.jitter), MinHold: time.Duration(p.minHold),
	}
	if p.atLeastOnce {
		j.Guarantee = scheduler.AtLeastOnce
	}
	return j
}
