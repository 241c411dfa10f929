package framework

import (
	"context"
	"errors"

	"github.com/google/uuid"

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
	p := &protected{s: s, dir: t.Dir, prefix: t.Name, exact: t.Mode == Ephemeral, written: make(chan struct{})}
	if !t.Plain {
		p.prefix = ProtectedPrefix + uuid.NewString() + "-" + t.Name
	}
	ops := make([]Op, 0, t.Count+len(t.With))
	for range t.Count {
		ops = append(ops, CreateOp(Join(t.Dir, p.prefix), t.Data, t.Mode))
	}
	ops = append(ops, t.With...)
	if err := s.checkOps(ops); err != nil {
		return nil, err
	}
	p.attempt = func() ([]Created, error) { return p.createTogether(ops, t.Count) }
	err := p.start(ctx)
	if err == nil {
		err = p.wait(ctx)
	}
	var r refusal
	switch {
	case errors.As(err, &r):
		return nil, r.reason
	case err != nil:
		return nil, Wrap("create", t.Dir, err)
	}
	return p.created, nil
}

// createTogether runs the transaction once, of which the first count operations are the creates.
func (p *protected) createTogether(ops []Op, count int) ([]Created, error) {
	if err := conditions(ops); err != nil {
		return nil, refusal{err}
	}
	t := p.s.mon.Trace(int32(wire.OpMulti), p.s.client.ns.full(ops[0].path), func() {})
	defer t.Forget()
	rs, err := p.s.zk.multi(p.s.requests(ops))
	rs, err = p.s.results(ops, rs, err)
	var tx *TxError
	switch {
	case errors.As(err, &tx) && tx.Index >= count:
		return nil, refusal{err}
	case err != nil:
		return nil, err
	}
	r := t.Reply()
	if r == nil || r.SessionID != p.s.ID() {
		return nil, ErrSuspended // look them up
	}
	created := make([]Created, count)
	for i := range created {
		created[i] = Created{Path: rs[i].Path, Zxid: r.Zxid}
	}
	return created, nil
}

// refusal keeps the reason of one of the other operations apart from what a create may be refused with.
type refusal struct{ reason error }

func (r refusal) Error() string { return r.reason.Error() }
