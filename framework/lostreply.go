package framework

import (
	"bytes"
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/internal/znode"
)

// errNotApplied says that a write without an answer has not happened and will not happen.
var errNotApplied = errors.New("the write was not applied")

// applyOnce applies a write at most once. It repeats a try that was not sent. When a try was sent
// and the connection was lost, outcomeOf finds out on the next connection, behind a sync, whether
// the write has happened. outcomeOf returns errNotApplied if it has not happened; then applyOnce
// tries again. Nodes and changes with a transaction up to seen are older than the try.
func applyOnce[T any](ctx context.Context, c *caller, try func(a requester) (T, error),
	outcomeOf func(a requester, seen int64) (T, error)) (T, error) {
	for {
		var seen int64
		v, err := repeatUntilSent(ctx, c, func(a requester) (T, error) {
			seen = c.transport.Seen()
			return try(a)
		})
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrSuspended) {
			return v, err
		}
		lost := err
		v, err = repeatUntilKnown(ctx, c, func(a requester) (T, error) {
			if err := a.sync("/"); err != nil {
				var none T
				return none, err
			}
			return outcomeOf(a, seen)
		})
		switch {
		case err == nil || errors.Is(err, ErrNodeExists):
			return v, err
		case errors.Is(err, errUndecided):
			return v, lost
		case !errors.Is(err, errNotApplied):
			return outcome[T]{v: v, err: err, lost: true}.asWrite()
		}
	}
}

// errUndecided says that reading does not show whether a write without an answer has happened.
var errUndecided = errors.New("the outcome cannot be found out")

// outcomeOfSet finds out whether a set has happened. It has not if the node was not written since
// the try, or does not have the version or the data that the set would have given it.
func outcomeOfSet(a requester, full string, data []byte, version int32, seen int64) (Stat, error) {
	r, err := a.get(full)
	switch {
	case errors.Is(err, ErrNoNode):
		return Stat{}, errUndecided
	case err != nil:
		return Stat{}, err
	case r.stat.Mzxid <= seen:
		return Stat{}, errNotApplied
	case version == AnyVersion && bytes.Equal(r.data, data):
		return setSameAgain(a, full, data, r.stat.Version)
	case version == AnyVersion || r.stat.Czxid > seen:
		return Stat{}, errUndecided
	case r.stat.Version <= version || r.stat.Version == version+1 && !bytes.Equal(r.data, data):
		return Stat{}, errNotApplied
	}
	return Stat{}, errUndecided
}

// setSameAgain writes the same data once more, so that the write and the returned Stat are
// certainly those of this call.
func setSameAgain(a requester, full string, data []byte, version int32) (Stat, error) {
	stat, err := a.set(full, data, version)
	if errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNoNode) {
		err = errUndecided
	}
	return stat, err
}

// outcomeOfDelete finds out whether a deletion has happened. It has not if the node from before the
// try still exists. If the node is missing, and no node was created or deleted in its directory
// since the try, there was no node to delete.
func outcomeOfDelete(a requester, full string, seen int64) error {
	stat, err := a.exists(full)
	switch {
	case err == nil && stat.Czxid <= seen:
		return errNotApplied
	case err == nil:
		return errUndecided
	case !errors.Is(err, ErrNoNode):
		return err
	}
	return checkUndisturbed(a, full, seen)
}

// outcomeOfCreate finds out whether a create has happened. A node that is older than the try
// belongs to another create, and so does a node with other data that was not written since its
// creation.
func outcomeOfCreate(a requester, full string, data []byte, mode Mode, seen int64) error {
	r, err := a.get(full)
	switch {
	case errors.Is(err, ErrNoNode):
		return checkUndisturbed(a, full, seen)
	case err != nil:
		return err
	case r.stat.Czxid <= seen:
		return ErrNodeExists
	case r.stat.Version == 0 && !bytes.Equal(r.data, data):
		return ErrNodeExists
	case mode == Ephemeral && r.stat.EphemeralOwner == a.caller.sessionID():
		return nil
	case mode == Ephemeral || r.stat.EphemeralOwner != 0:
		return ErrNodeExists
	}
	return errUndecided
}

// checkUndisturbed returns errNotApplied if no node was created or deleted in the directory of a
// missing node since the try, and otherwise errUndecided.
func checkUndisturbed(a requester, full string, seen int64) error {
	dir, _ := znode.Split(full)
	stat, err := a.exists(dir)
	switch {
	case err == nil && stat.Pzxid <= seen:
		return errNotApplied
	case err == nil, errors.Is(err, ErrNoNode):
		return errUndecided
	}
	return err
}
