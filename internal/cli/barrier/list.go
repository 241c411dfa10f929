package barrier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

// barriersView is a command that shows barriers of one kind.
type barriersView struct {
	cli.ConnectionFlags
	directory string // below /lockstep
	kind      barrier.Kind
	plural    string
	list      string // the command that shows all
	overview  func() *cli.Table
	row       func(r barrier.Report) []cli.Cell
	detail    func(r barrier.Report) *cli.Table
}

func newBarriers(streams *cli.Streams) *cobra.Command {
	v := &barriersView{directory: "barriers", kind: barrier.KindDoubleBarrier, plural: "barriers",
		list: "lockstep barriers", row: barrierRow, detail: memberTable,
		overview: func() *cli.Table {
			return cli.NewTable("BARRIER", "MEMBERS", "ROUNDS", "INSIDE", "LEFT",
				"WAITING", "MISSING")
		}}
	return v.newCommand(streams, &cobra.Command{
		Use:   "barriers [NAME] [flags]",
		Short: "Show barriers: who is inside, who waits, how many are missing",
		Long: `Show the double barriers below /lockstep/barriers, or with a NAME one barrier with its members. A
NAME that is no barrier is a directory; the exit code is 1 if there is no barrier at or below it.
Members do not register beforehand, so lockstep shows how many are missing and not which. Barriers
in Curator's layout are not shown. Nothing is written.`,
		Example: "  lockstep barriers\n  lockstep barriers phase\n  lockstep barriers /apps --json",
	})
}

func newGates(streams *cli.Streams) *cobra.Command {
	v := &barriersView{directory: "gates", kind: barrier.KindGate, plural: "gates that are up",
		list: "lockstep gates", row: gateRow,
		overview: func() *cli.Table { return cli.NewTable("GATE", "RAISED BY", "HOST", "SINCE", "UNTIL") }}
	v.detail = func(r barrier.Report) *cli.Table {
		t := v.overview()
		t.AddRow(gateRow(r)...)
		return t
	}
	return v.newCommand(streams, &cobra.Command{
		Use:   "gates [NAME] [flags]",
		Short: "Show which gates are up, and who has raised them",
		Long: `Show the gates that are up below /lockstep/gates: who has raised each, and whether it stays up until
it is lowered or until the session of a command ends. A NAME is one gate, or a directory. A gate
that is down leaves no trace, and neither do processes that wait at a gate. Nothing is written.`,
		Example: "  lockstep gates\n  lockstep gates maintenance\n  lockstep gates /apps --json",
	})
}

func newLatchList(streams *cli.Streams) *cobra.Command {
	v := &barriersView{directory: "latches", kind: barrier.KindLatch, plural: "latches", list: "lockstep latch ls",
		row: latchRow, detail: countTable,
		overview: func() *cli.Table { return cli.NewTable("LATCH", "COUNTS", "MISSING", "STATE") }}
	return v.newCommand(streams, &cobra.Command{
		Use:   "ls [NAME] [flags]",
		Short: "Show latches, and who has counted",
		Long: `Show the latches below /lockstep/latches, or with a NAME one latch with the ids that have counted. A
NAME that is no latch is a directory; the exit code is 1 if there is no latch at or below it.
Callers do not register beforehand, so lockstep does not know which are missing. Nothing is written.`,
		Example: "  lockstep latch ls\n  lockstep latch ls started\n  lockstep latch ls /apps --json",
	})
}

func (v *barriersView) newCommand(streams *cli.Streams, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		root, err := cli.RootOf(v.directory, args)
		if err != nil {
			return err
		}
		return v.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
			return v.show(ctx, client, root, len(args) > 0)
		})
	})
	v.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

// show prints the barriers at and below a path. It prints one in detail if the user has named it.
func (v *barriersView) show(ctx context.Context, client *framework.Client, root string, named bool) error {
	overview := v.overview()
	shown := 0
	var unread error
	for r, err := range barrier.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge),
			errors.Is(err, framework.ErrForeign), errors.Is(err, framework.ErrNewer):
			v.PrintWarning("%v", err)
			unread = err
			continue
		case err != nil:
			return err
		case r.Kind != v.kind:
			continue
		}
		shown++
		switch {
		case v.JSON:
			if err := cli.PrintResult(v.Out, true, r); err != nil {
				return err
			}
		case named && r.Path == root:
			return v.detail(r).PrintTo(v.Out)
		default:
			overview.AddRow(v.row(r)...)
		}
	}
	if err := overview.PrintTo(v.Out); err != nil {
		return err
	}
	if shown == 0 && named && root != "/" && unread == nil && v.kind != barrier.KindGate {
		// a gate that is down leaves no trace
		return cli.NothingFoundError(ctx, v.Streams, client, v.plural, root, v.list)
	}
	if shown == 0 && !v.JSON && unread == nil {
		cli.PrintNone(ctx, v.Streams, v.plural, root, v.list, v.find(client))
	}
	return cli.ExitCodeOfPrinted(v.Streams, unread)
}

// find is a search for all barriers of the kind.
func (v *barriersView) find(client *framework.Client) func(context.Context) iter.Seq2[string, error] {
	return func(ctx context.Context) iter.Seq2[string, error] {
		return cli.PathsOf(barrier.List(ctx, client, "/"),
			func(r barrier.Report) (string, bool) { return r.Path, r.Kind == v.kind })
	}
}

func nameBelow(dir, path string) cli.Cell {
	return cli.BoldCell(cli.QuoteName(strings.TrimPrefix(path, dir+"/")))
}

func barrierRow(r barrier.Report) []cli.Cell {
	return []cli.Cell{nameBelow(cli.BarriersDir, r.Path), cli.PlainCell(strconv.Itoa(r.Needed)),
		cli.PlainCell(strconv.FormatInt(r.Rounds, 10)), cli.GreenCell(cli.FormatCount(len(r.Inside))),
		cli.PlainCell(cli.FormatCount(r.Left)), cli.YellowCell(cli.FormatCount(len(r.Waiting))),
		cli.PlainCell(cli.FormatCount(r.Missing))}
}

func memberTable(r barrier.Report) *cli.Table {
	t := cli.NewTable("", "MEMBER", "HOST", "PID", "SINCE", "SESSION")
	t.Title = fmt.Sprintf("%s: %d enter together; round %d, ", cli.QuoteName(r.Path), r.Needed, r.Rounds)
	if len(r.Inside) > 0 || r.Left > 0 {
		t.Title += fmt.Sprintf("%d inside, %d left or died; %d wait", len(r.Inside), r.Left, len(r.Waiting))
	} else {
		t.Title += fmt.Sprintf("nobody inside; %d wait, %d missing", len(r.Waiting), r.Missing)
	}
	for _, m := range r.Inside {
		t.AddRow(memberCells(cli.GreenCell("inside"), m)...)
	}
	for _, m := range r.Waiting {
		t.AddRow(memberCells(cli.YellowCell("waits"), m)...)
	}
	return t
}

func memberCells(role cli.Cell, m barrier.Member) []cli.Cell {
	return []cli.Cell{role, cli.PlainCell(cli.ShortenText(m.Owner)), cli.PlainCell(cli.ShortenText(m.Host)),
		cli.PlainCell(cli.FormatCount(m.PID)),
		cli.PlainCell(cli.FormatSince(m.Since, time.Now())),
		cli.DimCell(m.Session.String())}
}

func gateRow(r barrier.Report) []cli.Cell {
	until := cli.PlainCell("it is lowered")
	if r.RaisedBy.Session != 0 {
		until = cli.PlainCell("session " + r.RaisedBy.Session.String() + " ends")
	}
	return []cli.Cell{nameBelow(cli.GatesDir, r.Path), cli.PlainCell(cli.ShortenText(r.RaisedBy.Owner)),
		cli.PlainCell(cli.ShortenText(r.RaisedBy.Host)), cli.PlainCell(cli.FormatSince(r.RaisedBy.Since, time.Now())),
		until}
}

func latchRow(r barrier.Report) []cli.Cell {
	return []cli.Cell{nameBelow(cli.LatchesDir, r.Path), cli.PlainCell(fmt.Sprintf("%d of %d", len(r.Counted),
		r.Needed)),
		cli.PlainCell(cli.FormatCount(r.Missing)), latchState(r)}
}

func latchState(r barrier.Report) cli.Cell {
	if r.Open {
		return cli.GreenCell("open")
	}
	return cli.YellowCell("counting")
}

func countTable(r barrier.Report) *cli.Table {
	t := cli.NewTable("COUNTED")
	t.Title = fmt.Sprintf("%s: %s, %d of %d, %d missing", cli.QuoteName(r.Path), latchState(r).Text, len(r.Counted),
		r.Needed, r.Missing)
	for _, id := range r.Counted {
		t.AddRow(cli.PlainCell(cli.ShortenText(id)))
	}
	return t
}
