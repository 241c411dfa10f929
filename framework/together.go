package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Together is a protected create of one or more nodes in one transaction, with other operations.
type Together struct {
	// Dir is the nodes' directory, which is made where it is missing.
	Dir string
	// Name is their name behind the protection; all have the same UUID.
	Name string
	// Plain leaves the protection out of the name. The caller then sees to it that the session creates
	// this node nowhere else meanwhile: that the session owns it shows that it was created.
	Plain bool
	// Data is what each of them holds.
	Data []byte
	// Count is how many there are. Of several, Mode must be sequential.
	Count int
	// Mode is Ephemeral or EphemeralSequential.
	Mode Mode
	// With are the other operations of the transaction: all happens, or nothing does.
	With []Op
}

// CreateTogether creates nodes and runs the other operations in one transaction.
//
// Guarantee: as that of CreateProtected. When the reply is lost, the nodes are looked up by their UUID;
// when the caller gives up, the nodes are deleted in the background, but not the effect of the other
// operations. A refusal by one of these is a *TxError whose Index counts from t.Count, and nothing has
// happened.
func (s *Session) CreateTogether(ctx context.Context, t Together) ([]Created, error) {
	created, _, err := s.createTogether(ctx, t, "")
	return created, err
}

// CreateTogetherAndStat is CreateTogether, with a look at another node that travels right behind the transaction and
// costs no time of its own. The Stat is nil when the caller has to ask for it: the node is missing, the transaction
// needed a second try, or the connection was lost.
func (s *Session) CreateTogetherAndStat(ctx context.Context, t Together, path string) ([]Created, *Stat, error) {
	if _, err := s.check(path, 0); err != nil {
		return nil, nil, Wrap("create", path, err)
	}
	return s.createTogether(ctx, t, path)
}

// createTogether creates the nodes and, unless stat is "", looks at that node behind the first try.
func (s *Session) createTogether(ctx context.Context, t Together, stat string) ([]Created, *Stat, error) {
	p := &protected{s: s, dir: t.Dir, prefix: t.Name, exact: t.Mode == Ephemeral}
	if !t.Plain {
		p.prefix = ProtectedPrefix + uuid.NewString() + "-" + t.Name
	}
	ops := make([]Op, 0, t.Count+len(t.With))
	for range t.Count {
		ops = append(ops, CreateOp(Join(t.Dir, p.prefix), t.Data, t.Mode))
	}
	ops = append(ops, t.With...)
	if err := s.checkOps(ops); err != nil {
		return nil, nil, err
	}
	p.ops = ops
	tries := 0
	p.attempt = func() (*link.Call, flight[[]Created], error) {
		tries++
		return p.together(ops, t.Count)
	}
	seen := make(chan *Stat, 1)
	if stat != "" {
		p.listed = make(chan struct{})
		p.behind = &link.Call{Op: wire.OpExists, Body: &wire.WatchRequest{Path: s.client.ns.full(stat)}, Done: func(r link.Reply) {
			if o := answer(r, readStat); o.err == nil {
				seen <- &o.v.stat
			}
			close(p.listed)
		}}
	}
	created, err := p.create(ctx)
	var r refusal
	switch {
	case errors.As(err, &r):
		return nil, nil, r.reason
	case err != nil:
		return nil, nil, Wrap("create", t.Dir, err)
	}
	if tries > 1 {
		return created, nil, nil
	}
	select {
	case st := <-seen:
		return created, st, nil
	default:
		return created, nil, nil
	}
}

// together prepares the transaction, of which the first count operations are the creates.
func (p *protected) together(ops []Op, count int) (*link.Call, flight[[]Created], error) {
	if err := conditions(ops); err != nil {
		return nil, nil, refusal{err}
	}
	call, f := p.request(wire.OpMulti, &wire.MultiRequest{Parts: p.s.parts(ops)}, func(d *wire.Decoder) ([]string, error) {
		return made(ops, readResults(d), count)
	})
	return call, f, nil
}

// made returns the paths of the first count operations, or why the transaction was refused.
func made(ops []Op, rs []OpResult, count int) ([]string, error) {
	err := refusedBy(ops, rs)
	switch {
	case err != nil && err.Index >= count:
		return nil, refusal{err}
	case err != nil:
		return nil, err
	case len(rs) < count:
		return nil, fmt.Errorf("zookeeper: %d results of a transaction of %d operations", len(rs), len(ops))
	}
	paths := make([]string, count)
	for i := range paths {
		paths[i] = rs[i].Path
	}
	return paths, nil
}

// refusal keeps the reason of one of the other operations apart from what a create may be refused with.
type refusal struct{ reason error }

func (r refusal) Error() string { return r.reason.Error() }
