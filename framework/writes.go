package framework

import (
	"bytes"
	"context"
	"errors"
)

// Set writes a node's data if its version is version, or AnyVersion.
//
// Guarantee: on success the node held the data with the version of the returned Stat; ErrBadVersion and other refusals mean that nothing was
// written. When the answer is lost, the node is read back on the next connection. If that cannot tell whose write it shows, or
// ctx or the session ends first, the error wraps ErrOutcomeUnknown. An unversioned Set that finds its own data there writes it once more, at that version.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	full, err := s.checkPath(path, len(data))
	if err != nil {
		return Stat{}, Wrap("set", path, err)
	}
	st, err := applyOnce(ctx, s, func(a requester) (Stat, error) { return a.set(full, data, version) },
		func(a requester, seen int64) (Stat, error) { return settleSet(a, full, data, version, seen) })
	return st, Wrap("set", path, err)
}

// Delete deletes a node if its version is version, or AnyVersion. A missing one is ErrNoNode.
//
// Guarantee: on success this call has deleted the node; a refusal means that it has deleted nothing. When the answer is lost, the node is
// looked for on the next connection. If it is gone since, or was made anew, or ctx or the session ends first, the error wraps ErrOutcomeUnknown.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	full, err := s.checkPath(path, 0)
	if err != nil {
		return Wrap("delete", path, err)
	}
	_, err = applyOnce(ctx, s, func(a requester) (struct{}, error) { return struct{}{}, a.delete(full, version) },
		func(a requester, seen int64) (struct{}, error) { return struct{}{}, settleDelete(a, full, seen) })
	return Wrap("delete", path, err)
}

// Create creates a node of a mode that is not sequential, with the client's ACL. Its directory must exist.
//
// Guarantee: on success this call has created the node; ErrNodeExists and other refusals mean that it has not. When the answer is lost, the
// node is read on the next connection. An ephemeral one that this session owns is success. If a persistent one was made since the
// request was sent, it may be this call's or somebody else's: the error wraps ErrOutcomeUnknown, as it does when ctx or the session ends first.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode Mode) error {
	full, err := s.checkCreate(path, data, mode)
	if err != nil {
		return Wrap("create", path, err)
	}
	err = s.countCreate(ctx, full, mode, func() error {
		_, err := applyOnce(ctx, s, func(a requester) (struct{}, error) { return struct{}{}, a.create(full, data, mode, s.client.cfg.ACL) },
			func(a requester, seen int64) (struct{}, error) {
				return struct{}{}, s.settleCreate(a, full, data, mode, seen)
			})
		return err
	})
	return Wrap("create", path, err)
}

// CreateIfMissing creates a node of a mode that is not sequential, unless there is one: whose it is, and what it holds, does not matter. When the answer is lost it is
// asked again. Its directory must exist.
func (s *Session) CreateIfMissing(ctx context.Context, path string, data []byte, mode Mode) error {
	full, err := s.checkCreate(path, data, mode)
	if err != nil {
		return Wrap("create", path, err)
	}
	err = s.countCreate(ctx, full, mode, func() error {
		_, err := repeatUntilKnown(ctx, s, func(a requester) (struct{}, error) { return struct{}{}, a.create(full, data, mode, s.client.cfg.ACL) })
		return err
	})
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return Wrap("create", path, err)
}

// DeleteIfPresent deletes a node, whatever its version, if there is one. When the answer is lost it is asked again, which may delete a node that was made anew
// meanwhile.
func (s *Session) DeleteIfPresent(ctx context.Context, path string) error {
	full, err := s.checkPath(path, 0)
	if err != nil {
		return Wrap("delete", path, err)
	}
	_, err = repeatUntilKnown(ctx, s, func(a requester) (struct{}, error) { return struct{}{}, a.delete(full, AnyVersion) })
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return Wrap("delete", path, err)
}

// countCreate counts the node that a create makes.
func (s *Session) countCreate(ctx context.Context, full string, mode Mode, create func() error) error {
	reserved := ownedSize(full, mode)
	if err := s.owned.reserveFor(ctx, reserved, 0); err != nil {
		return err
	}
	err := create()
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		s.owned.settleReservation(reserved, 0, full)
	} else {
		s.owned.settleReservation(reserved, 0)
	}
	return err
}

// checkCreate is check for a create.
func (s *Session) checkCreate(path string, data []byte, mode Mode) (full string, err error) {
	if mode == EphemeralSequential || mode == PersistentSequential {
		return "", errors.New("a sequential node needs CreateProtected")
	}
	return s.checkPath(path, len(data))
}

// errNotApplied says of a write without an answer that it has not happened and will not.
var errNotApplied = errors.New("the write was not applied")

// applyOnce carries a write out, once at most. A try that no server has seen is repeated. When a try was sent and the connection was lost, settle reads
// on the next connection, behind a sync, what became of it. It returns errNotApplied if it has not happened: then it is tried
// again. It knows that whatever has a transaction up to seen was there before the try.
func applyOnce[T any](ctx context.Context, s *Session, try func(a requester) (T, error), settle func(a requester, seen int64) (T, error)) (T, error) {
	for {
		var seen int64
		v, err := repeatUntilSent(ctx, s, func(a requester) (T, error) {
			seen = s.mon.Seen()
			return try(a)
		})
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrSuspended) {
			return v, err
		}
		lost := err
		v, err = repeatUntilKnown(ctx, s, func(a requester) (T, error) {
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

// settleDelete finds out what became of a deletion. It did not delete a node that was there before it and still is. If nothing was created or deleted in
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

// settleCreate finds out what became of a create. A node that was there before it is not its own, nor is a persistent one with other data that was never
// written since it was made.
func (s *Session) settleCreate(a requester, full string, data []byte, mode Mode, seen int64) error {
	r, err := a.get(full)
	switch {
	case errors.Is(err, ErrNoNode):
		return checkUndisturbed(a, full, seen)
	case err != nil:
		return err
	case r.stat.Czxid <= seen:
		return ErrNodeExists
	case mode == Ephemeral && r.stat.EphemeralOwner == s.ID():
		return nil
	case mode == Ephemeral || r.stat.EphemeralOwner != 0:
		return ErrNodeExists
	case r.stat.Version == 0 && !bytes.Equal(r.data, data):
		return ErrNodeExists
	}
	return errUnsettled
}

// checkUndisturbed returns errNotApplied if nothing was created or deleted in a node's directory since, which is missing now.
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
