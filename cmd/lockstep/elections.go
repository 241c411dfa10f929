package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// electionsDir is the directory of elections.
const electionsDir = "/lockstep/elections"

func newElections(streams *Streams) *cobra.Command {
	c := &connectionFlags{}
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
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		root, err := rootOf("elections", args)
		if err != nil {
			return err
		}
		return c.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
			return showElections(ctx, streams, client, root, len(args) > 0, c.json)
		})
	})
	c.addConnectionFlags(streams, cmd)
	cmd.AddCommand(newTransfer(streams))
	return cmd
}

// electionJSON is an election as JSON.
type electionJSON struct {
	Path       string          `json:"path"`
	Candidates []candidateJSON `json:"candidates"` // the leader first
}

type candidateJSON struct {
	ID       string            `json:"id"`
	Exact    []byte            `json:"id_base64,omitempty"`
	Token    int64             `json:"token"`
	Term     int64             `json:"term,omitempty"`
	Since    *time.Time        `json:"since,omitempty"`
	Priority int               `json:"priority,omitempty"`
	Session  locks.SessionID   `json:"session"`
	Node     string            `json:"node"`
	Metadata election.Metadata `json:"metadata,omitempty"`
}

// showElections prints the elections at and below a path. It prints one in detail if the user has
// named it.
func showElections(ctx context.Context, streams *Streams, client *framework.Client, root string, named,
	asJSON bool) error {
	overview := newTable("ELECTION", "LEADER", "SINCE", "TERM", "STANDING BY")
	var unread error
	found := 0
	for r, err := range locks.List(ctx, client, root) {
		switch {
		case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.printWarning("%v", err)
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
		case errors.Is(err, election.ErrBadRecord), errors.Is(err, election.ErrNewerRecord),
			errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
			streams.printWarning("%v", err)
			unread = err
		case err != nil:
			return err
		case asJSON:
			if err := printResult(streams.Out, true, electionView(r.Path, all)); err != nil {
				return err
			}
		case named && r.Path == root:
			return candidateTable(r.Path, all).printTo(streams.Out)
		default:
			overview.addRow(electionRow(r.Path, all)...)
		}
	}
	if err := overview.printTo(streams.Out); err != nil {
		return err
	}
	if found == 0 && named && root != "/" && unread == nil {
		return nothingFoundError(ctx, streams, client, "elections", root, "lockstep elections")
	}
	if found == 0 && !asJSON && unread == nil {
		printNone(ctx, streams, "elections", root, "lockstep elections", findLocks(client, true))
	}
	return exitCodeOfPrinted(streams, unread)
}

func electionRow(path string, all []election.Candidate) []cell {
	leader, since, term := dimCell("-"), dimCell("-"), dimCell("-")
	if len(all) > 0 {
		leader = greenCell(shortenText(all[0].ID))
		if !all[0].Since.IsZero() {
			since, term = plainCell(formatSince(all[0].Since, time.Now())),
				plainCell(strconv.FormatInt(all[0].Number, 10))
		}
	}
	return []cell{boldCell(quoteName(strings.TrimPrefix(path, electionsDir+"/"))), leader, since, term,
		plainCell(strconv.Itoa(max(0, len(all)-1)))}
}

func candidateTable(path string, all []election.Candidate) *table {
	t := newTable("", "ID", "PRIORITY", "SINCE", "TERM", "TOKEN", "SESSION", "METADATA")
	t.title = fmt.Sprintf("%s: %d standing by", quoteName(path), max(0, len(all)-1))
	for i, c := range all {
		role := yellowCell("stands by " + strconv.Itoa(i))
		if i == 0 {
			role = greenCell("leads")
		}
		t.addRow(role, plainCell(shortenText(c.ID)), plainCell(formatCount(c.Priority)),
			plainCell(formatSince(c.Since, time.Now())), plainCell(formatCount(c.Number)),
			plainCell(strconv.FormatInt(c.Token, 10)), plainCell(locks.SessionID(c.Session).String()),
			dimCell(formatMetadata(c.Metadata)))
	}
	return t
}

func formatMetadata(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, shortenText(key)+"="+shortenText(m[key]))
	}
	return strings.Join(pairs, " ")
}

func electionView(path string, all []election.Candidate) electionJSON {
	v := electionJSON{Path: path, Candidates: []candidateJSON{}}
	for _, c := range all {
		v.Candidates = append(v.Candidates, candidateJSON{
			ID: c.ID, Exact: bytesIfInvalid(c.ID), Token: c.Token, Term: c.Number, Since: knownTime(c.Since),
			Priority: c.Priority,
			Session:  locks.SessionID(c.Session), Node: c.Node, Metadata: c.Metadata,
		})
	}
	return v
}
