package config

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// pastSuffix ends the name of the directory with the history of a value.
const pastSuffix = "~past"

// maxListedValues is how many nodes "config ls" reads.
const maxListedValues = 10_000

func newConfigList(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use:   "ls [PATH] [flags]",
		Short: "Show the values below a directory",
		Long: `Show the values below /lockstep/config, or below a PATH: all nodes with data, and those with a
history. The keys of a tree, such as those of Spring Cloud, are values here.`,
		Example: "  lockstep config ls\n  lockstep config ls /config/billing --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			root, err := cli.RootOf("config", args)
			if err != nil {
				return err
			}
			return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
				return printValues(ctx, streams, client, root, c.JSON)
			})
		}),
	}
	c.AddConnectionFlags(streams, cmd)
	return cmd
}

// printValues prints the values below a directory in the order of their paths. It warns of what it
// may not read.
func printValues(ctx context.Context, streams *cli.Streams, client *framework.Client, root string, asJSON bool) error {
	found, unread, err := valuesBelow(ctx, streams, client, root)
	if err != nil {
		return err
	}
	t := cli.NewTable("PATH", "VERSION", "WRITTEN", "BYTES")
	for _, v := range found {
		if asJSON {
			if err := cli.PrintResult(streams.Out, true, v); err != nil {
				return err
			}
			continue
		}
		t.AddRow(cli.BoldCell(cli.QuoteName(v.Path)), cli.PlainCell(strconv.FormatInt(v.Version, 10)),
			cli.PlainCell(cli.FormatTime(v.Written)), cli.PlainCell(strconv.Itoa(int(v.Bytes))))
	}
	if len(found) == 0 && unread == nil && !asJSON {
		streams.PrintNotice("no values below %s", root)
	}
	if err := t.PrintTo(streams.Out); err != nil {
		return err
	}
	return cli.ExitCodeOfPrinted(streams, unread)
}

// valuesBelow finds the values below a directory, level by level. unread is the error of a node
// that may not be read, or says that there are too many nodes.
func valuesBelow(ctx context.Context, streams *cli.Streams, client *framework.Client,
	root string) (found []sharedreport.Value, unread, err error) {
	looked := 0
	for level := []string{root}; len(level) > 0; {
		lists, err := recipe.ListMany(ctx, client, level)
		if err != nil {
			return nil, nil, err
		}
		var paths []string
		hasHistory := map[string]bool{}
		for i, list := range lists {
			if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
				unread = list.Err
				streams.PrintWarning("%s: %v", level[i], list.Err)
			}
			for _, name := range list.Names {
				path := znode.Join(level[i], name)
				if value, isPast := strings.CutSuffix(path, pastSuffix); isPast {
					hasHistory[value] = true
				} else {
					paths = append(paths, path)
				}
			}
		}
		if looked += len(paths); looked > maxListedValues {
			streams.PrintWarning("there are more than %d nodes below %s; list a deeper PATH", maxListedValues, root)
			return found, framework.ErrTooLarge, nil
		}
		nodes, err := recipe.GetMany(ctx, client, paths)
		if err != nil {
			return nil, nil, err
		}
		level = nil
		for i, n := range nodes {
			switch {
			case errors.Is(n.Err, framework.ErrNoNode):
				continue
			case n.Err != nil:
				unread = n.Err
				streams.PrintWarning("%s: %v", paths[i], n.Err)
				continue
			case n.Stat.DataLength > 0 || hasHistory[paths[i]]:
				found = append(found, sharedreport.NewValue(paths[i], n.Stat))
			}
			if n.Stat.NumChildren > 0 {
				level = append(level, paths[i])
			}
		}
	}
	slices.SortFunc(found, func(a, b sharedreport.Value) int { return strings.Compare(a.Path, b.Path) })
	return found, unread, nil
}
