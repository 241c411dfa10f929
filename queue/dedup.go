package queue

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
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

const idShards = 64

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
		if d.store.clock.Now().Sub(d.opened) < d.store.record().dedupWindow() {
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
	data, st, err := s.Get(ctx, d.dir())
	if errors.Is(err, framework.ErrNoNode) {
		_, err := s.Multi(ctx, append([]framework.Op{d.store.nodes.checkExists(),
			framework.CreateOp(d.dir(), []byte("0"), framework.Persistent)}, d.openOps(0)...)...)
		if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrSuspended) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	n, err := decodeBucket(data)
	if err != nil {
		return failure.Wrap("read", d.dir(), err)
	}
	bucket, err := s.Exists(ctx, d.bucketPath(n))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return d.repairBucket(ctx, s, append([]framework.Op{framework.CheckOp(d.dir(), st.Version)}, d.openOps(n)...))
	case err != nil:
		return err
	case bucket.Version > 0:
		return d.repairBucket(ctx, s,
			append([]framework.Op{framework.SetOp(d.dir(), strconv.AppendInt(nil, n+1, 10), st.Version),
				framework.CheckOp(d.bucketPath(n), bucket.Version)}, d.openOps(n+1)...))
	}
	record, rst, err := s.Get(ctx, d.store.nodes.path) // after <path>/ids: SetDedup writes both in one transaction
	if err = d.store.learnFrom(framework.Node{Data: record, Stat: rst, Err: err}); err != nil {
		return err
	}
	d.known, d.version, d.bucket, d.opened = true, st.Version, n, bucket.Ctime
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
		framework.SetOp(d.dir(), strconv.AppendInt(nil, d.bucket+1, 10), d.version),
		framework.SetOp(d.bucketPath(d.bucket), []byte("closed"), 0),
	}, d.openOps(d.bucket+1)...)
	d.known = false
	_, err := s.Multi(ctx, ops...)
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) ||
		errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	if dir, present := d.dir(), d.bucket; err == nil {
		d.tasks.Start(func() {
			if err := removeBuckets(d.openCtx, s, dir, present); err != nil && d.openCtx.Err() == nil {
				d.store.client.Logger().Warn("old ids could not be removed; the next change of buckets tries again",
					"path", dir, "error", err)
			}
		})
	}
	return err
}

// openOps are the operations that make a bucket.
func (d *dedupBuckets) openOps(n int64) []framework.Op {
	ops := []framework.Op{framework.CreateOp(d.bucketPath(n), nil, framework.Persistent)}
	for i := range int64(idShards) {
		ops = append(ops, framework.CreateOp(znode.Join(d.bucketPath(n), formatNumber(i)), nil, framework.Persistent))
	}
	return ops
}

// removeBuckets removes the buckets before one, also the rest that a dead client has left.
func removeBuckets(ctx context.Context, s *framework.Session, dir string, before int64) error {
	buckets, err := numbersIn(ctx, s, dir, "")
	for _, n := range buckets {
		if n >= before || err != nil {
			return err
		}
		err = removeTree(ctx, s, znode.Join(dir, formatNumber(n)))
	}
	return err
}

// decodeBucket reads the number of the present bucket.
func decodeBucket(data []byte) (int64, error) {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 {
		return 0, errCount
	}
	return n, nil
}

// checkOpen is refused once the present bucket was closed.
func (d *dedupBuckets) checkOpen() framework.Op { return framework.CheckOp(d.bucketPath(d.bucket), 0) }

// addOps adds the operations that remember a request's id. They are refused with ErrNodeExists if
// the id is remembered already.
func (d *dedupBuckets) addOps(t *transaction, r *writeRequest) {
	refused := func(tx *framework.TxError) refusalHandling {
		if errors.Is(tx.Err, framework.ErrNodeExists) {
			return refuseOnly(r, ErrDuplicate)
		}
		return refuseOnly(r, tx)
	}
	t.addOp(framework.CreateOp(d.idNode(d.bucket, r.id), nil, framework.Persistent), refused)
	if d.bucket > 0 {
		former := d.idNode(d.bucket-1, r.id)
		t.addOp(framework.CreateOp(former, nil, framework.Persistent), refused)
		t.addOp(framework.DeleteOp(former, framework.AnyVersion), refused)
	}
}

func (d *dedupBuckets) dir() string { return d.store.nodes.childPath(idsDir) }

func (d *dedupBuckets) bucketPath(n int64) string { return znode.Join(d.dir(), formatNumber(n)) }

// idNode is an id's node below a bucket.
func (d *dedupBuckets) idNode(n int64, id string) string {
	shard := znode.Join(d.bucketPath(n), formatNumber(int64(sha256.Sum256([]byte(id))[0])%idShards))
	return znode.Join(shard, hashedID(id))
}

// hashedID is an id as a part of a node's name.
func hashedID(id string) string {
	h := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(h[:16])
}
