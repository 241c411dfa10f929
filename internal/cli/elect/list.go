package elect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/lock"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/locks"
)

func newElections(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use:   "elections [NAME] [flags]",
		Short: "Show who leads and who stands by",
		Long: `Show the elections below /lockstep/elections with their leaders, or with a NAME one election with
all its candidates in the order in which they lead: ids, priorities, tokens and metadata. A NAME
that is no election is a directory; the exit code is 1 if there is no candidate at or below it.
Nothing is written. If the NAME is also that of a subcommand, give the path:
/lockstep/elections/transfer.`,
		Example: "  lockstep elections\n  lockstep elections billing\n  lockstep elections transfer billing " +
			"web-2-711\n  lockstep elections /apps --json",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		root, err := cli.RootOf("elections", args)
		if err != nil {
			return err
		}
		return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
			return showElections(ctx, streams, client, root, len(args) > 0, c.JSON)
		})
	})
	c.AddConnectionFlags(streams, cmd)
	cmd.AddCommand(newTransfer(streams))
	return cmd
}

// showElections prints the elections at and below a path. It prints one in detail if the user has
// named it.
func showElections(ctx context.Context, streams *cli.Streams, client *framework.Client, root string, named,
	asJSON bool) error {
	overview := cli.NewTable("ELECTION", "LEADER", "SINCE", "TERM", "STANDING BY")
	var unread error
	found := 0
	for r, err := range locks.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.PrintWarning("%v", err)
			unread = err
			continue
		case err != nil:
			return err
		case r.Kind != locks.ElectionLock:
			continue
		}
		found++
		all, err := election.New(client, r.Path).Candidates(ctx)
		switch {
		case errors.Is(err, framework.ErrBadRecord), errors.Is(err, framework.ErrNewer),
			errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.PrintWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case asJSON:
			if err := cli.PrintResult(streams.Out, true, sharedreport.NewElection(r.Path, all)); err != nil {
				return err
			}
		case named && r.Path == root:
			return CandidateTable(r.Path, all).PrintTo(streams.Out)
		default:
			overview.AddRow(electionRow(r.Path, all)...)
		}
	}
	if err := overview.PrintTo(streams.Out); err != nil {
		return err
	}
	if found == 0 && named && root != "/" && unread == nil {
		return cli.NothingFoundError(ctx, streams, client, "elections", root, "lockstep elections")
	}
	if found == 0 && !asJSON && unread == nil {
		cli.PrintNone(ctx, streams, "elections", root, "lockstep elections", lock.FindUsed(client, true))
	}
	return cli.ExitCodeOfPrinted(streams, unread)
}

func electionRow(path string, all []election.Candidate) []cli.Cell {
	leader, since, term := cli.DimCell("-"), cli.DimCell("-"), cli.DimCell("-")
	if len(all) > 0 {
		leader = cli.GreenCell(cli.ShortenText(all[0].ID))
		if !all[0].Since.IsZero() {
			since, term = cli.PlainCell(cli.FormatSince(all[0].Since, time.Now())),
				cli.PlainCell(strconv.FormatInt(all[0].Number, 10))
		}
	}
	return []cli.Cell{cli.BoldCell(cli.QuoteName(strings.TrimPrefix(path, cli.ElectionsDir+"/"))), leader, since, term,
		cli.PlainCell(strconv.Itoa(max(0, len(all)-1)))}
}

func CandidateTable(path string, all []election.Candidate) *cli.Table {
	t := cli.NewTable("", "ID", "PRIORITY", "SINCE", "TERM", "TOKEN", "SESSION", "METADATA")
	t.Title = fmt.Sprintf("%s: %d standing by", cli.QuoteName(path), max(0, len(all)-1))
	for i, c := range all {
		role := cli.YellowCell("stands by " + strconv.Itoa(i))
		if i == 0 {
			role = cli.GreenCell("leads")
		}
		t.AddRow(role, cli.PlainCell(cli.ShortenText(c.ID)), cli.PlainCell(cli.FormatCount(c.Priority)),
			cli.PlainCell(cli.FormatSince(c.Since, time.Now())), cli.PlainCell(cli.FormatCount(c.Number)),
			cli.PlainCell(strconv.FormatInt(c.Token, 10)), cli.PlainCell(c.Session.String()),
			cli.DimCell(cli.FormatMetadata(c.Metadata)))
	}
	return t
}
