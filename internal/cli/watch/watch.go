// Package watch has the subcommand that prints changes of nodes.
package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

// watchCommand is the subcommand that prints changes.
type watchCommand struct {
	cli.ConnectionFlags
	most int
}

const maxWatched = 2000

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	c := &watchCommand{}
	cmd := &cobra.Command{
		Use:   "watch PATH [flags]",
		Short: "Print a line for each change of a node and of all nodes below it",
		Long: `Print a line for each change of a node and of all nodes below it: created, changed, deleted. With
--json each line is an object with the whole data, in data_base64 if it is no text. The command goes
on while no server can be reached. When changes may have been missed, because the session was lost, a
line says so, and the lines after it show how the nodes differ from before.

Changes that follow each other quickly may be one line: the version counts them. The path need not
exist yet. Nodes that recipes keep beside it are watched as well: an election's terms and waiting
candidates (NAME~term, NAME~waiting), a configuration's history. A PATH such as locks/deploy is below
/lockstep. A node takes two watches on a server. At most --most nodes are watched; a line names the
first one that is left out.`,
		Example: `  lockstep watch locks/deploy
  lockstep watch /apps/shop --json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return cli.EndQuietlyOnSignal(cmd.Context(), c.watch(cmd, args[0]))
	})
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().IntVar(&c.most, "most", maxWatched, "watch this many nodes at most")
	return cmd
}

func (c *watchCommand) watch(cmd *cobra.Command, path string) error {
	if path != "/" && path[:min(1, len(path))] != "/" {
		path = "/lockstep/" + path
	}
	if err := framework.ValidatePath(path); err != nil && path != "/" {
		return cli.UsageError("the PATH %q cannot be used: %w", path, err)
	}
	if c.most < 1 {
		return cli.UsageError("--most %d: it must be 1 or more", c.most)
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(c.Streams, client)
	w := &treeWatcher{streams: c.Streams, root: path, most: c.most, known: map[string]*watchedNode{},
		print: c.printChange}
	for ctx := cmd.Context(); ; {
		s, err := client.Session(ctx)
		if err != nil {
			return err
		}
		err = w.watchOnSession(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, framework.ErrSessionLost) {
			return err
		}
		if err := c.printChange(nodeChange{Event: "missed", Path: path,
			Text: "the session was lost: changes may have been missed; the next lines show how the nodes differ " +
				"from before"}); err != nil {
			return err
		}
	}
}

// nodeChange is what is printed of a change.
type nodeChange struct {
	At      time.Time           `json:"at"` // by this machine's clock
	Event   string              `json:"event"`
	Path    string              `json:"path"`
	Exact   []byte              `json:"path_base64,omitempty"`
	Version int32               `json:"version,omitempty"`
	Changes int32               `json:"changes,omitempty"` // since the line before
	Mzxid   int64               `json:"mzxid,omitempty"`
	Session framework.SessionID `json:"session,omitempty"`
	Data    *string             `json:"data,omitempty"`
	Base64  []byte              `json:"data_base64,omitempty"`
	Text    string              `json:"text,omitempty"`
}

func (c *watchCommand) printChange(change nodeChange) error {
	change.At = time.Now()
	change.Exact = reportjson.ExactBytes(change.Path)
	if c.JSON {
		return cli.PrintResult(c.Out, true, change)
	}
	style := terminal.For(c.Out)
	paint := style.Yellow
	switch change.Event {
	case "created":
		paint = style.Green
	case "deleted", "missed", "left out":
		paint = style.Red
	}
	line := fmt.Sprintf("%s %s %s", style.Dim(change.At.Format("15:04:05.000")),
		paint(fmt.Sprintf("%-8s", change.Event)), cli.QuoteName(change.Path))
	if change.Changes > 1 {
		line += fmt.Sprintf(" (%d changes)", change.Changes)
	}
	if change.Session != 0 {
		line += style.Dim(" session " + change.Session.String())
	}
	var details []string
	if change.Text != "" {
		details = append(details, cli.InOneLine(change.Text))
	}
	switch {
	case change.Data != nil:
		details = append(details, cli.ShortenText(*change.Data))
	case change.Base64 != nil:
		details = append(details, fmt.Sprintf("%d bytes: %s", len(change.Base64),
			cli.ShortenText(string(change.Base64))))
	}
	_, err := fmt.Fprintln(c.Out, line+" "+strings.Join(details, ": "))
	return err
}

// setData puts a node's data into a change: as text, or as bytes if it is no text.
func (n *nodeChange) setData(data []byte) {
	if utf8.Valid(data) {
		text := string(data)
		n.Data = &text
		return
	}
	n.Base64 = data
}
