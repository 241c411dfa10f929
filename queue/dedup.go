package queue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// dedupBuckets remembers the ids of recent items. <path>/ids holds the number of the present
// bucket. The version of <path>/ids/<n> is 0 while bucket n is open. A bucket has 64 directories;
// in these each id has a node, whose name is the id's hash. A put with an id creates the id's node
// in the present bucket. It also creates and deletes the node in the bucket before, which the
// servers refuse if the node exists there. When a bucket has been open for the window, the next put
// with an id opens another one, and all buckets before the former one are removed.
type dedupBuckets struct {
	store   *store
	tasks   *background.Tasks
	openCtx context.Context // ends the removal of old ids
	// the fields below were read, and the bucket was not closed since, as far as this Queue knows
	known   bool
	version int32 // of <path>/ids
	bucket  int64
	opened  time.Time // by the ensemble's clock
}

// openBucket reads which bucket is the present one, and opens the next one when it is time.
func (d *dedupBuckets) openBucket(ctx context.Context, s *framework.Session) error {
	pauses := recipe.RetryPauses{Client: d.store.client}
	for {
		began := time.Now()
		if !d.known {
			if err := d.readBucket(ctx, s); err != nil {
				return err
			}
		}
		if !d.known {
			if pauses.Wait(ctx, began) != nil {
				return failure.Ended(ctx)
			}
			continue
		}
		if d.store.clock.Now().Sub(d.opened) < d.store.record().DedupWindow() {
			return nil
		}
		if err := d.nextBucket(ctx, s); err != nil {
			return err
		}
	}
}

// readBucket reads the present bucket, or makes the first. It replaces a present bucket that is
// missing or closed.
func (d *dedupBuckets) readBucket(ctx context.Context, s *framework.Session) error {
	nodes := d.store.nodes
	data, stat, err := s.Get(ctx, nodes.IDsDir)
	if errors.Is(err, framework.ErrNoNode) {
		_, err := s.Multi(ctx, append([]framework.Op{nodes.CheckExists(),
			framework.CreateOp(nodes.IDsDir, []byte("0"), framework.Persistent)}, nodes.MakeIDBucketOps(0)...)...)
		if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrSuspended) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	n, err := queuelayout.DecodeBucket(data)
	if err != nil {
		return failure.Wrap("read", nodes.IDsDir, err)
	}
	bucket, err := s.Exists(ctx, nodes.IDBucketDir(n))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return d.repairBucket(ctx, s, append([]framework.Op{framework.CheckOp(nodes.IDsDir, stat.Version)},
			nodes.MakeIDBucketOps(n)...))
	case err != nil:
		return err
	case bucket.Version > 0:
		return d.repairBucket(ctx, s,
			append([]framework.Op{framework.SetOp(nodes.IDsDir, strconv.AppendInt(nil, n+1, 10), stat.Version),
				framework.CheckOp(nodes.IDBucketDir(n), bucket.Version)}, nodes.MakeIDBucketOps(n+1)...))
	}
	record, rst, err := s.Get(ctx, nodes.Path) // after <path>/ids: SetDedup writes both in one transaction
	if err = d.store.learnFrom(framework.Node{Data: record, Stat: rst, Err: err}); err != nil {
		return err
	}
	d.known, d.version, d.bucket, d.opened = true, stat.Version, n, bucket.Ctime
	return nil
}

// repairBucket opens a bucket by ops, if an operator has deleted or closed the present one by hand.
// If another client has opened a bucket meanwhile, the servers refuse ops, since <path>/ids has
// changed.
func (d *dedupBuckets) repairBucket(ctx context.Context, s *framework.Session, ops []framework.Op) error {
	_, err := s.Multi(ctx, ops...)
	if recipe.IsConflict(err) || errors.Is(err, framework.ErrSuspended) {
		return nil
	}
	return err
}

// nextBucket opens the next bucket, and removes those before the present one in the background. If
// another client was faster, it is read again.
func (d *dedupBuckets) nextBucket(ctx context.Context, s *framework.Session) error {
	ops := append([]framework.Op{
		framework.SetOp(d.store.nodes.IDsDir, strconv.AppendInt(nil, d.bucket+1, 10), d.version),
		framework.SetOp(d.store.nodes.IDBucketDir(d.bucket), []byte("closed"), 0),
	}, d.store.nodes.MakeIDBucketOps(d.bucket+1)...)
	d.known = false
	_, err := s.Multi(ctx, ops...)
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) ||
		errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	if ctx, store, present := d.openCtx, d.store, d.bucket; err == nil {
		d.tasks.Start(func() {
			if err := removeBuckets(ctx, s, store.nodes, present); err != nil && ctx.Err() == nil {
				store.client.Logger().Warn("old ids could not be removed; the next change of buckets tries again",
					"path", store.nodes.IDsDir, "error", err)
			}
		})
	}
	return err
}

// removeBuckets removes the buckets before one, also the rest that a dead client has left.
func removeBuckets(ctx context.Context, s *framework.Session, nodes *queuelayout.Layout, before int64) error {
	buckets, err := queuelayout.ListNumbers(ctx, s, nodes.IDsDir)
	for _, n := range buckets {
		if n >= before || err != nil {
			return err
		}
		err = removeTree(ctx, s, nodes.IDBucketDir(n))
	}
	return err
}

// CheckOpen is refused once the present bucket was closed.
func (d *dedupBuckets) checkOpen() framework.Op {
	return framework.CheckOp(d.store.nodes.IDBucketDir(d.bucket), 0)
}

// addOps adds the operations that remember a request's id. They are refused with ErrNodeExists if
// the id is remembered already.
func (d *dedupBuckets) addOps(t *transaction, r *writeRequest) {
	refused := func(tx *framework.TxError) refusalHandling {
		if errors.Is(tx.Err, framework.ErrNodeExists) {
			return refuseOnly(r, ErrDuplicate)
		}
		return refuseOnly(r, tx)
	}
	t.addOp(framework.CreateOp(d.store.nodes.IDNode(d.bucket, r.id), nil, framework.Persistent), refused)
	if d.bucket > 0 {
		former := d.store.nodes.IDNode(d.bucket-1, r.id)
		t.addOp(framework.CreateOp(former, nil, framework.Persistent), refused)
		t.addOp(framework.DeleteOp(former, framework.AnyVersion), refused)
	}
}
