package lock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/locks"
)

// holderCommand is a subcommand that acts on the nodes of one lock.
type holderCommand struct {
	cli.ConnectionFlags
	node string
	yes  bool
}

func newRevoke(streams *cli.Streams) *cobra.Command {
	h := &holderCommand{}
	cmd := &cobra.Command{
		Use:   "revoke NAME [flags]",
		Short: "Ask the holders of a lock to let go",
		Long: `Ask the holders of a lock to let go, as Curator's Revoker does. A holder that does not listen for
that (Lease.Revoked, Curator's makeRevocable) goes on. lockstep locks shows who was asked. lockstep
release takes a hold away from one that does not let go.`,
		Example: `  lockstep revoke deploy
  lockstep revoke gpu --node lease-0000000004`,
		Args: cli.CheckNameAlone,
		RunE: cli.WithExitCodes(h.revoke),
	}
	h.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringVar(&h.node, "node", "",
		"only this holder, by its node as lockstep locks NAME shows it (default all holders)")
	return cmd
}

func newRelease(streams *cli.Streams) *cobra.Command {
	h := &holderCommand{}
	cmd := &cobra.Command{
		Use:   "release NAME --node NODE [flags]",
		Short: "Delete one node of a lock: a hold, or a place in line",
		Long: `Delete one node of a lock, and with it its owner's hold or place in line. The owner is not asked. It
may go on for a while beside the next holder, until it notices. Use this for an owner that hangs, or
for a node that belongs to no session. Systems that check fencing tokens refuse the writes of the
former owner.

lockstep asks before it deletes the node, unless -y is given, and deletes it only as it was shown.`,
		Example: `  lockstep locks deploy                       shows the nodes
  lockstep release deploy --node _c_bb69ffea-2a54-4530-a42d-545314f61f9d-lock-0000000000`,
		Args: cli.CheckNameAlone,
		RunE: cli.WithExitCodes(h.release),
	}
	h.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringVar(&h.node, "node", "", "the node, as lockstep locks NAME shows it")
	cmd.Flags().BoolVarP(&h.yes, "yes", "y", false, "do not ask")
	return cmd
}

// inspect connects and reads the lock.
func (h *holderCommand) inspect(cmd *cobra.Command, name string) (*framework.Client, locks.Report, error) {
	path, err := cli.PathOf("locks", name)
	if err != nil {
		return nil, locks.Report{}, err
	}
	client, err := h.ConnectClient(cmd)
	if err != nil {
		return nil, locks.Report{}, err
	}
	r, err := locks.Inspect(cmd.Context(), client, path)
	if err != nil {
		cli.CloseClient(h.Streams, client)
		return nil, locks.Report{}, err
	}
	return client, r, nil
}

// isNode reports whether an entry is the one that --node names: by its path, its name, or the end
// of its path.
func (h *holderCommand) isNode(e locks.Entry) bool {
	return e.Node == h.node || strings.HasSuffix(e.Node, "/"+strings.TrimPrefix(h.node, "/"))
}

func (h *holderCommand) revoke(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("node") && h.node == "" { // as a script gives it whose variable is empty
		return cli.UsageError("--node is empty: leave it out to ask all holders")
	}
	client, r, err := h.inspect(cmd, args[0])
	if err != nil {
		return cli.EndBySignal(cmd.Context(), err)
	}
	defer cli.CloseClient(h.Streams, client)
	if r.Kind == locks.ElectionLock {
		return cli.UsageError("%s is an election, whose leader does not listen for that: hand over with lockstep "+
			"elections transfer", cli.QuoteName(r.Path))
	}
	asked := 0
	for _, e := range r.Holders {
		if h.node != "" && !h.isNode(e) {
			continue
		}
		err := locks.Revoke(cmd.Context(), client, e.Node)
		if errors.Is(err, framework.ErrNotFound) {
			continue
		}
		if err != nil {
			return cli.EndBySignal(cmd.Context(), err)
		}
		asked++
		h.PrintNotice("asked %s to let go of %s", cli.OwnerName(e), cli.QuoteName(r.Path))
	}
	if asked == 0 {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("%s has no holder that could be asked", r.Path),
			"see who holds it: lockstep locks "+cli.ShellWord(args[0]))
	}
	return nil
}

func (h *holderCommand) release(cmd *cobra.Command, args []string) error {
	if h.node == "" {
		return cli.UsageError("--node is missing: lockstep locks %s shows the nodes", cli.ShellWord(args[0]))
	}
	client, r, err := h.inspect(cmd, args[0])
	if err != nil {
		return cli.EndBySignal(cmd.Context(), err)
	}
	defer cli.CloseClient(h.Streams, client)
	for _, e := range append(append(append([]locks.Entry{}, r.Holders...), r.Waiters...), r.Others...) {
		if !h.isNode(e) {
			continue
		}
		if !h.yes {
			if err := cli.Confirm(cmd.Context(), h.Streams, releaseQuestion(r, e)); err != nil {
				return err
			}
		}
		if err := locks.Evict(cmd.Context(), client, e.Node, e.Token); err != nil {
			return cli.EndBySignal(cmd.Context(), err)
		}
		h.PrintNotice("deleted %s of %s", e.Node, cli.OwnerName(e))
		return nil
	}
	return cli.ExitWith(cli.ExitMissing, fmt.Errorf("%s has no node %s", r.Path, h.node),
		"see its nodes: lockstep locks "+cli.ShellWord(args[0]))
}

func releaseQuestion(r locks.Report, e locks.Entry) string {
	return fmt.Sprintf("%s in %s, since %s, token %d, session %s. Its owner may go on for a while beside the next "+
		"holder. Delete its node?",
		cli.OwnerName(e), cli.QuoteName(r.Path), cli.FormatTime(e.Since), e.Token, e.Session)
}
