// Package elect has the subcommands of elections.
package elect

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/hold"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// electCommand is the subcommand that takes part in an election, or observes it.
type electCommand struct {
	cli.ConnectionFlags
	hold.Runner
	id        string
	observer  bool
	candidate candidateFlags
}

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newElect(streams), newElections(streams)}
}

func newElect(streams *cli.Streams) *cobra.Command {
	e := &electCommand{}
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run a command while this process is the leader",
		Long: `Run a command while this process is the leader of an election.

When leadership is lost the command's process group gets SIGTERM, and SIGKILL --kill-after
later, before another candidate can lead; then this process campaigns again. When the command
ends by itself, this process resigns and ends with its exit code.

Without a command lockstep prints the path and the fencing token once this process leads, and
leads until a signal comes. With --observe it does not take part but prints who leads,
now and at each change: time, id (or none), fencing token and the term's number (or 0).
With --json the leader's metadata is printed too.

A candidate with --priority takes over from a leader of a lower one, once it has waited for
--stable: that leader's command is stopped as if leadership was lost, and that process campaigns again.`,
		Example: `  lockstep elect billing -- ./billing-server
  lockstep elect billing --id "$HOSTNAME" --meta address="$HOSTNAME:8080" -- ./billing-server
  lockstep elect billing --priority 10 --stable 1m -- ./billing-server
  lockstep elect billing --observe --json`,
		Args: cli.CheckNameAnd(true),
		RunE: cli.WithExitCodes(e.joinElection),
	}
	e.ConnectionFlags.AddConnectionFlags(streams, cmd)
	e.Runner.AddFlags(streams, cmd)
	cmd.Flags().StringVar(&e.id, "id", "",
		"the id of this candidate (default $LOCKSTEP_IDENTITY, else host name and process id)")
	cmd.Flags().BoolVar(&e.observer, "observe", false, "only print who leads")
	cmd.MarkFlagsMutuallyExclusive("observe", "id")
	e.candidate.addCandidateFlags(cmd)
	return cmd
}

func (e *electCommand) joinElection(cmd *cobra.Command, args []string) error {
	own, command := cli.SplitAtDash(cmd, args)
	path, err := cli.PathOf("elections", own[0])
	if err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("id") && e.id == "":
		return cli.UsageError("--id is empty")
	case e.observer && len(command) > 0:
		return cli.UsageError("--observe takes no command")
	}
	options, err := e.candidate.candidateOptions(cmd)
	if err != nil {
		return err
	}
	if err := hold.FindCommand(command); err != nil {
		return err
	}
	client, err := e.ConnectClient(cmd)
	if err != nil {
		return cli.EndQuietlyOnSignal(cmd.Context(), err)
	}
	defer cli.CloseClient(e.Streams, client) // resigns
	ctx := cmd.Context()
	if err := e.PrepareCommand(ctx, client, path, command); err != nil {
		return cli.EndQuietlyOnSignal(ctx, err)
	}
	if e.id != "" {
		options = append(options, election.WithID(e.id))
	}
	candidate := election.New(client, path, options...)
	if e.observer {
		return e.printLeaders(ctx, candidate)
	}
	return cli.EndQuietlyOnSignal(ctx, e.campaignUntilDone(ctx, candidate))
}

// campaignUntilDone leads until the command ends by itself or a signal comes.
func (e *electCommand) campaignUntilDone(ctx context.Context, candidate *election.Election) error {
	var former framework.SessionID
	for {
		stopPrinting := hold.PrintLeaderChanges(ctx, e.Streams, e.Client, e.Path, "leads", former)
		term, err := candidate.Campaign(ctx)
		stopPrinting()
		if err != nil {
			return err
		}
		err = e.serveTerm(ctx, term)
		_ = term.Resign(ctx) // without an answer, the client goes on to give up the term
		if !errors.Is(err, procguard.ErrHoldLost) {
			return err
		}
		former = term.Session()
		if errors.Is(err, election.ErrTransferred) {
			e.PrintNotice("%s: %v; campaigning again", e.Path, context.Cause(term.Context()))
			continue
		}
		e.PrintWarning("election %s: %v; campaigning again", e.Path, err)
	}
}

// serveTerm serves one term. Its error wraps procguard.ErrHoldLost when leadership was lost.
func (e *electCommand) serveTerm(ctx context.Context, term *election.Term) error {
	if len(e.Command) == 0 {
		return e.leadUntilSignal(ctx, term)
	}
	e.PrintNotice("leading %s as %s with token %d", e.Path, cli.QuoteName(term.ID()), term.Token())
	code, err := e.RunCommand(ctx, term.Context(), term.Token())
	if err != nil && !(errors.Is(err, procguard.ErrHoldLost) && cli.EndedBySignal(ctx)) {
		return err
	}
	return cli.ExitSilently(code)
}

// leadUntilSignal leads without a command until a signal comes.
func (e *electCommand) leadUntilSignal(ctx context.Context, term *election.Term) error {
	held := hold.Holding{Path: e.Path, ID: term.ID(), Token: term.Token(), Session: term.Session()}
	if err := cli.PrintResult(e.Out, e.JSON, held, held.Path,
		cli.NamedField{Name: "token", Value: held.Token}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-term.Context().Done():
		return errors.Join(procguard.ErrHoldLost, context.Cause(term.Context()))
	}
}

// leaderChangeJSON is one line of --observe.
type leaderChangeJSON struct {
	Time  string  `json:"time"`
	ID    *string `json:"id"` // null: nobody leads
	Exact []byte  `json:"id_base64,omitempty"`
	Token int64   `json:"token"`
	Term  int64   `json:"term"` // 0: not counted

	Metadata map[string]string `json:"metadata,omitempty"`
}

// printLeaders prints who leads until a signal comes.
func (e *electCommand) printLeaders(ctx context.Context, watched *election.Election) error {
	for leader, err := range watched.Follow(ctx) {
		if err != nil {
			return err
		}
		c, shown := leaderChangeJSON{Time: time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")}, "none"
		if leader != nil {
			c.ID, c.Exact, c.Token, c.Term = &leader.ID, reportjson.ExactBytes(leader.ID), leader.Token, leader.Number
			c.Metadata, shown = leader.Metadata, cli.QuoteName(leader.ID)
		}
		if err := cli.PrintResult(e.Out, e.JSON, c, c.Time, shown, cli.NamedField{Name: "token", Value: c.Token},
			cli.NamedField{Name: "term", Value: c.Term}); err != nil {
			return err
		}
	}
	return nil
}
