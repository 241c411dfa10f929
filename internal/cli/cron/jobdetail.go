package cron

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/scheduler"
)

// PrintDetail prints all that is known of one job.
func PrintDetail(w io.Writer, asJSON bool, r scheduler.Report, runs []scheduler.RunRecord) error {
	if asJSON {
		return cli.PrintResult(w, true, sharedreport.NewJob(r, runs))
	}
	style := cli.StyleFor(w)
	var b strings.Builder
	b.WriteString(style.Bold(cli.InOneLine(nameOf(r))) + "\n")
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s\n", style.Red(cli.InOneLine(f.Text)))
	}
	cli.WriteFacts(&b, style, jobFacts(r))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	for _, t := range []*cli.Table{tickTable(sharedreport.NextTicks(r), r.At), gapTable(r.Gaps), runTable(runs)} {
		if len(t.Rows) == 1 {
			continue
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.PrintTo(w); err != nil {
			return err
		}
	}
	return nil
}

// jobFacts are what is known of a job, as labels and texts.
func jobFacts(r scheduler.Report) [][2]string {
	schedule := r.Spec + ", in " + r.Zone
	if parsed, err := r.Schedule(); err == nil {
		schedule = fmt.Sprintf("%s: %s, in %s", r.Spec, parsed.Words(), r.Zone)
	}
	owner := "none"
	if r.Owner != nil {
		owner = cli.ShortenText(r.Owner.ID)
	}
	var members []string
	for _, m := range r.Members {
		text := cli.ShortenText(m.ID)
		if m.Leads {
			text += " (leads)"
		}
		members = append(members, text)
	}
	paused := ""
	if !r.Paused.IsZero() {
		paused = "since " + cli.FormatTime(r.Paused)
	}
	facts := [][2]string{
		{"schedule", schedule}, {"revision", cli.FormatCount(r.Revision)}, {"runs", r.Description},
		{"state", StateCell(r).Text}, {"paused", paused},
		{"owner", owner}, {"members", strings.Join(members, ", ")}, {"registered", cli.FormatTime(r.Registered)},
	}
	counts := fmt.Sprintf("%d run, %d runs failed", r.Fired, r.Failures)
	if r.Triggered > 0 {
		counts += fmt.Sprintf(", %d triggered by hand", r.Triggered)
	}
	for _, reason := range slices.Sorted(missedReasons(r)) {
		counts += fmt.Sprintf(", %d missed (%s)", r.Missed[reason], reason)
	}
	if r.Overdue.Count > 0 {
		counts += fmt.Sprintf(", %d overdue", r.Overdue.Count)
	}
	return append(facts, [2]string{"ticks", counts})
}

func missedReasons(r scheduler.Report) func(yield func(scheduler.Reason) bool) {
	return func(yield func(scheduler.Reason) bool) {
		for reason, n := range r.Missed {
			if n > 0 && !yield(reason) {
				return
			}
		}
	}
}

// tickTable shows ticks in the job's zone, and in the viewer's if that is another.
func tickTable(ticks []time.Time, now time.Time) *cli.Table {
	t := cli.NewTable("NEXT TICKS", "HERE", "IN")
	for _, tick := range ticks {
		const layout = "2006-01-02 15:04:05 MST"
		here := tick.Local().Format(layout)
		if here == tick.Format(layout) {
			here = ""
		}
		t.AddRow(cli.PlainCell(tick.Format(layout)), cli.PlainCell(here),
			cli.DimCell(strings.TrimPrefix(strings.TrimSuffix(cli.FormatAge(tick.Sub(now)), " ago"), "just ")))
	}
	return t
}

// gapTable shows the latest ticks that did not run, the newest first.
func gapTable(gaps []scheduler.Gap) *cli.Table {
	t := cli.NewTable("DID NOT RUN FROM", "TO", "TICKS", "REASON")
	for _, g := range slices.Backward(gaps) {
		t.AddRow(cli.PlainCell(cli.FormatTime(g.From)), cli.PlainCell(cli.FormatTime(g.To)),
			cli.YellowCell(strconv.FormatInt(g.Count, 10)),
			cli.YellowCell(cli.ShortenText(string(g.Reason))))
	}
	return t
}
