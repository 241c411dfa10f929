//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/registry"
)

// actorFunc is one pass of an actor.
type actorFunc = func(context.Context, iteration)

// settingActor sets the setting. Sometimes it does what other programs may do: it deletes the node,
// or writes a text that readers refuse.
func settingActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		switch rng.IntN(10) {
		case 0:
			p.expect(ctx, "DeleteIfPresent", w.path, p.client.DeleteIfPresent(ctx, w.path))
		case 1:
			_, err := p.client.Set(ctx, w.path, []byte("refused"), framework.AnyVersion)
			p.expect(ctx, "Set", w.path, err, framework.ErrNoNode, framework.ErrSessionLost,
				framework.ErrOutcomeUnknown)
		default:
			c := call{request: event{Kind: kindWrite, Path: w.path,
				Item: fmt.Sprintf("%s%s.%d", goodPrefix, p.name, p.lastOp.Add(1))}, mayBeUnknown: true}
			var opts []config.SetOption
			if rng.IntN(2) == 0 {
				c.request.Token = p.services.setting.Current().Version
				c.refusals = []error{framework.ErrConflict}
				opts = append(opts, config.WithExpectedVersion(c.request.Token))
			}
			_ = c.run(callCtx, p, func(int64,
				*event) error {
				return p.services.setting.Set(callCtx, c.request.Item, opts...)
			})
		}
		wait(ctx, randomPause(rng, 300*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followSetting(ctx context.Context) {
	for now, err := range p.services.setting.Follow(ctx) {
		p.writeShown(ctx, settingPath, event{Item: now.Value, Token: now.Version, Source: string(now.Source)}, err)
	}
}

// tallyActor adds 1 to the tally that it has read.
func tallyActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		before, err := p.services.tally.Load(callCtx)
		if err != nil {
			p.writeShown(callCtx, w.path, event{}, err)
			return
		}
		c := call{request: event{Kind: kindWrite, Path: w.path, Number: before.Value.N + 1,
			Item: fmt.Sprintf("%s.%d", p.name, p.lastOp.Add(1))}, mayBeUnknown: true,
			refusals: []error{framework.ErrConflict}}
		_ = c.run(callCtx, p, func(int64, *event) error {
			return p.services.tally.Set(callCtx, tallyValue{c.request.Number, c.request.Item},
				config.WithExpectedVersion(before.Version))
		})
		wait(ctx, randomPause(rng, 200*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followTally(ctx context.Context) {
	for now, err := range p.services.tally.Follow(ctx) {
		p.writeShown(ctx, tallyPath, event{Item: now.Value.By, Number: now.Value.N, Token: now.Version}, err)
	}
}

// treeActor writes the next number into all keys in one transaction.
func treeActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		p.writeTree(callCtx, w.path)
		wait(ctx, randomPause(rng, 300*time.Millisecond), t.stop)
	}
}

// writeTree reads the first key and writes the next number. Its read goes on over a lost session,
// and its transaction does not.
func (p *clientProcess) writeTree(ctx context.Context, path string) {
	data, st, err := p.client.Get(ctx, treeKeys[0])
	p.expect(ctx, "Get", treeKeys[0], err)
	if err != nil {
		return
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		p.writeShown(ctx, path, event{}, err) // nobody writes other data
		return
	}
	next := []byte(strconv.FormatInt(n+1, 10))
	c := call{request: event{Kind: kindWrite, Path: path}, mayBeUnknown: true,
		refusals: []error{framework.ErrBadVersion, framework.ErrSessionLost}}
	_ = c.run(ctx, p, func(int64, *event) error {
		_, err := p.client.Multi(ctx, framework.SetOp(treeKeys[0], next, st.Version),
			framework.SetOp(treeKeys[1], next, framework.AnyVersion),
			framework.SetOp(treeKeys[2], next, framework.AnyVersion))
		return err
	})
}

func (p *clientProcess) followTree(ctx context.Context) {
	for now, err := range p.services.tree.Follow(ctx) {
		if now.Source == config.FromDefault && err == nil {
			continue // before the first answer
		}
		p.writeShown(ctx, treePath, event{Numbers: []int64{now.Value.A, now.Value.B, now.Value.C}}, err)
	}
}

// idBatch is how many ids an actor takes at a time.
const idBatch = 20

// idRanges returns rising ids as pairs of first and last.
func idRanges(given []int64) (ranges []int64) {
	for _, id := range given {
		if n := len(ranges); n > 0 && ranges[n-1]+1 == id {
			ranges[n-1] = id
			continue
		}
		ranges = append(ranges, id, id)
	}
	return ranges
}

// sequenceActor takes numbers, one by one.
func sequenceActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		_ = call{request: event{Kind: kindIDs, Path: w.path}}.run(callCtx, p, func(_ int64, answer *event) error {
			var given []int64
			defer func() { answer.Numbers = idRanges(given) }()
			for range idBatch {
				id, err := p.services.sequence.Next(callCtx)
				if err != nil {
					return err
				}
				given = append(given, id)
			}
			return nil
		})
		wait(ctx, randomPause(rng, 100*time.Millisecond), t.stop)
	}
}

// slotsActor takes a worker's ids. Sooner or later its slot is one that a killed process has used.
func slotsActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		_ = call{request: event{Kind: kindIDs, Path: w.path}, refusals: []error{ids.ErrNoSlot}}.run(callCtx, p,
			func(_ int64, answer *event) error {
				some := make([]int64, idBatch)
				err := p.services.worker.Fill(callCtx, some)
				if err == nil {
					answer.Numbers = idRanges(some)
				}
				return err
			})
		wait(ctx, randomPause(rng, 100*time.Millisecond), t.stop)
	}
}

// counterActor adds 1. Two actors of a process share a counter, so that their adds are combined.
func counterActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		_ = call{request: event{Kind: kindAdd, Path: w.path}, mayBeUnknown: true}.run(callCtx, p,
			func(_ int64, answer *event) (err error) {
				answer.Number, err = p.services.counter.Add(callCtx, 1)
				return err
			})
		wait(ctx, randomPause(rng, 200*time.Millisecond), t.stop)
	}
}

// numberKey is the key of an instance's metadata that has the instance's number.
const numberKey = "number"

// instanceActor registers an instance, changes its number, unregisters it after a while, and picks
// instances.
func instanceActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	var reg *registry.Registration
	number := int64(0)
	metadata := func() map[string]string { return map[string]string{numberKey: strconv.FormatInt(number, 10)} }
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		number++
		switch action := rng.IntN(20); {
		case reg == nil:
			id := fmt.Sprintf("%s.%d", p.name, number)
			_ = call{request: event{Kind: kindJoin, Path: w.path, Item: id, Number: number}}.run(callCtx, p,
				func(int64, *event) (err error) {
					one, err := p.services.registry.Register(callCtx,
						registry.Instance{Service: serviceName, ID: id, Address: "10.0.0.8", Port: 8080,
							Metadata: metadata()})
					if err == nil {
						reg = one
					}
					return err
				})
		case action == 0:
			_ = call{request: event{Kind: kindLeave, Path: w.path, Item: reg.Instance().ID},
				mayHappenLater: true}.run(callCtx, p, func(int64, *event) error { return reg.Close(callCtx) })
			reg = nil
		case action < 8:
			latest := metadata() // computed here: the registration calls the function later, and perhaps twice
			_ = call{request: event{Kind: kindUpdate, Path: w.path, Item: reg.Instance().ID, Number: number},
				mayHappenLater: true}.run(callCtx, p, func(int64, *event) error {
				return reg.Update(callCtx, func(i *registry.Instance) { i.Metadata = latest })
			})
		default:
			_ = call{request: event{Kind: kindPick, Path: w.path}}.run(callCtx, p, func(_ int64, answer *event) error {
				one, err := p.services.pool.Pick(callCtx)
				if err == nil {
					answer.Item = one.Instance.ID
					one.Done(nil)
				}
				return err
			})
		}
		wait(ctx, randomPause(rng, 200*time.Millisecond), t.stop)
	}
}

// followInstances writes each list. Before the first list the pool yields the errors of its reads
// and goes on: then the servers may be away. An error after it is a violation.
func (p *clientProcess) followInstances(ctx context.Context) {
	listed := false
	for all, err := range p.services.pool.Follow(ctx) {
		if err != nil {
			if listed || !failure.IsTransient(err) {
				p.expect(ctx, "Changes", instancesPath, err)
			}
			continue
		}
		listed = true
		list := map[string]int64{}
		for _, i := range all {
			list[i.ID], _ = strconv.ParseInt(i.Metadata[numberKey], 10, 64) // the static instance has no number
		}
		p.writeShown(ctx, instancesPath, event{Listed: list}, nil)
	}
}

// memberActor joins the group, changes the member's number, leaves after a while, and drains
// members.
func memberActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	var self *members.Membership
	number := int64(0)
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		number++
		switch action := rng.IntN(20); {
		case self == nil:
			id := fmt.Sprintf("%s.%d", p.name, number)
			_ = call{request: event{Kind: kindJoin, Path: w.path, Item: id, Number: number}}.run(callCtx, p,
				func(int64, *event) error {
					one, err := p.services.group.Join(callCtx, id, members.Info{Load: float64(number)},
						members.WithDrain(p.drainFunction(id)))
					if err == nil {
						self = one
					}
					return err
				})
		case action == 0:
			_ = call{request: event{Kind: kindLeave, Path: w.path, Item: self.ID()}}.run(callCtx, p,
				func(int64, *event) error { return self.Leave(callCtx) })
			self = nil
		case action < 5:
			p.drainMember(ctx, w, rng, t.stop)
		default:
			_ = call{request: event{Kind: kindUpdate, Path: w.path, Item: self.ID(), Number: number},
				mayHappenLater: true}.run(callCtx, p, func(int64, *event) error {
				return self.Update(callCtx, func(i *members.Info) { i.Load = float64(number) })
			})
		}
		wait(ctx, randomPause(rng, 200*time.Millisecond), t.stop)
	}
}

// drainFunction returns a drain function that takes a moment.
func (p *clientProcess) drainFunction(id string) func(context.Context, members.Cordon) error {
	return func(ctx context.Context, _ members.Cordon) error {
		wait(ctx, 100*time.Millisecond, nil)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.writeShown(ctx, groupPath, event{Kind: kindDrained, Item: id}, nil)
		return nil
	}
}

// drainMember drains a member that is listed, and then withdraws the request.
func (p *clientProcess) drainMember(ctx context.Context, w workload, rng *rand.Rand, stop <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	view, err := p.services.group.Inspect(ctx)
	if err != nil {
		p.writeShown(ctx, w.path, event{}, err)
		return
	}
	if len(view.Members) == 0 {
		return
	}
	id := view.Members[rng.IntN(len(view.Members))].ID
	// No *members.DrainError: the drain function fails only when its context has ended, with the
	// request or with the membership, and no answer is written then.
	refusals := []error{framework.ErrNotFound, members.ErrLeft, members.ErrWithdrawn}
	err = call{request: event{Kind: kindDrain, Path: w.path, Item: id}, refusals: refusals}.run(ctx, p,
		func(int64, *event) error { return p.services.group.Drain(ctx, id) })
	if err == nil || rng.IntN(2) == 0 {
		_ = call{request: event{Kind: kindUncordon, Path: w.path, Item: id}}.run(ctx, p,
			func(int64, *event) error { return p.services.group.Uncordon(ctx, id) })
	}
}

func (p *clientProcess) followGroup(ctx context.Context) {
	for view, err := range p.services.group.Follow(ctx) {
		e := event{Listed: map[string]int64{}}
		if err == nil {
			for _, m := range view.Members {
				e.Listed[m.ID] = int64(m.Info.Load)
			}
			for _, c := range view.Changes {
				if c.Zxid != 0 {
					e.Numbers = append(e.Numbers, c.Zxid)
				}
			}
		}
		p.writeShown(ctx, groupPath, e, err)
	}
}
