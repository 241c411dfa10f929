package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
)

// elect is the subcommand that takes part in an election, or observes it.
type elect struct {
	connection
	runner
	id       string
	observer bool
	standing standing
}

func newElect() *cobra.Command {
	e := &elect{}
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Run a command while this process is the leader",
		Long: `Run a command while this process is the leader of an election.

When leadership is lost the command's process group gets SIGTERM, and SIGKILL --kill-after
later, before anybody else can lead; then this process campaigns again. When the command
ends by itself, this process resigns and ends with its exit code.

Without a command the path and the fencing token are printed once this process leads, and
it leads until a signal comes. With --observe it does not take part but prints who leads,
now and at each change: time, id (or none), fencing token and the term's number (or 0).
With --json the leader's metadata is printed too.

A candidate with --priority takes over from a leader of a lower one, once it has waited for
--stable: that leader's command is stopped as if leadership was lost, and it campaigns again.`,
		Example: `  lockstep elect billing -- ./billing-server
  lockstep elect billing --id "$HOSTNAME" --meta address="$HOSTNAME:8080" -- ./billing-server
  lockstep elect billing --priority 10 --stable 1m -- ./billing-server
  lockstep elect billing --observe --json`,
		Args: nameAnd(true),
		RunE: coded(e.main),
	}
	e.connection.register(cmd)
	e.runner.register(cmd)
	cmd.Flags().StringVar(&e.id, "id", "", "what this candidate is called (default $LOCKSTEP_IDENTITY, else host name and process id)")
	cmd.Flags().BoolVar(&e.observer, "observe", false, "only print who leads")
	cmd.MarkFlagsMutuallyExclusive("observe", "id")
	e.standing.register(cmd)
	return cmd
}

func (e *elect) main(cmd *cobra.Command, args []string) error {
	own, command := split(cmd, args)
	path, err := pathOf("elections", own[0])
	if err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("id") && e.id == "":
		return usage("--id is empty")
	case e.observer && len(command) > 0:
		return usage("--observe takes no command")
	}
	options, err := e.standing.options(cmd)
	if err != nil {
		return err
	}
	if err := find(command); err != nil {
		return err
	}
	client, err := e.connect(cmd)
	if err != nil {
		return quiet(cmd.Context(), err)
	}
	defer hangUp(client) // resigns
	ctx := cmd.Context()
	if err := e.prepare(ctx, client, path, command); err != nil {
		return quiet(ctx, err)
	}
	if e.id != "" {
		options = append(options, election.WithID(e.id))
	}
	candidate := election.New(client, path, options...)
	if e.observer {
		return e.observe(ctx, candidate)
	}
	return quiet(ctx, e.campaign(ctx, candidate))
}

// quiet makes a signal a way to end well: nothing ran that could have been cut short.
func quiet(ctx context.Context, err error) error {
	var said *exit
	if err != nil && !errors.As(err, &said) && endedBySignal(ctx) {
		return nil
	}
	return err
}

// campaign leads until the command ends by itself or a signal comes.
func (e *elect) campaign(ctx context.Context, candidate *election.Election) error {
	for {
		term, err := candidate.Campaign(ctx)
		if err != nil {
			return err
		}
		err = e.lead(ctx, term)
		_ = term.Resign(ctx) // never fails
		if !errors.Is(err, procguard.ErrHoldLost) {
			return err
		}
		warn("election %s: %v; campaigning again", e.path, err)
	}
}

// lead serves one term. Its error wraps procguard.ErrHoldLost when leadership was lost.
func (e *elect) lead(ctx context.Context, term *election.Term) error {
	if len(e.command) == 0 {
		return e.reign(ctx, term)
	}
	say("leading %s as %s with token %d", e.path, readable(term.ID()), term.Token())
	code, err := e.run(ctx, grant{term.Context(), term.Token()})
	if err != nil && !(errors.Is(err, procguard.ErrHoldLost) && endedBySignal(ctx)) {
		return err
	}
	return silent(code)
}

// reign leads without a command until a signal comes.
func (e *elect) reign(ctx context.Context, term *election.Term) error {
	held := holding{Path: e.path, ID: term.ID(), Token: term.Token(), Session: locks.SessionID(term.Session())}
	if err := put(os.Stdout, e.json, held, held.Path, held.Token); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-term.Context().Done():
		return errors.Join(procguard.ErrHoldLost, context.Cause(term.Context()))
	}
}
