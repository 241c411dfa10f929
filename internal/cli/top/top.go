// Package top has the subcommand that shows locks, elections, jobs, queues and workflows as they
// change.
package top

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

// topCommand is the subcommand that shows lists as they change.
type topCommand struct {
	cli.ConnectionFlags
	once     bool
	view     string
	sort     string
	filter   string
	limit    int
	interval cli.DurationFlag
}

const defaultTopInterval = 2 * time.Second

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	c := &topCommand{interval: cli.DurationFlag(defaultTopInterval)}
	cmd := &cobra.Command{
		Use:   "top [ROOT] [flags]",
		Short: "Show locks, elections, jobs, queues and workflows as they change",
		Long: `Show locks, elections, jobs, queues and workflows as they change, the most urgent first: locks with the
most waiters, or the oldest holders; jobs that have problems; queues with the most items; runs of
workflows that have failed, or that no member has.
Keys choose another list (tab), the order (s) and a filter (/), and open a row (enter): who holds and
waits, candidates, a job's runs. ? lists all keys. q ends top.

top reads the list that is shown again after --interval, and sends no more than 50 requests a second:
with 10,000 locks this takes some seconds. Nothing is written. While no server can be reached, a line
says so; top goes on when one can be reached again.

With --once, or if standard input or output is no terminal, top prints one list without keys; with
--json one object with the list's rows. Without ROOT the lists are of what is below /lockstep/locks,
elections, jobs, queues and workflows.`,
		Example: `  lockstep top
  lockstep top /apps --view queues
  lockstep top --once --sort age --limit 10
  lockstep top --json --view jobs --filter billing`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return cli.EndBySignal(cmd.Context(), c.show(cmd, args))
	})
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	f := cmd.Flags()
	f.BoolVar(&c.once, "once", false, "print one list and end")
	f.StringVar(&c.view, "view", "locks", "begin with locks, elections, jobs, queues or workflows")
	f.StringVar(&c.sort, "sort", "",
		"begin in this order: waiting, age or path; for jobs problems, next or path; for queues items, dead or "+
			"path; for workflows problems, age or path")
	names := make([]string, len(topViews))
	for i, v := range topViews {
		names[i] = v.name
	}
	cli.OfferValues(cmd, "view", names...)
	cli.OfferValuesBy(cmd, "sort", func(*cobra.Command, []string, string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		view := findTopView(c.view)
		if view == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return view.sorts, cobra.ShellCompDirectiveNoFileComp
	})
	f.StringVar(&c.filter, "filter", "", "show only rows that contain this text in names, owners, hosts or states")
	f.IntVar(&c.limit, "limit", 0, "show this many rows at most, in one list or --json")
	f.Var(&c.interval, "interval", "pause between two scans")
	return cmd
}

// newModel returns the model that flags and arguments ask for, or a usage error.
func (c *topCommand) newModel(cmd *cobra.Command, args []string) (*topModel, error) {
	view := findTopView(c.view)
	if view == nil {
		return nil, cli.UsageError("--view %q: want locks, elections, jobs, queues or workflows", c.view)
	}
	root, err := cli.RootArgument(args, "ROOT", "")
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("limit") && c.limit < 1 {
		return nil, cli.UsageError("--limit %d: it must be 1 or more", c.limit)
	}
	m := newTopModel(view, root, "")
	m.filter = c.filter
	if c.sort != "" {
		if m.sort = slices.Index(view.sorts, c.sort); m.sort < 0 {
			return nil, cli.UsageError("--sort %q: want %s", c.sort, strings.Join(view.sorts, ", "))
		}
	}
	return m, nil
}

func (c *topCommand) show(cmd *cobra.Command, args []string) error {
	model, err := c.newModel(cmd, args)
	if err != nil {
		return err
	}
	live := !c.once && !c.JSON && terminal.IsInteractive(c.In, c.Out)
	var options []framework.Option
	if live { // a line of the log would disturb the screen
		options = append(options, framework.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	}
	client, err := c.ConnectClient(cmd, options...)
	if err != nil {
		return err
	}
	defer cli.CloseClient(c.Streams, client)
	reader := &topReader{client: client, pace: requestPace{client: client}, style: terminal.For(c.Out)}
	if !live {
		return c.printOnce(cmd.Context(), model, reader)
	}
	model.style, model.title = terminal.For(c.Out), strings.Join(client.Config().Servers, ",")
	return cli.EndQuietlyOnSignal(cmd.Context(), showTopLive(cmd.Context(), c.Streams, model, reader,
		c.interval.AsDuration()))
}

// printOnce prints one list. What cannot be read is warned about, and decides the exit code.
func (c *topCommand) printOnce(ctx context.Context, model *topModel, reader *topReader) error {
	found, err := reader.scanList(ctx, model.view, model.scannedDir(), nil)
	if err != nil {
		return err
	}
	model.addScan(found)
	if c.JSON {
		err = cli.PrintResult(c.Out, true, model.frameJSON(c.limit))
	} else {
		err = model.plainTable(c.limit).PrintTo(c.Out)
		if len(model.shown) == 0 && len(found.wrong) == 0 {
			c.PrintNotice("no %s below %s", model.view.name, model.scannedDir())
		}
	}
	if err != nil {
		return err
	}
	for _, text := range found.wrong {
		c.PrintWarning("%s", text)
	}
	if left := len(model.shown) - rowsWithin(c.limit, len(model.shown)); left > 0 {
		c.PrintNotice("%d are left out by --limit %d", left, c.limit)
	}
	switch {
	case errors.Is(found.unread, framework.ErrNoAuth), errors.Is(found.unread, framework.ErrSessionLost):
		return cli.ExitCodeOfPrinted(c.Streams, found.unread)
	case found.unread != nil:
		return cli.ExitSilently(cli.ExitMismatch)
	}
	return nil
}
