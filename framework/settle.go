package framework

import (
	"bytes"
	"context"
	"errors"
)

// errNotApplied says of a write without an answer that it has not happened and will not.
var errNotApplied = errors.New("the write was not applied")

// applyOnce carries a write out, once at most. A try that no server has seen is repeated. When a try was sent and the connection was lost, settle reads
// on the next connection, behind a sync, what became of it. It returns errNotApplied if it has not happened: then it is tried
// again. What has a transaction up to seen was there before the try.
func applyOnce[T any](ctx context.Context, t *transport, try func(a requester) (T, error), settle func(a requester, seen int64) (T, error)) (T, error) {
	for {
		var seen int64
		v, err := repeatUntilSent(ctx, t, func(a requester) (T, error) {
			seen = t.mon.Seen()
			return try(a)
		})
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrSuspended) {
			return v, err
		}
		lost := err
		v, err = repeatUntilKnown(ctx, t, func(a requester) (T, error) {
			if err := a.sync("/"); err != nil {
				var none T
				return none, err
			}
			return settle(a, seen)
		})
		switch {
		case err == nil || errors.Is(err, ErrNodeExists):
			return v, err
		case errors.Is(err, errUnsettled):
			return v, lost
		case !errors.Is(err, errNotApplied):
			return outcome[T]{v: v, err: err, lost: true}.written()
		}
	}
}

// errUnsettled says of a write without an answer that what can be read does not report whether it has happened.
var errUnsettled = errors.New("cannot be settled")

// settleSet finds out what became of a set. A node that was there before it, and has not been written since, or has no version that the set could
// have given it, was not written by it.
func settleSet(a requester, full string, data []byte, version int32, seen int64) (Stat, error) {
	r, err := a.get(full)
	switch {
	case errors.Is(err, ErrNoNode):
		return Stat{}, errUnsettled
	case err != nil:
		return Stat{}, err
	case r.stat.Mzxid <= seen:
		return Stat{}, errNotApplied
	case version == AnyVersion && bytes.Equal(r.data, data):
		return setSameAgain(a, full, data, r.stat.Version)
	case version == AnyVersion || r.stat.Czxid > seen:
		return Stat{}, errUnsettled
	case r.stat.Version <= version || r.stat.Version == version+1 && !bytes.Equal(r.data, data):
		return Stat{}, errNotApplied
	}
	return Stat{}, errUnsettled
}

// setSameAgain writes over a node that holds the very data, so that it is certainly this call's, and its Stat too.
func setSameAgain(a requester, full string, data []byte, version int32) (Stat, error) {
	st, err := a.set(full, data, version)
	if errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNoNode) {
		err = errUnsettled
	}
	return st, err
}

// settleDelete finds out what became of a deletion. It did not delete a node that was there before it and still is. If no node was created or deleted in
// the directory since, it found none.
func settleDelete(a requester, full string, seen int64) error {
	st, err := a.exists(full)
	switch {
	case err == nil && st.Czxid <= seen:
		return errNotApplied
	case err == nil:
		return errUnsettled
	case !errors.Is(err, ErrNoNode):
		return err
	}
	return checkUndisturbed(a, full, seen)
}

// settleCreate finds out what became of a create. A node that was there before it is not its own, nor is a persistent one with other data that was not
// written since it was made.
func settleCreate(a requester, full string, data []byte, mode Mode, seen int64) error {
	r, err := a.get(full)
	switch {
	case errors.Is(err, ErrNoNode):
		return checkUndisturbed(a, full, seen)
	case err != nil:
		return err
	case r.stat.Czxid <= seen:
		return ErrNodeExists
	case mode == Ephemeral && r.stat.EphemeralOwner == a.t.sessionID():
		return nil
	case mode == Ephemeral || r.stat.EphemeralOwner != 0:
		return ErrNodeExists
	case r.stat.Version == 0 && !bytes.Equal(r.data, data):
		return ErrNodeExists
	}
	return errUnsettled
}

// checkUndisturbed returns errNotApplied if no node was created or deleted in a node's directory since, which is missing now.
func checkUndisturbed(a requester, full string, seen int64) error {
	dir, _ := Split(full)
	st, err := a.exists(dir)
	switch {
	case err == nil && st.Pzxid <= seen:
		return errNotApplied
	case err == nil, errors.Is(err, ErrNoNode):
		return errUnsettled
	}
	return err
}
