package check

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/monitor"
)

// thresholdFlags are the flags of check and monitor that say what is a finding.
type thresholdFlags struct {
	waiters      int
	silentHolder cli.DurationFlag
	jobFailures  int
	oldItem      cli.DurationFlag
	failingItem  int
	heldItem     cli.DurationFlag
	deadLetters  int
	failedRuns   int
	untakenRun   cli.DurationFlag
	sessionBytes int
	without      []string
}

func (t *thresholdFlags) addTo(cmd *cobra.Command) {
	t.oldItem, t.heldItem = cli.DurationFlag(time.Hour), cli.DurationFlag(monitor.DefaultHeldItem)
	t.untakenRun, t.silentHolder = cli.DurationFlag(5*time.Minute), cli.DurationFlag(time.Minute)
	f := cmd.Flags()
	f.IntVar(&t.waiters, "waiters", 10, "a lock with more waiters is a finding")
	f.Var(&t.silentHolder, "silent-holder",
		"a lock is a finding if its holder was asked to let go and has held for longer since")
	f.IntVar(&t.jobFailures, "job-failures", 1, "a job with so many failed runs in a row is a finding")
	f.Var(&t.oldItem, "old-item", "a queue whose first item is older is a finding")
	f.IntVar(&t.failingItem, "failing-item", monitor.DefaultFailingItem,
		"a queue is a finding if an item has come back after so many attempts")
	f.Var(&t.heldItem, "held-item", "a queue is a finding if a consumer has had an item for longer")
	f.IntVar(&t.deadLetters, "dead-letters", 0, "a queue with more dead letters is a finding")
	f.IntVar(&t.failedRuns, "failed-runs", 0, "workflows with more failed runs are a finding")
	f.Var(&t.untakenRun, "untaken-run", "workflows are a finding if a run could go on, and no member has taken it for longer")
	f.IntVar(&t.sessionBytes, "session-bytes", monitor.DefaultSessionBytes,
		"a session is a finding if the paths of its nodes have more bytes together")
	f.StringArrayVar(&t.without, "without", nil, "do not report this problem (repeatable)")
	cli.OfferValues(cmd, "without", moduleonly.MonitorProblems...)
}

func (t *thresholdFlags) options() ([]monitor.Option, error) {
	var without []monitor.Problem
	for _, name := range t.without {
		if !slices.Contains(moduleonly.MonitorProblems, name) {
			return nil, cli.UsageError("--without %q: there is no such problem; see lockstep monitor -h", name)
		}
		without = append(without, monitor.Problem(name))
	}
	return []monitor.Option{
		monitor.WithWaiters(t.waiters), monitor.WithSilentHolder(time.Duration(t.silentHolder)),
		monitor.WithJobFailures(t.jobFailures),
		monitor.WithOldItem(time.Duration(t.oldItem)),
		monitor.WithFailingItem(t.failingItem), monitor.WithHeldItem(time.Duration(t.heldItem)),
		monitor.WithDeadLetters(t.deadLetters),
		monitor.WithFailedRuns(t.failedRuns), monitor.WithUntakenRun(time.Duration(t.untakenRun)),
		monitor.WithSessionBytes(t.sessionBytes), monitor.WithoutProblems(without...),
	}, nil
}
