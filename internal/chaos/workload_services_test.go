//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/registry"
)

// actorFunc is one pass of an actor.
type actorFunc = func(context.Context, iteration)

// settingActor sets the setting. Sometimes it does what other programs do: it deletes the node, or writes what readers refuse.
func settingActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		switch rng.IntN(10) {
		case 0:
			_ = p.client.DeleteIfPresent(ctx, w.path) // the outcome does not matter
		case 1:
			_, _ = p.client.Set(ctx, w.path, []byte("refused"), framework.AnyVersion) // nor here
		default:
			c := call{request: event{Kind: kindWrite, Path: w.path, Item: fmt.Sprintf("%s%s.%d", goodPrefix, p.name, p.lastOp.Add(1))}}
			var opts []config.SetOption
			if rng.IntN(2) == 0 {
				c.request.Token = p.services.setting.Current().Version
				c.refusals = []error{config.ErrConflict}
				opts = append(opts, config.If(c.request.Token))
			}
			_ = c.run(callCtx, p, func(int64, *event) error { return p.services.setting.Set(callCtx, c.request.Item, opts...) })
		}
		wait(ctx, usuallyShort(rng, 300*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followSetting(ctx context.Context) {
	for now, err := range p.services.setting.Changes(ctx) {
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
		c := call{request: event{Kind: kindWrite, Path: w.path, Number: before.Value.N + 1, Item: fmt.Sprintf("%s.%d", p.name, p.lastOp.Add(1))}, refusals: []error{config.ErrConflict}}
		_ = c.run(callCtx, p, func(int64, *event) error {
			return p.services.tally.Set(callCtx, tallyValue{c.request.Number, c.request.Item}, config.If(before.Version))
		})
		wait(ctx, usuallyShort(rng, 200*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followTally(ctx context.Context) {
	for now, err := range p.services.tally.Changes(ctx) {
		p.writeShown(ctx, tallyPath, event{Item: now.Value.By, Number: now.Value.N, Token: now.Version}, err)
	}
}

// treeActor writes the next number into all keys in one transaction.
func treeActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		c := call{request: event{Kind: kindWrite, Path: w.path}, passing: true, refusals: []error{framework.ErrBadVersion}}
		_ = c.run(callCtx, p, func(int64, *event) error {
			data, st, err := p.client.Get(callCtx, treeKeys[0])
			if err != nil {
				return err
			}
			n, err := strconv.ParseInt(string(data), 10, 64)
			if err != nil {
				return err
			}
			next := []byte(strconv.FormatInt(n+1, 10))
			_, err = p.client.Multi(callCtx, framework.SetOp(treeKeys[0], next, st.Version), framework.SetOp(treeKeys[1], next, framework.AnyVersion),
				framework.SetOp(treeKeys[2], next, framework.AnyVersion))
			return err
		})
		wait(ctx, usuallyShort(rng, 300*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followTree(ctx context.Context) {
	for now, err := range p.services.tree.Changes(ctx) {
		if now.Source == config.FromDefault && err == nil {
			continue // before the first answer
		}
		p.writeShown(ctx, treePath, event{Numbers: []int64{now.Value.A, now.Value.B, now.Value.C}}, err)
	}
}

// idBatch is how many ids an actor takes at a time.
const idBatch = 20

// idRanges are rising ids as pairs of first and last.
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
		wait(ctx, usuallyShort(rng, 100*time.Millisecond), t.stop)
	}
}

// slotsActor fills slices with a worker's ids. Its slot is that of a process that was killed before, sooner or later.
func slotsActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		_ = call{request: event{Kind: kindIDs, Path: w.path}, refusals: []error{ids.ErrNoSlot}}.run(callCtx, p, func(_ int64, answer *event) error {
			some := make([]int64, idBatch)
			err := p.services.worker.Fill(callCtx, some)
			if err == nil {
				answer.Numbers = idRanges(some)
			}
			return err
		})
		wait(ctx, usuallyShort(rng, 100*time.Millisecond), t.stop)
	}
}

// counterActor adds 1. Two of them share a counter, so that adds are combined.
func counterActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		_ = call{request: event{Kind: kindAdd, Path: w.path}}.run(callCtx, p, func(_ int64, answer *event) (err error) {
			answer.Number, err = p.services.counter.Add(callCtx, 1)
			return err
		})
		wait(ctx, usuallyShort(rng, 200*time.Millisecond), t.stop)
	}
}

// tolds is the key of an instance's metadata with the number that it tells.
const tolds = "told"

// instanceActor registers an instance, changes what it tells, unregisters it after a while, and picks instances.
func instanceActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	var reg *registry.Registration
	told := int64(0)
	metadata := func() map[string]string { return map[string]string{tolds: strconv.FormatInt(told, 10)} }
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		told++
		switch action := rng.IntN(20); {
		case reg == nil:
			id := fmt.Sprintf("%s.%d", p.name, told)
			_ = call{request: event{Kind: kindEnter, Path: w.path, Item: id, Number: told}}.run(callCtx, p, func(int64, *event) (err error) {
				one, err := p.services.registry.Register(callCtx, registry.Instance{Service: serviceName, ID: id, Address: "10.0.0.8", Port: 8080, Metadata: metadata()})
				if err == nil {
					reg = one
				}
				return err
			})
		case action == 0:
			_ = call{request: event{Kind: kindQuit, Path: w.path, Item: reg.Instance().ID}, later: true}.run(callCtx, p, func(int64, *event) error { return reg.Close(callCtx) })
			reg = nil
		case action < 8:
			said := metadata() // here: the registration calls its change later, and perhaps twice
			_ = call{request: event{Kind: kindTell, Path: w.path, Item: reg.Instance().ID, Number: told}, later: true}.run(callCtx, p, func(int64, *event) error {
				return reg.Update(callCtx, func(i *registry.Instance) { i.Metadata = said })
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
		wait(ctx, usuallyShort(rng, 200*time.Millisecond), t.stop)
	}
}

func (p *clientProcess) followInstances(ctx context.Context) {
	for all, err := range p.services.pool.Changes(ctx) {
		list := map[string]int64{}
		for _, i := range all {
			list[i.ID], _ = strconv.ParseInt(i.Metadata[tolds], 10, 64) // the static instance tells nothing
		}
		if err == nil { // an error comes before the first list only
			p.writeShown(ctx, instancesPath, event{Listed: list}, nil)
		}
	}
}

// memberActor joins the group, changes what the member tells, leaves after a while, and drains members.
func memberActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	var self *members.Membership
	told := int64(0)
	return func(ctx context.Context, t iteration) {
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		told++
		switch action := rng.IntN(20); {
		case self == nil:
			id := fmt.Sprintf("%s.%d", p.name, told)
			_ = call{request: event{Kind: kindEnter, Path: w.path, Item: id, Number: told}}.run(callCtx, p, func(int64, *event) error {
				one, err := p.services.group.Join(callCtx, id, members.Info{Load: float64(told)}, members.WithDrain(p.drainFunction(id)))
				if err == nil {
					self = one
				}
				return err
			})
		case action == 0:
			_ = call{request: event{Kind: kindQuit, Path: w.path, Item: self.ID()}}.run(callCtx, p, func(int64, *event) error { return self.Leave(callCtx) })
			self = nil
		case action < 5:
			p.drainMember(ctx, w, rng, t.stop)
		default:
			_ = call{request: event{Kind: kindTell, Path: w.path, Item: self.ID(), Number: told}, later: true}.run(callCtx, p, func(int64, *event) error {
				return self.Update(callCtx, func(i *members.Info) { i.Load = float64(told) })
			})
		}
		wait(ctx, usuallyShort(rng, 200*time.Millisecond), t.stop)
	}
}

// drainFunction finishes work that takes a moment.
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

// drainMember drains a member that is listed, and withdraws that.
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
	view, err := p.services.group.List(ctx)
	if err != nil {
		p.writeShown(ctx, w.path, event{}, err)
		return
	}
	if len(view.Members) == 0 {
		return
	}
	id := view.Members[rng.IntN(len(view.Members))].ID
	refusals := []error{members.ErrNotFound, members.ErrLeft, members.ErrWithdrawn}
	err = call{request: event{Kind: kindDrain, Path: w.path, Item: id}, refusals: refusals}.run(ctx, p, func(int64, *event) error {
		err := p.services.group.Drain(ctx, id)
		if refused := new(*members.DrainError); errors.As(err, refused) { // its function's context ended
			return members.ErrWithdrawn
		}
		return err
	})
	if err == nil || rng.IntN(2) == 0 {
		_ = call{request: event{Kind: kindUncordon, Path: w.path, Item: id}}.run(ctx, p, func(int64, *event) error { return p.services.group.Uncordon(ctx, id) })
	}
}

func (p *clientProcess) followGroup(ctx context.Context) {
	for view, err := range p.services.group.Watch(ctx) {
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
