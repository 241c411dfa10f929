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
)

// dedup remembers the ids of recent items. <path>/ids holds the number of the present bucket; the version of <path>/ids/<n> is
// 0 while the bucket is open. A bucket has 64 directories of names, which are hashes. A put with an id creates its name in the
// present bucket, and creates and deletes it in the bucket before, which the servers refuse if it exists there. When a bucket has
// been open for the window, the next put opens another one, and buckets before the last are removed.
type dedup struct {
	store   *store
	tasks   *background.Tasks
	work    context.Context // ends the removal of old ids
	known   bool            // the fields below are as they were read last
	version int32           // of <path>/ids
	bucket  int64
	opened  time.Time // by the ensemble's clock
}

const shards = 64

func (d *dedup) dir() string { return d.store.nodes.below(idsDir) }

func (d *dedup) path(n int64) string { return framework.Join(d.dir(), number(n)) }

// checkOpen is refused once the present bucket was closed.
func (d *dedup) checkOpen() framework.Op { return framework.CheckOp(d.path(d.bucket), 0) }

// name is an id's node below a bucket.
func (d *dedup) name(n int64, id string) string {
	h := sha256.Sum256([]byte(id))
	shard := framework.Join(d.path(n), number(int64(h[0])%shards))
	return framework.Join(shard, base64.RawURLEncoding.EncodeToString(h[:16]))
}

// addOps adds the operations that remember a request's id. They are refused with ErrNodeExists if the id is remembered already.
func (d *dedup) addOps(t *transaction, r *writeRequest) {
	refused := func(tx *framework.TxError) refusal {
		if errors.Is(tx.Err, framework.ErrNodeExists) {
			return refuseOnly(r, ErrDuplicate)
		}
		return refuseOnly(r, tx)
	}
	t.add(framework.CreateOp(d.name(d.bucket, r.id), nil, framework.Persistent), nil, refused)
	if d.bucket > 0 {
		former := d.name(d.bucket-1, r.id)
		t.add(framework.CreateOp(former, nil, framework.Persistent), nil, refused)
		t.add(framework.DeleteOp(former, framework.AnyVersion), nil, refused)
	}
}

// refresh reads which bucket is the present one, and opens the next one when it is time.
func (d *dedup) refresh(ctx context.Context, s *framework.Session) error {
	for {
		if !d.known {
			if err := d.readBucket(ctx, s); err != nil {
				return err
			}
		}
		if !d.known {
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

// readBucket reads the present bucket, or makes the first.
func (d *dedup) readBucket(ctx context.Context, s *framework.Session) error {
	data, st, err := s.Get(ctx, d.dir())
	if errors.Is(err, framework.ErrNoNode) {
		_, err := s.Multi(ctx, append([]framework.Op{d.store.nodes.checkExists(), framework.CreateOp(d.dir(), []byte("0"), framework.Persistent)}, d.openOps(0)...)...)
		if errors.Is(err, framework.ErrNodeExists) || errors.Is(err, framework.ErrSuspended) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 {
		return framework.Wrap("read", d.dir(), errCount)
	}
	bucket, err := s.Exists(ctx, d.path(n))
	if errors.Is(err, framework.ErrNoNode) || err == nil && bucket.Version > 0 {
		return s.Sync(ctx, d.dir()) // it was closed meanwhile
	}
	if err != nil {
		return err
	}
	record, rst, err := s.Get(ctx, d.store.nodes.path) // after <path>/ids: SetDedup writes both in one transaction
	if err = d.store.learnFrom(framework.Node{Data: record, Stat: rst, Err: err}); err != nil {
		return err
	}
	d.known, d.version, d.bucket, d.opened = true, st.Version, n, bucket.Ctime
	return nil
}

// openOps are the operations that make a bucket.
func (d *dedup) openOps(n int64) []framework.Op {
	ops := []framework.Op{framework.CreateOp(d.path(n), nil, framework.Persistent)}
	for i := range int64(shards) {
		ops = append(ops, framework.CreateOp(framework.Join(d.path(n), number(i)), nil, framework.Persistent))
	}
	return ops
}

// nextBucket opens the next bucket, and removes those before the present one in the background. If another client was faster, it is read again.
func (d *dedup) nextBucket(ctx context.Context, s *framework.Session) error {
	ops := append([]framework.Op{
		framework.SetOp(d.dir(), strconv.AppendInt(nil, d.bucket+1, 10), d.version),
		framework.SetOp(d.path(d.bucket), []byte("closed"), 0),
	}, d.openOps(d.bucket+1)...)
	d.known = false
	_, err := s.Multi(ctx, ops...)
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) || errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	if dir, present := d.dir(), d.bucket; err == nil {
		d.tasks.Start(func() {
			if err := removeBuckets(d.work, s, dir, present); err != nil && d.work.Err() == nil {
				d.store.client.Logger().Warn("old ids could not be removed; the next change of buckets tries again", "path", dir, "error", err)
			}
		})
	}
	return err
}

// removeBuckets removes the buckets before one, also the rest that a dead client has left.
func removeBuckets(ctx context.Context, s *framework.Session, dir string, before int64) error {
	buckets, err := numbersIn(ctx, s, dir, "")
	for _, n := range buckets {
		if n >= before || err != nil {
			return err
		}
		err = removeTree(ctx, s, framework.Join(dir, number(n)))
	}
	return err
}
