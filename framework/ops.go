package framework

import (
	"context"
	"errors"
	"fmt"
)

// maxRequest is what a server accepts in one request by default (jute.maxbuffer), less its head.
const maxRequest = 0xfffff - 1024

// Get reads a node's data. It repeats itself when the connection is lost.
func (s *Session) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	r, err := look(ctx, s, "get", path, asker.get)
	return r.data, r.stat, err
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (s *Session) Exists(ctx context.Context, path string) (Stat, error) {
	return look(ctx, s, "exists", path, asker.exists)
}

// Children lists the names below a node, in no order.
func (s *Session) Children(ctx context.Context, path string) ([]string, Stat, error) {
	r, err := look(ctx, s, "list", path, asker.children)
	return r.names, r.stat, err
}

// Sync waits until this session's server has seen everything that was committed before the call.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := look(ctx, s, "sync", path, func(a asker, full string) (struct{}, error) { return struct{}{}, a.sync(full) })
	return err
}

// MakeDirs creates a directory and those above it, as containers with the client's ParentACL, where
// they are missing. A server deletes an empty container some time later, so that a create below it
// may still find none: then call it again.
func (s *Session) MakeDirs(ctx context.Context, dir string) error {
	for {
		err := s.makeDir(ctx, dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNoNode) {
			return err
		}
		if err := s.makeAbove(ctx, dir); err != nil {
			return err
		}
	}
}

// makeDir makes one directory, unless it is there.
func (s *Session) makeDir(ctx context.Context, dir string) error {
	full, err := s.check(dir, 0)
	if err != nil {
		return Wrap("create", dir, err)
	}
	_, err = again(ctx, s, func(a asker) (struct{}, error) {
		return struct{}{}, a.create(full, nil, Container, s.client.cfg.ParentACL)
	})
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return Wrap("create", dir, err)
}

// makeAbove makes the directories above dir, the client's root among them.
func (s *Session) makeAbove(ctx context.Context, dir string) error {
	if dir != "/" {
		above, _ := Split(dir)
		return s.MakeDirs(ctx, above)
	}
	above, _ := Split(s.client.ns.full("/"))
	_, err := again(ctx, s, func(a asker) (struct{}, error) {
		return struct{}{}, makeDirs(a, above, s.client.cfg.ParentACL)
	})
	return Wrap("create", dir, err)
}

// makeDirs makes directories outside the client's root.
func makeDirs(a asker, full string, acl []ACL) error {
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

// look checks the path and repeats a read until it is answered.
func look[T any](ctx context.Context, s *Session, op, path string, f func(a asker, full string) (T, error)) (T, error) {
	full, err := s.check(path, 0)
	if err != nil {
		var zero T
		return zero, Wrap(op, path, err)
	}
	v, err := again(ctx, s, func(a asker) (T, error) { return f(a, full) })
	return v, Wrap(op, path, err)
}

// check refuses bad paths and requests that no server would take, and returns the server's path.
func (s *Session) check(path string, size int) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", err
	}
	full := s.client.ns.full(path)
	if total := len(full) + size; total > maxRequest {
		return "", fmt.Errorf("%w: path and data of %d bytes, a server takes at most %d", ErrTooLarge, total, maxRequest)
	}
	return full, nil
}
