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

// timed runs f n times, and a third of that before.
func timed(s settings, n int, f func() error) (laps []time.Duration, took time.Duration, err error) {
	for range n / 3 {
		if err := f(); err != nil {
			return nil, 0, err
		}
	}
	laps = make([]time.Duration, n)
	start := time.Now()
	for i := range laps {
		t := time.Now()
		if err := f(); err != nil {
			return nil, 0, err
		}
		laps[i] = time.Since(t)
	}
	return laps, time.Since(start), nil
}

// uncontended is W1.
func uncontended(s settings) error {
	c, err := open(s)
	if err != nil {
		return err
	}
	ctx := context.Background()
	defer closeAll(c)
	m := locks.NewMutex(c, root+"/w1")
	lap := func() error {
		lease, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	n := or(s.n, 3000)
	for range n / 3 { // the servers' JIT
		if err := lap(); err != nil {
			return err
		}
	}
	before, ok := requests(s)
	laps, took, err := timed(s, n, lap)
	if err != nil {
		return err
	}
	after, _ := requests(s)
	r := newResult(s, "lockstep", nil, n, took, laps)
	r.requests(before, before+(after-before)*n/(n+n/3), ok)
	return r.print()
}

// floor is W0: what the requests alone cost through go-zookeeper.
func floor(s settings) error {
	conn, events, err := zk.Connect(s.servers, s.session, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
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
		n := or(s.n, 3000)
		laps, took, err := timed(s, n, op.run)
		if err != nil {
			return err
		}
		if err := newResult(s, "go-zookeeper raw", map[string]any{"op": op.name}, n, took, laps).print(); err != nil {
			return err
		}
	}
	return nil
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
