package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// idleClients is S: what -c clients cost the servers, idle or waiting in the line of one lock. As
// many idle sessions of go-zookeeper (bare sessions) are measured before and after each group of
// clients, because servers that have run for longer need less time for the same requests. Each
// group is measured for -t, after a pause of 2 session timeouts in which its clients become
// dormant. Then each of -n idle clients acquires a lock of its own twice. The first acquire wakes
// the dormant session.
func idleClients(s settings) error {
	n := orDefault(s.c, 1000)
	cpu := findServerProcesses(s.servers)
	groups := []struct {
		peer, doing string
		start       func(settings, int) (*idleGroup, error)
	}{
		{"go-zookeeper", "idle", startBareSessions},
		{"lockstep", "idle", startIdleClients},
		{"go-zookeeper", "idle", startBareSessions},
		{"lockstep", "waiting", startWaiters},
		{"go-zookeeper", "idle", startBareSessions},
	}
	for _, g := range groups {
		if err := measureGroup(s, cpu, n, g.peer, g.doing, g.start); err != nil {
			return fmt.Errorf("%d clients of %s, %s: %w", n, g.peer, g.doing, err)
		}
	}
	return nil
}

func measureGroup(s settings, cpu serverProcesses, n int, peer, doing string,
	start func(settings, int) (*idleGroup, error)) error {
	g, err := start(s, n)
	if err != nil {
		return err
	}
	defer g.close()
	time.Sleep(2 * s.session)
	writesBefore, err := newestZxid(s)
	if err != nil {
		return err
	}
	requestsBefore, cpuBefore, begin := s.traffic(), cpu.used(), time.Now()
	time.Sleep(s.span)
	took, cpuAfter, requestsAfter := time.Since(begin), cpu.used(), s.traffic().since(requestsBefore)
	writesAfter, err := newestZxid(s)
	if err != nil {
		return err
	}
	r := newResult(s, peer, map[string]any{"c": n, "doing": doing}, n, took, nil).requests(requestsAfter)
	r.OpsPerS = nil
	r.Writes = ptr(float64(writesAfter-writesBefore) / took.Seconds() / float64(n))
	if len(cpu) > 0 {
		r.ServerCPU = ptr(ms(cpuAfter-cpuBefore) / took.Seconds())
	}
	if err := r.print(); err != nil || g.clients == nil || doing != "idle" {
		return err
	}
	return measureWaking(s, g.clients[:min(n, orDefault(s.n, 100))])
}

// measureWaking measures how long the first and the second acquire of an idle client take.
func measureWaking(s settings, clients []*framework.Client) error {
	var first, second []time.Duration
	for i, c := range clients {
		m := locks.NewMutex(c, fmt.Sprintf("%s/s-own-%d", root, i), s.options()...)
		for _, laps := range []*[]time.Duration{&first, &second} {
			begin := time.Now()
			lease, err := m.Lock(context.Background())
			if err != nil {
				return err
			}
			*laps = append(*laps, time.Since(begin))
			if err := lease.Release(context.Background()); err != nil {
				return err
			}
		}
	}
	for acquire, laps := range map[string][]time.Duration{"first": first, "second": second} {
		r := newResult(s, "lockstep", map[string]any{"acquire": acquire}, len(laps), totalOf(laps), laps)
		if err := r.print(); err != nil {
			return err
		}
	}
	return nil
}

func totalOf(laps []time.Duration) (total time.Duration) {
	for _, d := range laps {
		total += d
	}
	return total
}

// idleGroup is a group of clients that are idle or wait.
type idleGroup struct {
	clients []*framework.Client // nil for sessions of go-zookeeper
	close   func()
}

// startBareSessions opens n sessions of go-zookeeper and waits until each has its session.
func startBareSessions(s settings, n int) (*idleGroup, error) {
	var conns []*zk.Conn
	closeConns := func() {
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(c.Close)
		}
		wg.Wait()
	}
	for range n {
		c, events, err := zk.Connect(s.servers, s.session, zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			closeConns()
			return nil, err
		}
		conns = append(conns, c)
		if err := waitForSession(s, events); err != nil {
			closeConns()
			return nil, err
		}
	}
	return &idleGroup{close: closeConns}, nil
}

// waitForSession waits until a connection of go-zookeeper has its session. go-zookeeper itself
// would try for ever, and says nothing about the servers.
func waitForSession(s settings, events <-chan zk.Event) error {
	timeout := time.NewTimer(connectPatience)
	defer timeout.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
		case <-timeout.C:
			return fmt.Errorf("no session within %v: none of the servers %s answers; start them, or name "+
				"others with -zk", connectPatience, strings.Join(s.servers, ", "))
		}
	}
}

func startIdleClients(s settings, n int) (*idleGroup, error) {
	clients, err := openAll(s, n)
	if err != nil {
		return nil, err
	}
	return &idleGroup{clients: clients, close: func() { closeAll(clients...) }}, nil
}

// startWaiters starts n clients that wait for one lock, which another client holds.
func startWaiters(s settings, n int) (*idleGroup, error) {
	clients, err := openAll(s, n+1)
	if err != nil {
		return nil, err
	}
	holder, waiters := clients[n], clients[:n]
	m := locks.NewMutex(holder, root+"/s-line", s.options()...)
	lease, err := m.Lock(context.Background())
	if err != nil {
		closeAll(clients...)
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, c := range waiters {
		wg.Go(func() { _, _ = locks.NewMutex(c, root+"/s-line", s.options()...).Lock(ctx) }) // it is given up
	}
	g := &idleGroup{clients: slices.Clone(waiters), close: func() {
		cancel()
		wg.Wait()
		closeAll(clients...)
	}}
	if err := awaitChildren(lease.Context(), holder, m.Path(), n+1); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}
