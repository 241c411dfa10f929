package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Get reads a node's data and Stat. A missing node is ErrNoNode.
//
// The session's server answers reads, and may lag behind the other servers: call Sync before to see
// every earlier write. When the connection is lost, Get reads again on the next one, and so do the
// other reads.
func (s *Session) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	r, err := readChecked(ctx, s, "get", path, requester.get)
	return r.data, r.stat, err
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (s *Session) Exists(ctx context.Context, path string) (Stat, error) {
	return readChecked(ctx, s, "exists", path, requester.exists)
}

// Children lists the names below a node, in no order. A missing node is ErrNoNode.
func (s *Session) Children(ctx context.Context, path string) ([]string, Stat, error) {
	r, err := readChecked(ctx, s, "list", path, requester.children)
	return r.names, r.stat, err
}

// ACL reads who may do what with a node. It takes PermRead or PermAdmin on the node: without them
// the error is ErrNoAuth. A missing node is ErrNoNode. To clients without PermAdmin, servers show
// the ID of a digest as "user:x", without the hash of the password.
func (s *Session) ACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	r, err := readChecked(ctx, s, "read ACL of", path, requester.acl)
	return r.acl, r.stat, err
}

// SetACL gives a node another ACL, whichever it has, for example when a service gets other
// credentials. The servers check it from then on; nodes below keep theirs. When the answer is lost,
// SetACL repeats the request, and may so replace what another client has set meanwhile. The error
// wraps ErrInvalid without any entry or with one that the servers refuse, ErrNoNode, or ErrNoAuth
// if this client has no PermAdmin.
//
// A client that may not read a node of its recipe any more fails with ErrNoAuth: leave yourself in
// the ACL until the last program has the new credentials.
func (s *Session) SetACL(ctx context.Context, path string, acl []ACL) error {
	if len(acl) == 0 {
		err := fmt.Errorf("%w: the ACL is empty: nobody could use the node", ErrInvalid)
		return failure.Wrap("set ACL of", path, err)
	}
	_, err := readChecked(ctx, s, "set ACL of", path,
		func(a requester, full string) (struct{}, error) { return struct{}{}, a.setACL(full, acl) })
	return err
}

// Sync waits until this session's server has applied everything that was committed before the call.
// The path may be any, also that of a missing node.
//
// It is a transaction without effect, which costs what a write costs. ZooKeeper's own sync does not
// keep this promise (ZOOKEEPER-1675): the leader answers it from its own state, while a follower
// may have acknowledged a later transaction. A leader that has lost its quorum and does not know it
// yet answers, too, also for the followers that it still has.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := readChecked(ctx, s, "sync", path,
		func(a requester, full string) (struct{}, error) { return struct{}{}, a.sync(full) })
	return err
}

// zkSync sends ZooKeeper's own sync: see requester.zkSync.
func (s *Session) zkSync(ctx context.Context, path string) error {
	_, err := readChecked(ctx, s, "sync", path,
		func(a requester, full string) (struct{}, error) { return struct{}{}, a.zkSync(full) })
	return err
}

// WatchData reads a node's data and watches it for a change or its deletion. Without a node there
// is no watch: the error is ErrNoNode.
func (s *Session) WatchData(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	r, w, err := s.readAndWatch(ctx, watchData, path, false)
	return r.data, r.stat, w, err
}

// WatchExists reads a node's Stat and watches it for its creation, a change or its deletion. For a
// missing node it returns ErrNoNode and a watch that waits for the node's creation.
func (s *Session) WatchExists(ctx context.Context, path string) (Stat, *Watch, error) {
	r, w, err := s.readAndWatch(ctx, watchExists, path, false)
	return r.stat, w, err
}

// WatchChildren lists the names below a node and watches for a change of that list or the node's
// deletion. Without a node there is no watch: the error is ErrNoNode.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	r, w, err := s.readAndWatch(ctx, watchChildren, path, false)
	return r.names, r.stat, w, err
}

// readAndWatch joins the path's shared watch and reads the node. It asks the server for a watch if
// none is armed. The server's watch of a transient waiter is removed with the last waiter.
func (s *Session) readAndWatch(ctx context.Context, kind watchKind, path string,
	transient bool) (readResult, *Watch, error) {
	full, err := s.caller.checkPath(path, 0)
	if err != nil {
		return readResult{}, nil, failure.Wrap("watch", path, err)
	}
	w := s.watches.addWaiter(watchKey{kind, full}, transient)
	r, err := repeatUntilKnown(ctx, s.caller, func(a requester) (readResult, error) { return w.entry.readNode(a) })
	if w.entry.setNoWatch(err) {
		w.Stop()
		w = nil
	}
	return r, w, failure.Wrap("watch", path, err)
}

// readChecked checks the path and repeats a read, or a write that is safe to repeat, until it is
// answered.
func readChecked[T any](ctx context.Context, s *Session, op, path string,
	f func(a requester, full string) (T, error)) (T, error) {
	full, err := s.caller.checkPath(path, 0)
	if err != nil {
		var zero T
		return zero, failure.Wrap(op, path, err)
	}
	v, err := repeatUntilKnown(ctx, s.caller, func(a requester) (T, error) { return f(a, full) })
	return v, failure.Wrap(op, path, err)
}

// Set writes a node's data if its version is version, or AnyVersion.
//
// Guarantee: on success the node held the data with the version of the returned Stat; ErrBadVersion
// and other refusals mean that the data was not written. When the answer is lost, Set reads the
// node on the next connection. If that does not show whether this write has happened, or ctx or the
// session ends first, the error wraps ErrOutcomeUnknown. A Set with AnyVersion that finds its own
// data writes the data once more, with the version that it found.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	full, err := s.caller.checkPath(path, len(data))
	if err != nil {
		return Stat{}, failure.Wrap("set", path, err)
	}
	stat, err := applyOnce(ctx, s.caller, func(a requester) (Stat, error) { return a.set(full, data, version) },
		func(a requester, seen int64) (Stat, error) { return outcomeOfSet(a, full, data, version, seen) })
	return stat, failure.Wrap("set", path, err)
}

// Delete deletes a node if its version is version, or AnyVersion. A missing one is ErrNoNode.
//
// Guarantee: on success this call has deleted the node; a refusal means that it has not. When the
// answer is lost, Delete reads the node on the next connection. If the node is gone or was created
// again, or ctx or the session ends first, the error wraps ErrOutcomeUnknown.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	full, err := s.caller.checkPath(path, 0)
	if err != nil {
		return failure.Wrap("delete", path, err)
	}
	_, err = applyOnce(ctx, s.caller,
		func(a requester) (struct{}, error) { return struct{}{}, a.delete(full, version) },
		func(a requester, seen int64) (struct{}, error) { return struct{}{}, outcomeOfDelete(a, full, seen) })
	return failure.Wrap("delete", path, err)
}

// Create creates a node of a mode that is not sequential, with the client's ACL. Its directory must
// exist.
//
// Guarantee: on success this call has created the node; ErrNodeExists and other refusals mean that
// it has not. When the answer is lost, Create reads the node on the next connection. An ephemeral
// node of this session is success, unless it shows other data than this call's. So the calls of one
// session for one ephemeral node wait for each other; do not create the node in a transaction of
// this session meanwhile. A persistent node that was created after the request was sent may be this
// call's or another client's: the error wraps ErrOutcomeUnknown, as it does when ctx or the session
// ends first.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode Mode) error {
	full, err := s.checkCreate(path, data, mode)
	if err != nil {
		return failure.Wrap("create", path, err)
	}
	if mode == Ephemeral {
		unlock, err := s.lockCreate(ctx, full)
		if err != nil {
			return failure.Wrap("create", path, err)
		}
		defer unlock()
	}
	err = s.countCreate(ctx, full, mode, func() error {
		_, err := applyOnce(ctx, s.caller,
			func(a requester) (struct{}, error) { return struct{}{}, a.create(full, data, mode, s.setup.cfg.ACL) },
			func(a requester, seen int64) (struct{}, error) {
				return struct{}{}, outcomeOfCreate(a, full, data, mode, seen)
			})
		return err
	})
	return failure.Wrap("create", path, err)
}

// createKey finds what the creates of one ephemeral node share.
type createKey struct{ full string }

// lockCreate lets one call of Create at a time create an ephemeral node of this session at a path,
// so that a lost reply is not mistaken for the node of another call. The caller calls unlock when
// the outcome is known, or will not be.
func (s *Session) lockCreate(ctx context.Context, full string) (unlock func(), err error) {
	key := createKey{full}
	locked := s.shared.share(key, func() any { return make(chan struct{}, 1) }).(chan struct{})
	select {
	case locked <- struct{}{}:
		return func() {
			<-locked
			s.shared.unshare(key)
		}, nil
	case <-ctx.Done():
		s.shared.unshare(key)
		return nil, s.caller.callEnded(ctx)
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// CreateIfMissing creates a node of a mode that is not sequential, unless it exists, with any owner
// and data. When the answer is lost, CreateIfMissing repeats the request. The node's directory must
// exist.
func (s *Session) CreateIfMissing(ctx context.Context, path string, data []byte, mode Mode) error {
	full, err := s.checkCreate(path, data, mode)
	if err != nil {
		return failure.Wrap("create", path, err)
	}
	err = s.countCreate(ctx, full, mode, func() error {
		_, err := repeatUntilKnown(ctx, s.caller,
			func(a requester) (struct{}, error) { return struct{}{}, a.create(full, data, mode, s.setup.cfg.ACL) })
		return err
	})
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return failure.Wrap("create", path, err)
}

// DeleteIfPresent deletes a node of any version if it exists. When the answer is lost,
// DeleteIfPresent repeats the request, and may so delete a node that was created again meanwhile.
func (s *Session) DeleteIfPresent(ctx context.Context, path string) error {
	full, err := s.caller.checkPath(path, 0)
	if err != nil {
		return failure.Wrap("delete", path, err)
	}
	_, err = repeatUntilKnown(ctx, s.caller,
		func(a requester) (struct{}, error) { return struct{}{}, a.delete(full, AnyVersion) })
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return failure.Wrap("delete", path, err)
}

// countCreate runs a create and counts its node among those that the session owns.
func (s *Session) countCreate(ctx context.Context, full string, mode Mode, create func() error) error {
	reserved := ownedSize(full, mode)
	if err := s.owned.reserveFor(ctx, reserved, 0); err != nil {
		return err
	}
	err := create()
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		s.owned.endReservation(reserved, 0, full)
	} else {
		s.owned.endReservation(reserved, 0)
	}
	return err
}

// checkCreate refuses bad paths, modes and sizes of a create, and returns the server's path.
func (s *Session) checkCreate(path string, data []byte, mode Mode) (full string, err error) {
	if mode == EphemeralSequential || mode == PersistentSequential {
		return "", errors.New("Create makes no sequential node, since its name would be unknown if the answer is " +
			"lost: use Multi with CreateOp")
	}
	return s.caller.checkPath(path, len(data))
}

// MakeDirs creates a directory and those above it if they are missing, as containers with the
// client's ParentACL. A server deletes an empty container some time later. If a later create below
// it fails with ErrNoNode, call MakeDirs again.
func (s *Session) MakeDirs(ctx context.Context, dir string) error {
	for {
		err := s.makeOneDir(ctx, dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNoNode) {
			return err
		}
		if err := s.makeDirsAbove(ctx, dir); err != nil {
			return err
		}
	}
}

// makeOneDir makes one directory, unless it exists.
func (s *Session) makeOneDir(ctx context.Context, dir string) error {
	full, err := s.caller.checkPath(dir, 0)
	if err != nil {
		return failure.Wrap("create", dir, err)
	}
	_, err = repeatUntilKnown(ctx, s.caller, func(a requester) (struct{}, error) {
		return struct{}{}, a.create(full, nil, Container, s.setup.cfg.ParentACL)
	})
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return failure.Wrap("create", dir, err)
}

// makeDirsAbove makes the directories above dir, the client's root among them.
func (s *Session) makeDirsAbove(ctx context.Context, dir string) error {
	if dir != "/" {
		above, _ := znode.Split(dir)
		return s.MakeDirs(ctx, above)
	}
	above, _ := znode.Split(s.caller.ns.serverPath("/"))
	_, err := repeatUntilKnown(ctx, s.caller, func(a requester) (struct{}, error) {
		return struct{}{}, makeDirs(a, above, s.setup.cfg.ParentACL)
	})
	return failure.Wrap("create", dir, err)
}

// makeDirs makes directories outside the client's root.
func makeDirs(a requester, full string, acl []ACL) error {
	err := a.create(full, nil, Container, acl)
	if errors.Is(err, ErrNoNode) {
		above, _ := znode.Split(full)
		if err := makeDirs(a, above, acl); err != nil {
			return err
		}
		return makeDirs(a, full, acl)
	}
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return err
}

// Multi runs a transaction: all operations happen, or none. It waits for the connection and sends
// the transaction once. When the connection is lost, or ctx or the session ends, before the answer,
// the error wraps ErrOutcomeUnknown; after a lost connection it wraps ErrSuspended too. A refusal
// is a *TxError.
func (s *Session) Multi(ctx context.Context, ops ...Op) ([]OpResult, error) {
	if err := s.caller.checkOps(ops); err != nil {
		return nil, err
	}
	created, deleted := s.owned.sizesOf(ops)
	if err := s.owned.reserveFor(ctx, created, deleted); err != nil {
		return nil, failure.Wrap("transaction", primitives.Path(ops[0]), err)
	}
	parts := s.caller.wireParts(ops)
	rs, err := repeatUntilSent(ctx, s.caller, func(a requester) ([]OpResult, error) {
		if err := checkConditions(ops); err != nil {
			return nil, err
		}
		return a.multi(parts).asWrite()
	})
	switch {
	case err == nil:
		s.owned.countApplied(created, ops, rs)
	case errors.Is(err, ErrOutcomeUnknown):
		s.owned.countUnknown(created, ops)
	default:
		s.owned.endReservation(created, 0)
	}
	var refused *TxError
	if errors.As(err, &refused) {
		return nil, refused
	}
	return s.opResults(ops, rs, err)
}

// opResults returns a transaction's results with the client's paths, and a *TxError if an operation
// was refused.
func (s *Session) opResults(ops []Op, rs []OpResult, err error) ([]OpResult, error) {
	if tx := firstRefused(ops, rs); tx != nil {
		return rs, tx
	}
	for i := range rs {
		if rs[i].Path != "" {
			rs[i].Path = s.caller.ns.clientPath(rs[i].Path)
		}
	}
	return rs, failure.Wrap("transaction", primitives.Path(ops[0]), err)
}
