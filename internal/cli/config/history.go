package config

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/linediff"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

func newConfigHistory(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "history NAME [flags]",
		Short: "Show who changed a value, when and why",
		Long: `Show the last 20 values, the newest first. The writer has given its name and the note itself. A value
that another program wrote, such as zkCli, is "foreign".`,
		Example: "  lockstep config history limits",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					records, err := v.History(ctx)
					if err != nil {
						return err
					}
					return c.printRecords(records)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func (c *configCommand) printRecords(records []config.Record) error {
	if c.JSON {
		for _, r := range records {
			if err := cli.PrintResult(c.Out, true, sharedreport.NewRecord(c.path, r)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(records) == 0 {
		c.PrintNotice("%s has no value and no history", c.path)
	}
	t := cli.NewTable("VERSION", "WRITTEN", "BY", "NOTE", "VALUE")
	for _, r := range records {
		by, value := cli.PlainCell(r.By), cli.PlainCell(cli.CutText(cli.InOneLine(string(r.Data))))
		if r.Foreign {
			by = cli.YellowCell("foreign")
		}
		if r.Err != nil {
			value = cli.RedCell(r.Err.Error())
		}
		t.AddRow(cli.BoldCell(strconv.FormatInt(r.Version, 10)), cli.PlainCell(cli.FormatTime(r.Written)), by,
			cli.PlainCell(r.Note),
			value)
	}
	return t.PrintTo(c.Out)
}

func newConfigDiff(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "diff NAME [VERSION [VERSION]] [flags]",
		Short: "Show the lines in which two values differ",
		Long: `Show the lines in which two values differ: the lines of the older value after "-", those of the newer
one after "+". Lines that both have at the beginning or at the end are left out. Without a
VERSION lockstep compares the present value with the one before it, with one VERSION the present
value with that one. The exit code is 1 if they differ.`,
		Example: `  lockstep config diff limits
  lockstep config diff limits 4294967312 4294967320`,
		Args: cobra.RangeArgs(1, 3),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			versions, err := versionsOf(args[1:])
			if err != nil {
				return err
			}
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					records, err := v.History(ctx)
					if err != nil {
						return err
					}
					return c.printDiff(records, versions)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func versionsOf(args []string) (versions []int64, err error) {
	for _, arg := range args {
		v, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || v < 0 {
			return nil,
				cli.UsageError("the VERSION %q is not a number; see which there are: lockstep config history NAME",
					arg)
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// diffJSON is what is printed of a difference.
type diffJSON struct {
	Path    string   `json:"path"`
	Older   int64    `json:"older"`
	Newer   int64    `json:"newer"`
	Removed []string `json:"removed,omitempty"`
	Added   []string `json:"added,omitempty"`
	// The same lines in base64, if one of them is not UTF-8: JSON shows different bytes as equal.
	RemovedExact [][]byte `json:"removed_base64,omitempty"`
	AddedExact   [][]byte `json:"added_base64,omitempty"`
}

func diffView(path string, older, newer int64, removed, added []string) diffJSON {
	v := diffJSON{Path: path, Older: older, Newer: newer, Removed: removed, Added: added}
	isInvalid := func(line string) bool { return reportjson.ExactBytes(line) != nil }
	if slices.ContainsFunc(removed, isInvalid) || slices.ContainsFunc(added, isInvalid) {
		for _, line := range removed {
			v.RemovedExact = append(v.RemovedExact, []byte(line))
		}
		for _, line := range added {
			v.AddedExact = append(v.AddedExact, []byte(line))
		}
	}
	return v
}

func (c *configCommand) printDiff(records []config.Record, versions []int64) error {
	if len(versions) == 0 && len(records) > 1 {
		versions = []int64{records[1].Version}
	}
	if len(versions) == 1 && len(records) > 0 {
		versions = append(versions, records[0].Version)
	}
	if len(versions) != 2 {
		return fmt.Errorf("%s: %w to compare", c.path, config.ErrNoValue)
	}
	slices.Sort(versions)
	var lines [2][]string
	for i, version := range versions {
		at := slices.IndexFunc(records, func(r config.Record) bool { return r.Version == version })
		if at < 0 {
			return fmt.Errorf("%s: %w of version %d", c.path, config.ErrNoValue, version)
		}
		if records[at].Err != nil {
			return fmt.Errorf("%s, version %d: %w", c.path, version, records[at].Err)
		}
		lines[i] = strings.Split(string(records[at].Data), "\n")
	}
	head, tail := linediff.Common(lines[0], lines[1])
	removed, added := lines[0][head:len(lines[0])-tail], lines[1][head:len(lines[1])-tail]
	if c.JSON {
		if err := cli.PrintResult(c.Out, true, diffView(c.path, versions[0], versions[1], removed, added)); err != nil {
			return err
		}
	} else if err := printLines(c.Out, removed, added); err != nil {
		return err
	}
	if len(removed)+len(added) > 0 {
		return cli.ExitSilently(cli.ExitFound)
	}
	return nil
}

func printLines(out *os.File, removed, added []string) error {
	style := terminal.For(out)
	for _, line := range removed {
		if _, err := fmt.Fprintln(out, style.Red("-"+cli.EscapeUnprintable(line))); err != nil {
			return err
		}
	}
	for _, line := range added {
		if _, err := fmt.Fprintln(out, style.Green("+"+cli.EscapeUnprintable(line))); err != nil {
			return err
		}
	}
	return nil
}

func newConfigRollback(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:     "rollback NAME VERSION [flags]",
		Short:   "Write an earlier value again",
		Long:    "Write an earlier value of the history again, as a new version.",
		Example: "  lockstep config rollback limits 4294967312",
		Args:    cobra.ExactArgs(2),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			versions, err := versionsOf(args[1:])
			if err != nil {
				return err
			}
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					return v.Rollback(ctx, versions[0], c.setOptions(cmd)...)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	c.addSetFlags(cmd)
	return cmd
}
