package framework

import (
	"context"
	"errors"
)

// Get reads a node's data, on whatever session there is.
func (c *Client) Get(ctx context.Context, path string) (data []byte, st Stat, err error) {
	err = c.reading(ctx, func(s *Session) error { data, st, err = s.Get(ctx, path); return err })
	return data, st, Wrap("get", path, err)
}

// Exists reads a node's Stat; a missing node is ErrNoNode.
func (c *Client) Exists(ctx context.Context, path string) (st Stat, err error) {
	err = c.reading(ctx, func(s *Session) error { st, err = s.Exists(ctx, path); return err })
	return st, Wrap("exists", path, err)
}

// Children lists the names below a node, in no order.
func (c *Client) Children(ctx context.Context, path string) (names []string, st Stat, err error) {
	err = c.reading(ctx, func(s *Session) error { names, st, err = s.Children(ctx, path); return err })
	return names, st, Wrap("list", path, err)
}

// CreateIfMissing creates a node unless there is one; see Session.CreateIfMissing.
func (c *Client) CreateIfMissing(ctx context.Context, path string, data []byte, mode Mode) error {
	err := c.reading(ctx, func(s *Session) error { return s.CreateIfMissing(ctx, path, data, mode) })
	return Wrap("create", path, err)
}

// DeleteIfPresent deletes a node if there is one; see Session.DeleteIfPresent.
func (c *Client) DeleteIfPresent(ctx context.Context, path string) error {
	err := c.reading(ctx, func(s *Session) error { return s.DeleteIfPresent(ctx, path) })
	return Wrap("delete", path, err)
}

// Create creates a node; see Session.Create. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode Mode) error {
	return c.writing(ctx, "create", path, func(s *Session) error { return s.Create(ctx, path, data, mode) })
}

// MakeDirs makes a directory and those above it; see Session.MakeDirs.
func (c *Client) MakeDirs(ctx context.Context, dir string) error {
	err := c.reading(ctx, func(s *Session) error { return s.MakeDirs(ctx, dir) })
	return Wrap("create", dir, err)
}

// Set writes a node's data; see Session.Set. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (st Stat, err error) {
	err = c.writing(ctx, "set", path, func(s *Session) error { st, err = s.Set(ctx, path, data, version); return err })
	return st, err
}

// Delete deletes a node; see Session.Delete. A session lost meanwhile is ErrSessionLost, and
// ErrOutcomeUnknown if the request was sent.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	return c.writing(ctx, "delete", path, func(s *Session) error { return s.Delete(ctx, path, version) })
}

// Multi runs a transaction; see Session.Multi. It does not wait for a session when a condition of
// this process's own refuses it already.
func (c *Client) Multi(ctx context.Context, ops ...Op) (rs []OpResult, err error) {
	if err := conditions(ops); err != nil {
		return nil, err
	}
	s, err := c.Session(ctx)
	if err != nil {
		return nil, err
	}
	return s.Multi(ctx, ops...)
}

// reading runs f, which may be repeated, on session after session until one answers.
func (c *Client) reading(ctx context.Context, f func(*Session) error) error {
	for {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		err = f(s)
		if err != nil && ctx.Err() != nil {
			return Ended(ctx)
		}
		if !errors.Is(err, ErrSessionLost) {
			return err
		}
	}
}

// writing runs f on the present session.
func (c *Client) writing(ctx context.Context, op, path string, f func(*Session) error) error {
	s, err := c.Session(ctx)
	if err != nil {
		return Wrap(op, path, err)
	}
	return Wrap(op, path, f(s))
}
