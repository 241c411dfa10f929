package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// maxRequest is what a server accepts in one request by default (jute.maxbuffer), less its head.
const maxRequest = 0xfffff - 1024

// Get reads a node's data. It repeats itself when the connection is lost.
func (s *Session) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	r, err := readChecked(ctx, s, "get", path, requester.get)
	return r.data, r.stat, err
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (s *Session) Exists(ctx context.Context, path string) (Stat, error) {
	return readChecked(ctx, s, "exists", path, requester.exists)
}

// Children lists the names below a node, in no order.
func (s *Session) Children(ctx context.Context, path string) ([]string, Stat, error) {
	r, err := readChecked(ctx, s, "list", path, requester.children)
	return r.names, r.stat, err
}

// Sync waits until this session's server has seen everything that was committed before the call.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := readChecked(ctx, s, "sync", path, func(a requester, full string) (struct{}, error) { return struct{}{}, a.sync(full) })
	return err
}

// MakeDirs creates a directory and those above it, as containers with the client's ParentACL, where
// they are missing. A server deletes an empty container some time later, so that a create below it
// may still find none: then call it again.
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

// makeOneDir makes one directory, unless it is there.
func (s *Session) makeOneDir(ctx context.Context, dir string) error {
	full, err := s.checkPath(dir, 0)
	if err != nil {
		return Wrap("create", dir, err)
	}
	_, err = repeatUntilKnown(ctx, s, func(a requester) (struct{}, error) {
		return struct{}{}, a.create(full, nil, Container, s.client.cfg.ParentACL)
	})
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return Wrap("create", dir, err)
}

// makeDirsAbove makes the directories above dir, the client's root among them.
func (s *Session) makeDirsAbove(ctx context.Context, dir string) error {
	if dir != "/" {
		above, _ := Split(dir)
		return s.MakeDirs(ctx, above)
	}
	above, _ := Split(s.client.ns.serverPath("/"))
	_, err := repeatUntilKnown(ctx, s, func(a requester) (struct{}, error) {
		return struct{}{}, makeDirs(a, above, s.client.cfg.ParentACL)
	})
	return Wrap("create", dir, err)
}

// makeDirs makes directories outside the client's root.
func makeDirs(a requester, full string, acl []ACL) error {
	err := a.create(full, nil, Container, acl)
	if errors.Is(err, ErrNoNode) {
		above, _ := Split(full)
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

// readChecked checks the path and repeats a read until it is answered.
func readChecked[T any](ctx context.Context, s *Session, op, path string, f func(a requester, full string) (T, error)) (T, error) {
	full, err := s.checkPath(path, 0)
	if err != nil {
		var zero T
		return zero, Wrap(op, path, err)
	}
	v, err := repeatUntilKnown(ctx, s, func(a requester) (T, error) { return f(a, full) })
	return v, Wrap(op, path, err)
}

// checkPath refuses bad paths and requests that no server would take, and returns the server's path.
func (s *Session) checkPath(path string, size int) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", err
	}
	full := s.client.ns.serverPath(path)
	if total := len(full) + size; total > maxRequest {
		return "", fmt.Errorf("%w: path and data of %d bytes, a server takes at most %d", ErrTooLarge, total, maxRequest)
	}
	return full, nil
}

// Node is what GetAll found of one node.
type Node struct {
	// Data is the node's.
	Data []byte
	// Stat is the node's.
	Stat Stat
	// Err is why there is neither, such as ErrNoNode.
	Err error
}

// GetAll reads many nodes in one request, in the order of the paths. Each is read for itself: what cannot be read
// has an error of its own, and others may change in between. The answer holds all data at once, up to 64 MiB, beyond which
// GetAll fails with ErrTooLarge. It repeats itself when the connection is lost.
func (s *Session) GetAll(ctx context.Context, paths ...string) ([]Node, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts, total := make([]wire.MultiPart, len(paths)), 0
	for i, path := range paths {
		full, err := s.checkPath(path, 0)
		if err != nil {
			return nil, Wrap("get", path, err)
		}
		total += len(full) + partOverhead
		parts[i] = wire.MultiPart{Op: wire.OpGetData, Body: &wire.WatchRequest{Path: full}}
	}
	if err := checkRequestSize(total); err != nil {
		return nil, Wrap("get", paths[0], err)
	}
	nodes, err := repeatUntilKnown(ctx, s, func(a requester) ([]Node, error) {
		nodes, err := ask(a, wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, readNodes).read()
		if err == nil && len(nodes) != len(parts) {
			err = fmt.Errorf("zookeeper: %d answers to %d reads", len(nodes), len(parts))
		}
		return nodes, err
	})
	return nodes, Wrap("get", paths[0], err)
}

// readNodes reads the results of reads.
func readNodes(d *wire.Decoder) (nodes []Node) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return nodes
		}
		var n Node
		if h.Op == wire.OpError {
			n.Err = codeError(wire.Code(d.Int()))
		} else {
			n.Data = bytes.Clone(d.Buffer())
			n.Stat = readingStat(d)
		}
		nodes = append(nodes, n)
	}
	return nodes
}
