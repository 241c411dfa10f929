package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// result is what the leader reports.
type result struct {
	Sum    int64  `json:"sum"`
	Leader string `json:"leader"`
	Token  int64  `json:"token"`
}

// lead plans each phase once the one before is over, and reports. A new leader goes on where the last one died.
func (w *worker) lead(ctx context.Context, term *election.Term) error {
	w.tell(event{Kind: leading, Token: term.Token()})
	err := w.carryOut(ctx, term)
	if err == nil {
		return election.ErrStop
	}
	if ctx.Err() == nil {
		w.tell(event{Kind: troubled, Reason: err.Error()})
	}
	return err
}

func (w *worker) carryOut(ctx context.Context, term *election.Term) error {
	for p := range phases {
		over := w.over(p)
		missing, err := over.Remaining(ctx)
		if err != nil {
			return err
		}
		if missing == 0 {
			continue
		}
		if err := w.plan(ctx, p); err != nil {
			return err
		}
		if err := over.Wait(ctx); err != nil {
			return err
		}
	}
	return w.report(ctx, term)
}

// plan puts the items of a phase that are not in the queue, and have not been, all on their way at once.
func (w *worker) plan(ctx context.Context, phase int) error {
	values, err := w.values(ctx, phase)
	if err != nil {
		return err
	}
	puts := make([]*queue.Pending, len(values))
	for n, value := range values {
		i := item{Phase: phase, Index: n, Value: value}
		puts[n] = w.items.PutAsync(ctx, i, queue.WithID(i.id()))
	}
	count := 0
	for _, put := range puts {
		err := put.Wait(ctx)
		if errors.Is(err, queue.ErrDuplicate) {
			continue // a leader before this one has put it
		}
		if err != nil {
			return err
		}
		count++
	}
	w.tell(event{Kind: planned, Phase: phase, Count: count})
	return nil
}

// values are what a phase begins with.
func (w *worker) values(ctx context.Context, phase int) ([]int64, error) {
	values := make([]int64, w.Items)
	for n := range values {
		values[n] = int64(n) + 1
		if phase == 0 {
			continue
		}
		path := item{Phase: phase - 1, Index: n}.result()
		data, _, err := w.client.Get(ctx, path)
		if err != nil {
			return nil, err
		}
		if values[n], err = strconv.ParseInt(string(data), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return values, nil
}

// report stores the sum, under the term's guard: a leader that is none any more reports nothing.
func (w *worker) report(ctx context.Context, term *election.Term) error {
	values, err := w.values(ctx, len(phases))
	if err != nil {
		return err
	}
	r := result{Leader: term.ID(), Token: term.Token()}
	for _, v := range values {
		r.Sum += v
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.client.Multi(ctx, term.Guard(), framework.CreateOp(reportPath, data, framework.Persistent))
	if err != nil && !errors.Is(err, framework.ErrNodeExists) { // one is there if a leader died right after its report
		return err
	}
	return barrier.NewLatch(w.client, reportedPath, 1).CountDown(ctx, "leader")
}
