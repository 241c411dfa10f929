package queue

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// dedup remembers those of lately. <path>/ids holds the number of the present bucket, <path>/ids/<n>, whose version says
// 0 open, 1 closed. A bucket has 64 directories of names, which are hashes. A put with an id creates its name in the
// present bucket, and creates and deletes it in the one before, which is refused where it exists. When a bucket has
// been open for the window, the next put opens another, and those before the last are removed.
type dedup struct {
	known   bool
	dir     string
	version int32 // of dir
	bucket  int64
	opened  time.Time // by the ensemble's clock
}

const shards = 64

func (d *dedup) path(n int64) string { return framework.Join(d.dir, number(n)) }

func (d *dedup) checkOpen() framework.Op { return framework.CheckOp(d.path(d.bucket), 0) }

// name is an id's node below a bucket.
func (d *dedup) name(n int64, id string) string {
	h := sha256.Sum256([]byte(id))
	shard := framework.Join(d.path(n), number(int64(h[0])%shards))
	return framework.Join(shard, base64.RawURLEncoding.EncodeToString(h[:16]))
}

// rememberOps are refused with ErrNodeExists if the id is remembered, and remember it.
func (d *dedup) rememberOps(id string) []framework.Op {
	ops := []framework.Op{framework.CreateOp(d.name(d.bucket, id), nil, framework.Persistent)}
	if d.bucket > 0 {
		former := d.name(d.bucket-1, id)
		ops = append(ops, framework.CreateOp(former, nil, framework.Persistent), framework.DeleteOp(former, framework.AnyVersion))
	}
	return ops
}

// refresh reads what the present bucket is, and opens another when it is time.
func (d *dedup) refresh(ctx context.Context, s *framework.Session, q *engine) error {
	for {
		d.dir = q.below(idsDir)
		if !d.known {
			if err := d.readBucket(ctx, s, q); err != nil {
				return err
			}
		}
		if !d.known {
			continue
		}
		if q.clock.now().Sub(d.opened) < q.storedRecord().window() {
			return nil
		}
		if err := d.nextBucket(ctx, s, q); err != nil {
			return err
		}
	}
}

// readBucket reads the present bucket, or makes the first.
func (d *dedup) readBucket(ctx context.Context, s *framework.Session, q *engine) error {
	data, st, err := s.Get(ctx, d.dir)
	if errors.Is(err, framework.ErrNoNode) {
		_, err := s.Multi(ctx, append([]framework.Op{q.queueExistsOp(), framework.CreateOp(d.dir, []byte("0"), framework.Persistent)}, d.openOps(0)...)...)
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
		return framework.Wrap("read", d.dir, errCount)
	}
	bucket, err := s.Exists(ctx, d.path(n))
	if errors.Is(err, framework.ErrNoNode) || err == nil && bucket.Version > 0 {
		return s.Sync(ctx, d.dir) // it was closed meanwhile
	}
	if err != nil {
		return err
	}
	record, rst, err := s.Get(ctx, q.path) // after dir, which is written when the window is changed
	if err = q.learnFrom(framework.Node{Data: record, Stat: rst, Err: err}); err != nil {
		return err
	}
	d.known, d.version, d.bucket, d.opened = true, st.Version, n, bucket.Ctime
	return nil
}

var errCount = errors.New("not a count")

// openOps are the operations that make a bucket.
func (d *dedup) openOps(n int64) []framework.Op {
	ops := []framework.Op{framework.CreateOp(d.path(n), nil, framework.Persistent)}
	for i := range int64(shards) {
		ops = append(ops, framework.CreateOp(framework.Join(d.path(n), number(i)), nil, framework.Persistent))
	}
	return ops
}

// nextBucket opens the next bucket, and removes the one before the present one. If somebody else was faster, it is read again.
func (d *dedup) nextBucket(ctx context.Context, s *framework.Session, q *engine) error {
	ops := append([]framework.Op{
		framework.SetOp(d.dir, strconv.AppendInt(nil, d.bucket+1, 10), d.version),
		framework.SetOp(d.path(d.bucket), []byte("closed"), 0),
	}, d.openOps(d.bucket+1)...)
	d.known = false
	_, err := s.Multi(ctx, ops...)
	if errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrSuspended) || errors.Is(err, framework.ErrNodeExists) {
		return nil
	}
	if dir, present := d.dir, d.bucket; err == nil {
		q.tasks.start(func() {
			if err := removeBuckets(q.work, s, dir, present); err != nil && q.work.Err() == nil {
				q.client.Logger().Warn("ids could not be removed; the next change of buckets tries again", "path", dir, "error", err)
			}
		})
	}
	return err
}

// removeBuckets removes the buckets before one, also what others have left there that died meanwhile.
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

// removeTree deletes a node and all below it, with operations that go with each transaction.
func removeTree(ctx context.Context, s *framework.Session, path string, with ...framework.Op) error {
	names, _, err := s.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for len(names) > 0 {
		n := min(len(names), 500)
		ops := slices.Clone(with)
		for _, name := range names[:n] {
			ops = append(ops, framework.DeleteOp(framework.Join(path, name), framework.AnyVersion))
		}
		if _, err := s.Multi(ctx, ops...); err != nil { // some have children, or are gone
			for _, name := range names[:n] {
				if err := removeTree(ctx, s, framework.Join(path, name), with...); err != nil {
					return err
				}
			}
		}
		names = names[n:]
	}
	_, err = s.Multi(ctx, append(slices.Clone(with), framework.DeleteOp(path, framework.AnyVersion))...)
	var refused *framework.TxError
	if err == nil || errors.As(err, &refused) && refused.Path == path && errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return fmt.Errorf("remove: %w", err)
}
