package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// result is the leader's report of a round.
type result struct {
	Sum    int64  `json:"sum"` // of this round and all before it
	Rounds int    `json:"rounds"`
	Leader string `json:"leader"`
	Token  int64  `json:"token"`
	Last   bool   `json:"last"` // no other round follows
}

// lead plans one phase after the other, and reports. A new leader continues where the last one
// stopped.
func (r *round) lead(ctx context.Context, term *election.Term) error {
	r.emit(event{Kind: leading, Round: r.number, Token: term.Token()})
	err := r.planAndReport(ctx, term)
	if err == nil {
		return election.ErrStop
	}
	if ctx.Err() == nil {
		r.emit(event{Kind: leadFailed, Reason: err.Error()})
	}
	return err
}

func (r *round) planAndReport(ctx context.Context, term *election.Term) error {
	if err := r.removeOldRounds(ctx); err != nil {
		return err
	}
	for p := range phases {
		over := r.over(r.number, p)
		missing, err := over.Missing(ctx)
		if err != nil {
			return err
		}
		if missing == 0 {
			continue
		}
		if err := r.plan(ctx, p); err != nil {
			return err
		}
		if err := over.Wait(ctx); err != nil {
			return err
		}
	}
	return r.report(ctx, term)
}

// plan puts the items of a phase in one batch, without those that an earlier leader has put.
func (r *round) plan(ctx context.Context, phase int) error {
	values, err := r.values(ctx, phase)
	if err != nil {
		return err
	}
	puts := make([]*queue.Pending, len(values))
	for n, value := range values {
		i := item{Round: r.number, Phase: phase, Index: n, Value: value}
		puts[n] = r.items.PutAsync(ctx, i, queue.WithID(i.id()))
	}
	count := 0
	for _, put := range puts {
		err := put.Wait(ctx)
		if errors.Is(err, queue.ErrDuplicate) {
			continue // an earlier leader has put it
		}
		if err != nil {
			return err
		}
		count++
	}
	r.emit(event{Kind: planned, Round: r.number, Phase: phase, Count: count})
	return nil
}

// values are the inputs of a phase.
func (r *round) values(ctx context.Context, phase int) ([]int64, error) {
	values := make([]int64, r.Items)
	for n := range values {
		values[n] = int64(n) + 1
		if phase == 0 {
			continue
		}
		path := item{Round: r.number, Phase: phase - 1, Index: n}.result()
		data, _, err := r.client.Get(ctx, path)
		if err != nil {
			return nil, err
		}
		if values[n], err = strconv.ParseInt(string(data), 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return values, nil
}

// report stores the sum under the term's guard, which refuses a former leader.
func (r *round) report(ctx context.Context, term *election.Term) error {
	sum, err := r.sum(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(result{
		Sum: sum, Rounds: r.number, Leader: term.ID(), Token: term.Token(), Last: r.number >= r.Rounds &&
			!time.Now().Before(r.Until),
	})
	if err != nil {
		return err
	}
	_, err = r.client.Multi(ctx, term.Guard(), framework.CreateOp(reportPath(r.number), data, framework.Persistent))
	if err != nil && !errors.Is(err, framework.ErrNodeExists) { // an earlier leader died just after its report
		return err
	}
	r.emit(event{Kind: reported, Round: r.number})
	return r.reported().CountDown(ctx, "leader")
}

// sum adds this round's results to the last report.
func (r *round) sum(ctx context.Context) (sum int64, err error) {
	values, err := r.values(ctx, len(phases))
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		sum += v
	}
	if r.number == 1 {
		return sum, nil
	}
	before, err := readReport(ctx, r.client, r.number-1)
	return sum + before.Sum, err
}

// readReport reads the report of a round, after a sync.
func readReport(ctx context.Context, client *framework.Client, number int) (report result, err error) {
	path := reportPath(number)
	if err := syncServer(ctx, client); err != nil {
		return report, err
	}
	data, _, err := client.Get(ctx, path)
	if err != nil {
		return report, err
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}

// syncServer lets the server of this session apply all earlier writes.
func syncServer(ctx context.Context, client *framework.Client) error {
	session, err := client.Session(ctx)
	if err != nil {
		return err
	}
	return session.Sync(ctx, "/")
}
