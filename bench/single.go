package main

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/locks"
)

const root = "/lockstep-bench"

// series measures n cycles of f, after a third as many to warm up, and prints the result.
func series(s settings, peer string, params map[string]any, n int, f func() error) error {
	for range n / 3 {
		if err := f(); err != nil {
			return err
		}
	}
	laps := make([]time.Duration, n)
	before, start := s.traffic(), time.Now()
	for i := range laps {
		t := time.Now()
		if err := f(); err != nil {
			return err
		}
		laps[i] = time.Since(t)
	}
	took := time.Since(start)
	return newResult(s, peer, params, n, took, laps).requests(s.traffic().since(before)).print()
}

// uncontended is W1.
func uncontended(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer closeAll(c)
	m := locks.NewMutex(c, root+"/w1", s.options()...)
	return series(s, "lockstep", s.params(map[string]any{}), orDefault(s.n, 3000), func() error {
		lease, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	})
}

// rawRequests is W0: the cost of the bare requests through go-zookeeper. -trace does not count
// them.
func rawRequests(s settings) error {
	conn, events, err := zk.Connect(s.servers, s.session, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := waitForSession(s, events); err != nil {
		return err
	}
	acl, data, path := zk.WorldACL(zk.PermAll), make([]byte, 100), root+"-floor"
	if _, err := conn.Create(path, data, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	for _, op := range []struct {
		name string
		run  func() error
	}{
		{"create+delete", func() error {
			p, err := conn.Create(path+"/n-", nil, zk.FlagEphemeral|zk.FlagSequence, acl)
			if err != nil {
				return err
			}
			return conn.Delete(p, -1)
		}},
		{"setData", func() error { _, err := conn.Set(path, data, -1); return err }},
		{"getData", func() error { _, _, err := conn.Get(path); return err }},
		{"getChildren", func() error { _, _, err := conn.Children(path); return err }},
	} {
		if err := series(s, "go-zookeeper raw", map[string]any{"op": op.name}, orDefault(s.n, 3000),
			op.run); err != nil {
			return err
		}
	}
	return nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
