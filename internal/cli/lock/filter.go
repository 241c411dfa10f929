package lock

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/recipenode"
	"github.com/lockstep-go/lockstep/locks"
)

// Filter says which locks are shown, and in what order.
type Filter struct {
	waiting bool
	older   cli.DurationFlag
	owner   string
	sort    string
	limit   int
	all     bool
}

func (f *Filter) addFilterFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.waiting, "waiting", false, "only locks that have waiters")
	flags.Var(&f.older, "older", "only locks that a holder has asked for at least this long ago")
	flags.StringVar(&f.owner, "owner", "", "only locks with a holder or waiter whose owner or host contains this text")
	flags.StringVar(&f.sort, "sort", "path", "sort by path, waiting (most waiters first) or age (oldest holder first)")
	cli.OfferValues(cmd, "sort", "path", "waiting", "age")
	flags.IntVar(&f.limit, "limit", 0, "show this many locks at most")
	flags.BoolVar(&f.all, "all", false, "show also nodes of queues, schedulers, barriers and services")
}

func (f *Filter) checkFilterFlags(cmd *cobra.Command) error {
	switch {
	case !slices.Contains([]string{"path", "waiting", "age"}, f.sort):
		return cli.UsageError("--sort %q: want path, waiting or age", f.sort)
	case cmd.Flags().Changed("limit") && f.limit < 1:
		return cli.UsageError("--limit %d: it must be 1 or more", f.limit)
	}
	return nil
}

// streams reports whether locks can be shown as they are found.
func (f *Filter) streams() bool { return f.sort == "path" && f.limit == 0 }

// Admits reports whether a lock is to be shown.
func (f *Filter) Admits(r locks.Report, now time.Time) bool {
	switch {
	case !f.all && recipenode.Is(r):
		return false
	case f.waiting && len(r.Waiters) == 0:
		return false
	case f.older > 0 && now.Sub(HeldSince(r, now)) < f.older.AsDuration():
		return false
	case f.owner != "":
		has := func(e locks.Entry) bool {
			return strings.Contains(e.Owner, f.owner) || strings.Contains(e.Host, f.owner)
		}
		return slices.ContainsFunc(r.Holders, has) || slices.ContainsFunc(r.Waiters, has)
	}
	return true
}

// HeldSince is when the first of the present holders asked, or now if there is none.
func HeldSince(r locks.Report, now time.Time) time.Time {
	since := now
	for _, e := range r.Holders {
		if e.Since.Before(since) {
			since = e.Since
		}
	}
	return since
}

// arrange sorts the locks and returns those within the limit.
func (f *Filter) arrange(streams *cli.Streams, reports []locks.Report, now time.Time) []locks.Report {
	switch f.sort {
	case "waiting":
		slices.SortStableFunc(reports,
			func(a, b locks.Report) int { return cmp.Compare(len(b.Waiters), len(a.Waiters)) })
	case "age":
		slices.SortStableFunc(reports,
			func(a, b locks.Report) int { return HeldSince(a, now).Compare(HeldSince(b, now)) })
	}
	if f.limit > 0 && len(reports) > f.limit {
		streams.PrintNotice("%d locks are left out by --limit %d", len(reports)-f.limit, f.limit)
		reports = reports[:f.limit]
	}
	return reports
}
