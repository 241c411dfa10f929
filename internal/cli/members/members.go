// Package members has the subcommands of groups.
package members

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/members"
)

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	c, watch := &cli.ConnectionFlags{}, false
	cmd := &cobra.Command{
		Use:   "members [NAME] [flags]",
		Short: "Show the members of a group, and take them out of service",
		Long: `Show the groups below /lockstep/groups, or with a NAME the members of one: what each member publishes
about itself and whether it is in service. With --watch lockstep prints a line for each member that
joins, leaves, comes back or changes, until a signal; with --json each line is an object. Nothing is
written. If the NAME is also that of a subcommand, give the path: /lockstep/groups/drain. The exit
code is 1 if the group has no member.`,
		Example: "  lockstep members\n  lockstep members web --watch\n  lockstep members drain web web-1 --reason " +
			"'new kernel'",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if watch {
				return cli.UsageError("--watch needs the NAME of a group")
			}
			return withGroup(cmd, c, "", printGroups(streams, c.JSON))
		}
		if watch {
			return cli.EndQuietlyOnSignal(cmd.Context(),
				withGroup(cmd, c, args[0], func(ctx context.Context, _ *framework.Client, g *members.Group) error {
					return watchMembers(ctx, streams, g, c.JSON)
				}))
		}
		return withGroup(cmd, c, args[0], func(ctx context.Context, _ *framework.Client, g *members.Group) error {
			return printMembers(ctx, streams, g, c.JSON)
		})
	})
	c.AddConnectionFlags(streams, cmd)
	cmd.Flags().BoolVar(&watch, "watch", false, "run until a signal, and print each change")
	cmd.AddCommand(newCordon(streams), newUncordon(streams), newDrain(streams))
	return cmd
}

// withGroup connects, and calls a function with the group of a NAME, or with the directory of
// groups if the NAME is empty.
func withGroup(cmd *cobra.Command, c *cli.ConnectionFlags, name string,
	do func(context.Context, *framework.Client, *members.Group) error) error {
	path := cli.GroupsDir
	if name != "" {
		var err error
		if path, err = cli.PathOf("groups", name); err != nil {
			return err
		}
	}
	return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
		return do(ctx, client, members.New(client, path))
	})
}

// memberChangeJSON is a change as JSON.
type memberChangeJSON struct {
	At time.Time `json:"at"` // by this machine's clock
	members.Change
}

func printGroups(streams *cli.Streams, asJSON bool) func(context.Context, *framework.Client, *members.Group) error {
	return func(ctx context.Context, client *framework.Client, dir *members.Group) error {
		names, _, err := client.Children(ctx, dir.Path())
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		if len(names) == 0 && !asJSON {
			streams.PrintNotice("no groups below %s", dir.Path())
		}
		return cli.PrintEach(streams, cli.SortNames(names), cli.NewTable("GROUP", "IN SERVICE", "CORDONED"), asJSON,
			func(name string) (any, []cli.Cell, error) {
				path := znode.Join(dir.Path(), name)
				view, err := members.New(client, path).Inspect(ctx)
				if err != nil {
					return nil, nil, err
				}
				active := 0
				for _, m := range view.Members {
					if m.State == members.Active {
						active++
					}
				}
				return sharedreport.NewGroup(path, view), []cli.Cell{cli.BoldCell(cli.QuoteName(name)),
					cli.PlainCell(strconv.Itoa(active)),
					cli.PlainCell(strconv.Itoa(len(view.Members) - active))}, nil
			})
	}
}

func printMembers(ctx context.Context, streams *cli.Streams, g *members.Group, asJSON bool) error {
	view, err := g.Inspect(ctx)
	if err != nil {
		return err
	}
	report := sharedreport.NewGroup(g.Path(), view)
	if asJSON {
		err = cli.PrintResult(streams.Out, true, report)
	} else {
		t := cli.NewTable("ID", "STATE", "VERSION", "LOAD", "SINCE", "METADATA", "REASON")
		for _, m := range view.Members {
			reason := ""
			if m.Cordon != nil {
				reason = cordonText(*m.Cordon)
			}
			t.AddRow(cli.BoldCell(cli.ShortenText(m.ID)), memberStateCell(m.State),
				cli.PlainCell(cli.ShortenText(m.Info.Version)),
				cli.PlainCell(strconv.FormatFloat(m.Info.Load, 'g', 4, 64)),
				cli.PlainCell(cli.FormatSince(m.Joined, time.Now())), cli.DimCell(cli.FormatMetadata(m.Info.Metadata)),
				cli.PlainCell(reason))
		}
		for _, c := range report.Absent {
			t.AddRow(cli.BoldCell(cli.ShortenText(c.ID)), cli.DimCell("absent"), cli.PlainCell(""), cli.PlainCell(""),
				cli.PlainCell(""),
				cli.PlainCell(""), cli.PlainCell(cordonText(c)))
		}
		err = t.PrintTo(streams.Out)
	}
	if err == nil && len(view.Members) == 0 {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("%s has no member", g.Path()), "")
	}
	return err
}

func memberStateCell(s members.State) cli.Cell {
	switch s {
	case members.Active:
		return cli.GreenCell(string(s))
	case members.Failed:
		return cli.RedCell("drain failed")
	}
	return cli.YellowCell(string(s))
}

// cordonText is who has cordoned a member, why, and why it was not drained.
func cordonText(c members.Cordon) string {
	text := cli.ShortenText(c.Reason)
	for _, answer := range c.Answers {
		if answer.Error != "" {
			text += " (" + cli.ShortenText(answer.Error) + ")"
		}
	}
	if c.By != "" {
		text += " by " + cli.ShortenText(c.By)
	}
	return strings.TrimSpace(text)
}

func watchMembers(ctx context.Context, streams *cli.Streams, g *members.Group, asJSON bool) error {
	for view, err := range g.Follow(ctx) {
		if err != nil {
			return err
		}
		for _, change := range view.Changes {
			if err := printMemberChange(streams, change, asJSON); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

func printMemberChange(streams *cli.Streams, c members.Change, asJSON bool) error {
	now := time.Now()
	if asJSON {
		return cli.PrintResult(streams.Out, true, memberChangeJSON{now, c})
	}
	style := terminal.For(streams.Out)
	paint := map[members.ChangeKind]func(string) string{members.Joined: style.Green, members.Rejoined: style.Green,
		members.Left: style.Red, members.Changed: style.Yellow}[c.Kind]
	line := fmt.Sprintf("%s %s %s", style.Dim(now.Format("15:04:05.000")), paint(fmt.Sprintf("%-8s", c.Kind)),
		cli.QuoteName(c.Member.ID))
	if c.Kind != members.Left {
		line += fmt.Sprintf(" %s load %s", c.Member.State, strconv.FormatFloat(c.Member.Info.Load, 'g', 4, 64))
		if c.Member.Info.Version != "" {
			line += " version " + cli.ShortenText(c.Member.Info.Version)
		}
		line += " " + style.Dim(cli.FormatMetadata(c.Member.Info.Metadata))
	}
	_, err := fmt.Fprintln(streams.Out, strings.TrimSpace(line))
	return err
}

// cordonFlags are the flags of "cordon" and "drain".
type cordonFlags struct {
	cli.ConnectionFlags
	reason string
	absent bool
}

func (f *cordonFlags) addCordonFlags(streams *cli.Streams, cmd *cobra.Command) {
	f.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "the reason, which others can see")
	cmd.Flags().BoolVar(&f.absent, "absent", false, "also if the group has no member with the ID")
}

func (f *cordonFlags) cordonOptions() []members.CordonOption {
	opts := []members.CordonOption{members.WithReason(f.reason)}
	if f.absent {
		opts = append(opts, members.WithAbsentMember())
	}
	return opts
}

func newCordon(streams *cli.Streams) *cobra.Command {
	f := &cordonFlags{}
	cmd := &cobra.Command{
		Use: "cordon NAME ID [flags]", Short: "Ask a member to take no new work", Args: cobra.ExactArgs(2),
		Long: `Ask a member of a group to take no new work. The cordon belongs to the ID: it lasts until uncordon,
also when the process is started again.`,
		Example: "  lockstep members cordon web web-1 --reason 'new disk'",
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return withGroup(cmd, &f.ConnectionFlags, args[0],
			func(ctx context.Context, _ *framework.Client, g *members.Group) error {
				return g.Cordon(ctx, args[1], f.cordonOptions()...)
			})
	})
	f.addCordonFlags(streams, cmd)
	return cmd
}

func newUncordon(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use: "uncordon NAME ID [flags]", Short: "Let a member take work again", Args: cobra.ExactArgs(2),
		Long:    "Let a member of a group take work again, and withdraw a drain.",
		Example: "  lockstep members uncordon web web-1",
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return withGroup(cmd, c, args[0], func(ctx context.Context, _ *framework.Client, g *members.Group) error {
			return g.Uncordon(ctx, args[1])
		})
	})
	c.AddConnectionFlags(streams, cmd)
	return cmd
}

func newDrain(streams *cli.Streams) *cobra.Command {
	f, wait := &cordonFlags{}, cli.DurationFlag(0)
	cmd := &cobra.Command{
		Use: "drain NAME ID [flags]", Short: "Ask a member to finish its work, and wait until it has",
		Args: cobra.ExactArgs(2),
		Long: `Ask a member of a group to take no new work and to finish what it has, and wait until it acknowledges
that. The exit code is 1 if the member cannot, if it leaves before, if another client withdraws the
drain, or if the time of -w is over. The request for the drain stays until uncordon.`,
		Example: "  lockstep members drain web web-1 -w 5m && reboot",
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return withGroup(cmd, &f.ConnectionFlags, args[0],
			func(ctx context.Context, _ *framework.Client, g *members.Group) error {
				waiting := ctx
				if wait > 0 {
					var cancel context.CancelFunc
					waiting, cancel = context.WithTimeout(ctx, wait.AsDuration())
					defer cancel()
				}
				err := g.Drain(waiting, args[1], f.cordonOptions()...)
				if err != nil && ctx.Err() == nil && waiting.Err() != nil {
					return cli.ExitWith(cli.ExitNotObtained,
						fmt.Errorf("%s has not acknowledged the drain in %v", cli.QuoteName(args[1]),
							wait.AsDuration()),
						"the request stays: run drain again to wait, or uncordon")
				}
				return err
			})
	})
	f.addCordonFlags(streams, cmd)
	cmd.Flags().VarP(&wait, "wait", "w", "wait no longer than this; a bare number is seconds")
	return cmd
}
