package election

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// RequestTransfer asks the leader to hand leadership to the first candidate in line with this id,
// and waits until that candidate leads. Any client may ask that may read the election's nodes, and
// may create and delete nodes below <path>~waiting, if the leader may read those. RequestTransfer
// returns at once if the candidate leads already.
//
// The leader ends its term as with Term.TransferTo: its function's context ends, and leadership
// goes over once the function has returned. Only leaders of this package heed requests; one of
// Java's leads on. The request is an ephemeral node <path>~waiting/_c_<uuid>-transfer, whose data
// is JSON {"v":1,"id"}. RequestTransfer deletes it at the end, also when ctx has ended, and waits
// for that as a cleanup (framework.Client.CleanupContext); after that the deletion goes on in the
// background, until the session ends. Leaders heed the request while the node exists.
//
// The error wraps ErrNoLeader, framework.ErrNotFound when no candidate with this id is in line,
// framework.ErrNoAuth when the client may not create that node, or framework.ErrClosed. Otherwise
// it is that of ctx; then the leader may have seen the request.
func (e *Election) RequestTransfer(ctx context.Context, id string) error {
	return failure.Wrap("transfer", e.path, e.requestTransfer(ctx, id))
}

func (e *Election) requestTransfer(ctx context.Context, id string) error {
	if e.err != nil {
		return e.err
	}
	if err := recipe.Sync(ctx, e.client, e.path); err != nil {
		// also "it leads already" and "it is not in line" must not be a lagging server's
		return err
	}
	all, err := e.Candidates(ctx)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return ErrNoLeader
	case all[0].ID == id:
		return nil
	case !slices.ContainsFunc(all, func(c Candidate) bool { return c.ID == id }):
		return fmt.Errorf("%w: %q", errNoCandidate, id)
	}
	m, err := e.waiting.startPresence(ctx, requestName, waitingRecord{ID: id})
	if err != nil {
		return err
	}
	defer func() {
		leaving, cancel := e.client.CleanupContext(ctx)
		defer cancel()
		m.leaveAndWait(leaving)
	}()
	observing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-m.gone: // the servers refuse the request
			stop()
		case <-observing.Done():
		}
	}()
	for leader, err := range e.Follow(observing) {
		if err != nil {
			return err
		}
		if leader != nil && leader.ID == id {
			return nil
		}
	}
	if ctx.Err() == nil {
		return m.err
	}
	return failure.Ended(ctx)
}
