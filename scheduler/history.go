package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// The history of a job is a ring of nodes beside its claims, <job>/past-<slot>: run n is in slot n modulo
// the ring's size. So a run is recorded in the transaction that ends it, and nothing has to be read.
const (
	pastPrefix  = "past-"
	claimPrefix = "run-"

	recordVersion = 1
)

// remember is the operations that record runs that have ended.
func (s *Scheduler) remember(job string, runs ...RunRecord) ([]operation, error) {
	var ops []operation
	for _, r := range runs {
		data, err := encodeRun(r)
		if err != nil {
			return nil, err
		}
		node := framework.Join(s.node(job), fmt.Sprintf("%s%d", pastPrefix, r.Number%int64(s.history)))
		create, set := framework.CreateOp(node, data, framework.Persistent), framework.SetOp(node, data, framework.AnyVersion)
		if r.Number <= int64(s.history) {
			ops = append(ops, operation{create, framework.ErrNodeExists, &set})
		} else {
			ops = append(ops, operation{set, framework.ErrNoNode, &create})
		}
	}
	return ops, nil
}

func encodeRun(r RunRecord) ([]byte, error) {
	f := fields{}
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return nil, err
	}
	return f.with(map[string]any{"v": recordVersion})
}

// decodeRun reads a recorded run. Its error wraps ErrNewerState or ErrBadState.
func decodeRun(data []byte) (RunRecord, error) {
	var r RunRecord
	if _, err := openRecord(data, recordVersion); err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	delete(r.rest, "v")
	return r, nil
}

// Runs returns the latest runs of a job, the newest first: those that go on, and as many of those that have
// ended as WithHistory keeps. This member need not have the job. Its error wraps ErrUnknownJob, ErrInvalidJob,
// ErrBadState or ErrNewerState.
func (s *Scheduler) Runs(ctx context.Context, name string) ([]RunRecord, error) {
	state, err := s.State(ctx, name)
	if err != nil {
		return nil, err
	}
	runs := slices.Clone(state.Running)
	names, _, err := s.client.Children(ctx, s.node(name))
	for _, child := range names {
		if err != nil || !strings.HasPrefix(child, pastPrefix) {
			continue
		}
		var r RunRecord
		r, err = s.recorded(ctx, name, child)
		if errors.Is(err, framework.ErrNoNode) {
			err = nil
			continue
		}
		runs = append(runs, r)
	}
	if err != nil {
		return nil, framework.Wrap("runs", s.node(name), err)
	}
	slices.SortFunc(runs, func(a, b RunRecord) int { return int(b.Number - a.Number) })
	return slices.CompactFunc(runs, func(a, b RunRecord) bool { return a.Number == b.Number }), nil
}

func (s *Scheduler) recorded(ctx context.Context, job, child string) (RunRecord, error) {
	data, _, err := s.client.Get(ctx, framework.Join(s.node(job), child))
	if err != nil {
		return RunRecord{}, err
	}
	return decodeRun(data)
}
