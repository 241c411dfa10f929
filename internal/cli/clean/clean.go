// Package clean has the subcommand that deletes unused nodes.
package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/internal/unused"
)

// cleanCommand is the subcommand that deletes nodes that no client uses any more.
type cleanCommand struct {
	cli.ConnectionFlags
	olderThan cli.AgeFlag
	yes       bool
}

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	c := &cleanCommand{olderThan: cli.AgeFlag(time.Hour)}
	cmd := &cobra.Command{
		Use:   "clean [ROOT] [flags]",
		Short: "Show nodes that no client uses any more, and delete them",
		Long: `Show the nodes below a path (default /, which is --root) that no client uses any more, each with the
time since which it is unused and the reason. With -y lockstep deletes them, each at the version that
it has seen: it keeps and names a node that was used, changed or created again meanwhile.

  empty directory    of a lock or an election without contenders (below /lockstep/locks, elections,
                     services and groups, and ~waits, ~waiting, ~writers anywhere) that has the ACL of
                     the directory above. Servers remove most of them by themselves
  semaphore          its number of permits, if no client holds or waits, and none has resized it
  orphan             a contender with Lockstep's record that belongs to no session: a copy
  removed job        the record of a job that was removed more than a day ago
  write marker       of a counter, that was not written for more than a day
  dropped queue      whose removal was begun and not finished

Clients create all of these again when they need them, and fencing tokens still rise. lockstep keeps
all nodes that count or remember (terms, rounds, ids and workers, names, ledgers and runs, jobs, queues
and their progress, latches, gates, cordons, configuration), and those of other programs.

Without -y nothing is written. Ages are by this machine's clock without -y, and by the servers' with -y.
The age of an empty directory is known only if something was written later; --older-than 0 needs no age.
lockstep looks at 100,000 nodes at most, and names the first one that it leaves out. The exit code is 1
if a node could not be read or deleted, or was left out.`,
		Example: `  lockstep clean                       lists what -y would delete
  lockstep clean /lockstep/locks --older-than 0s
  lockstep clean -y --older-than 168h  deletes nodes that were not used for a week`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.WithExitCodes(c.clean),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().Var(&c.olderThan, "older-than", "only nodes that were not used for this long; a bare number is seconds")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "delete the nodes")
	return cmd
}

// maxShownNodes is how many nodes of one leftover are printed.
const maxShownNodes = 100

// cleanedJSON is an unused node, or one that could not be looked at, as JSON.
type cleanedJSON struct {
	Path       string     `json:"path"`
	PathBase64 []byte     `json:"path_base64,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Since      *time.Time `json:"since,omitempty"` // it was not used after that
	Nodes      []string   `json:"nodes,omitempty"`
	State      string     `json:"state"` // "unused", "deleted", "stays", "gone", "not read", "left out"
	Text       string     `json:"text"`
}

func (c *cleanCommand) clean(cmd *cobra.Command, args []string) error {
	root, err := cli.RootArgument(args, "ROOT", "/")
	if err != nil {
		return err
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return cli.EndBySignal(cmd.Context(), err)
	}
	defer cli.CloseClient(c.Streams, client)
	ctx := cmd.Context()
	o := unused.Options{OlderThan: time.Duration(c.olderThan), Now: time.Now()}
	if c.yes {
		o.Now, err = ensembleTime(ctx, client)
		if o.NoClock = errors.Is(err, framework.ErrNoAuth); o.NoClock {
			o.Now, err = time.Now(), nil
			c.PrintNotice("no permission to create a node that shows the servers' time, %s: removed jobs and write "+
				"markers of counters, which must be a day old, stay", sharedreport.Credentials(client.Config()))
		}
	}
	var found *unused.Found
	if err == nil {
		found, err = unused.Find(ctx, client, root, o)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return cli.ExitWith(cli.ExitMissing, err, "give a path that exists; it is below --root")
	}
	if err == nil {
		err = c.report(ctx, client, root, found)
	}
	return cli.EndBySignal(ctx, err)
}

// ensembleTime returns the servers' time. It creates a node below /lockstep or the root for that.
func ensembleTime(ctx context.Context, client *framework.Client) (time.Time, error) {
	now, err := unused.EnsembleTime(ctx, client, "/lockstep")
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
		now, err = unused.EnsembleTime(ctx, client, "/")
	}
	return now, err
}

// report prints what was found, and deletes it with -y.
func (c *cleanCommand) report(ctx context.Context, client *framework.Client, root string, found *unused.Found) error {
	wrong, deleted := len(found.Refused), 0
	if c.yes {
		slices.Reverse(found.Leftovers) // those below a directory come first
	}
	for _, l := range found.Leftovers {
		line := cleanedJSON{Path: l.Path, Kind: string(l.Kind), Since: cli.KnownTime(l.Since),
			Nodes: l.Nodes[:min(len(l.Nodes), maxShownNodes)], State: "unused", Text: l.Reason}
		if c.yes {
			err := unused.Delete(ctx, client, l)
			switch {
			case err == nil:
				line.State = "deleted"
				deleted++
			case errors.Is(err, unused.ErrGone):
				line.State, line.Text = "gone", "the servers or another client have deleted it"
			case errors.Is(err, unused.ErrChanged):
				line.State, line.Text = "stays", "it was used or changed meanwhile"
			case errors.Is(err, framework.ErrNoAuth):
				line.State, line.Text = "stays",
					"no permission to delete it, "+sharedreport.Credentials(client.Config())
				wrong++
			default:
				c.PrintNotice("%d of %d were deleted", deleted, len(found.Leftovers))
				return err
			}
		}
		if err := c.print(line); err != nil {
			return err
		}
	}
	for _, path := range found.Refused {
		if err := c.print(cleanedJSON{Path: path, State: "not read",
			Text: "no permission, or too large to be listed, " +
				sharedreport.Credentials(client.Config())}); err != nil {
			return err
		}
	}
	if found.LeftOut != "" {
		wrong++
		if err := c.print(cleanedJSON{Path: found.LeftOut, State: "left out",
			Text: "there are too many nodes: this one and later ones were not looked at; give a deeper path"}); err != nil {
			return err
		}
	}
	c.summarize(root, found, deleted)
	if wrong > 0 {
		return cli.ExitSilently(cli.ExitFound)
	}
	return nil
}

// summarize prints how many nodes were found and deleted.
func (c *cleanCommand) summarize(root string, found *unused.Found, deleted int) {
	if c.JSON {
		return
	}
	text := fmt.Sprintf("%d unused of %d nodes below %s", len(found.Leftovers), found.Looked, cli.InOneLine(root))
	if c.yes {
		text += fmt.Sprintf(", %d deleted", deleted)
	} else if len(found.Leftovers) > 0 {
		text += "; -y deletes them"
	}
	if found.Recent > 0 {
		text += fmt.Sprintf("; %d more were used lately, or may have been (--older-than)", found.Recent)
	}
	c.PrintNotice("%s", text)
}

func (c *cleanCommand) print(line cleanedJSON) error {
	line.PathBase64 = reportjson.ExactBytes(line.Path)
	style, since := terminal.For(c.Out), ""
	if line.Since != nil {
		since = cli.FormatTime(*line.Since)
	}
	state := style.Yellow(line.State)
	if line.State == "deleted" {
		state = style.Green(line.State)
	}
	return cli.PrintResult(c.Out, c.JSON, line, state, style.Bold(cli.InOneLine(line.Path)), line.Kind, since,
		cli.InOneLine(line.Text))
}
