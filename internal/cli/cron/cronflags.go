package cron

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/scheduler"
)

// policyFlags are the flags of a job's policies.
type policyFlags struct {
	misfire, overlap                          string
	deadline, timeout, pause, jitter, minHold cli.DurationFlag
	attempts                                  int
	revision                                  int64
	atLeastOnce                               bool
}

func (p *policyFlags) addPolicyFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.misfire, "misfire", "latest",
		"which ticks to run of those that could not run in time: latest, all or skip")
	f.Var(&p.deadline, "deadline",
		"how late a tick may start (default the time to the next tick, at least 5s and at most 1h)")
	f.StringVar(&p.overlap, "overlap", "forbid",
		"what to do with a tick while the command runs: forbid it, allow it, or replace the command")
	f.Var(&p.timeout, "timeout", "end the command after this time (default never)")
	f.IntVar(&p.attempts, "attempts", 1, "how many times to run a command until it succeeds")
	f.Var(&p.pause, "first-pause",
		"pause before the second attempt; it doubles with each further one, up to a minute (default 1s)")
	f.Var(&p.jitter, "jitter", "start each tick later, by less than this time; all processes use the same delay")
	f.Var(&p.minHold, "min-hold", "least time between two starts of the command")
	f.BoolVar(&p.atLeastOnce, "at-least-once", false, "run a tick again if its process has died")
	cli.OfferValues(cmd, "misfire", "latest", "all", "skip")
	cli.OfferValues(cmd, "overlap", "forbid", "allow", "replace")
	f.Int64Var(&p.revision, "revision", 0,
		"revision of the schedule; it does not replace a schedule of a higher revision")
}

// newJob returns the job without its function.
func (p *policyFlags) newJob(name string, schedule scheduler.Schedule) scheduler.Job {
	j := scheduler.Job{
		Name: name, Spec: schedule.String(), Zone: schedule.Zone(), Revision: p.revision,
		Misfire: scheduler.Misfire(p.misfire), Overlap: scheduler.Overlap(p.overlap),
		Deadline: time.Duration(p.deadline),
		Timeout:  time.Duration(p.timeout), Attempts: p.attempts, FirstPause: time.Duration(p.pause),
		Jitter: time.Duration(p.jitter), MinHold: time.Duration(p.minHold),
	}
	if p.atLeastOnce {
		j.Guarantee = scheduler.AtLeastOnce
	}
	return j
}
