package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// joins is J: -c clients, whose sessions are open already, join the line of one lock at once,
// behind a holder. It reports how long it takes until all are in line, the requests and the bytes
// of answers for each of them, also in -t after that, and whether the holder has kept its lease
// until then.
func joins(s settings) error {
	n := orDefault(s.c, 1000)
	if s.sent == nil {
		s.sent = newRequestCounter()
	}
	clients, err := openAll(s, n+1)
	if err != nil {
		return err
	}
	defer closeAll(clients...)
	holder := clients[n]
	lease, err := locks.NewMutex(holder, root+"/j-line", s.options()...).Lock(context.Background())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var joining sync.WaitGroup
	defer joining.Wait()
	defer cancel()
	requestsBefore, bytesBefore, begin := s.traffic(), s.sent.answered.Load(), time.Now()
	for _, c := range clients[:n] {
		joining.Go(func() { _, _ = locks.NewMutex(c, root+"/j-line", s.options()...).Lock(ctx) }) // it is given up
	}
	if err := awaitChildren(lease.Context(), holder, root+"/j-line", n+1); err != nil {
		return fmt.Errorf("%d sessions join: %w", n, err)
	}
	took := time.Since(begin)
	time.Sleep(s.span) // lists may be under way, and heartbeats behind them
	r := newResult(s, "lockstep", map[string]any{"c": n}, n, took, nil).requests(s.traffic().since(requestsBefore))
	r.OpsPerS, r.AnswerBytes = nil, ptr(int(s.sent.answered.Load()-bytesBefore)/n)
	r.Held = ptr(lease.Err() == nil)
	return r.print()
}
