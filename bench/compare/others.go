//go:build linux

package main

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/lockstep-go/lockstep/redislock"
)

type etcdConnection struct {
	*clientv3.Client
	ttl time.Duration
}

func connectEtcd(servers []string, ttl time.Duration) (connection, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	return etcdConnection{c, ttl}, err
}

// session opens what etcd identifies contenders by.
func (c etcdConnection) session() (*concurrency.Session, error) {
	return concurrency.NewSession(c.Client, concurrency.WithTTL(int(c.ttl.Seconds())))
}

func (c etcdConnection) locker(name string) (locker, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, "/"+name)
	return func(ctx context.Context) (grant, error) { return grant{m.Unlock, s.Done()}, m.Lock(ctx) }, nil
}

func (c etcdConnection) candidate(name string) (locker, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	e := concurrency.NewElection(s, "/"+name)
	return func(ctx context.Context) (grant, error) { return grant{e.Resign, s.Done()}, e.Campaign(ctx, "") }, nil
}

func (c etcdConnection) counter(name string) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		_, err := concurrency.NewSTM(c.Client, func(s concurrency.STM) error {
			n, _ := strconv.Atoi(s.Get("/" + name)) // "" is 0
			s.Put("/"+name, strconv.Itoa(n+1))
			return nil
		}, concurrency.WithAbortContext(ctx))
		return err
	}, nil
}

func (c etcdConnection) watch(ctx context.Context, name string, n int, seen func(value string)) error {
	for range n {
		changes := c.Watch(ctx, "/"+name, clientv3.WithCreatedNotify())
		<-changes
		go func() {
			for r := range changes {
				for _, e := range r.Events {
					seen(string(e.Kv.Value))
				}
			}
		}()
	}
	return nil
}

func (c etcdConnection) set(ctx context.Context, name, value string) error {
	_, err := c.Put(ctx, "/"+name, value)
	return err
}

type redisConnection struct {
	*redis.Client
	expiry time.Duration
	peer   string
}

func connectRedis(server string, expiry time.Duration, peer string) connection {
	return redisConnection{redis.NewClient(&redis.Options{Addr: server}), expiry, peer}
}

func (c redisConnection) locker(name string) (locker, error) {
	switch c.peer {
	case redislockPeer:
		return leases(redislock.NewMutex(c.Client, name, redislock.WithExpiry(c.expiry))), nil
	case orderedPeer:
		return leases(redislock.NewMutex(c.Client, name, redislock.WithExpiry(c.expiry),
			redislock.WithArrivalOrder())), nil
	case endlessPeer:
		lock := leases(redislock.NewMutex(c.Client, name, redislock.WithExpiry(c.expiry)))
		return func(ctx context.Context) (grant, error) {
			held, err := lock(context.WithoutCancel(ctx))
			release := held.release
			held.release = func(ctx context.Context) error { return release(context.WithoutCancel(ctx)) }
			return held, err
		}, nil
	}
	// by default a contender gives up after 32 tries
	m := redsync.New(goredis.NewPool(c.Client)).NewMutex(name, redsync.WithTries(1<<30), redsync.WithExpiry(c.expiry))
	return func(ctx context.Context) (grant, error) {
		if err := m.LockContext(ctx); err != nil {
			return grant{}, err
		}
		return grant{release: func(ctx context.Context) error { _, err := m.UnlockContext(ctx); return err }}, nil
	}, nil
}

// extended is a lock of redsync whose program extends it, and compares its end with the clock, as
// redsync's documentation leaves it to the program.
func (c redisConnection) extended(name string) locker {
	m := redsync.New(goredis.NewPool(c.Client)).NewMutex(name, redsync.WithTries(1<<30), redsync.WithExpiry(c.expiry))
	return func(ctx context.Context) (grant, error) {
		if err := m.LockContext(ctx); err != nil {
			return grant{}, err
		}
		over := make(chan struct{})
		until := m.Until()
		extended := make(chan bool, 1)
		extend := func() {
			ok, _ := m.ExtendContext(ctx)
			extended <- ok
		}
		go func() {
			defer close(over)
			next := time.NewTimer(c.expiry / 3)
			for {
				select {
				case <-next.C:
					go extend()
				case ok := <-extended:
					if ok {
						until = m.Until()
					}
					next.Reset(c.expiry / 3)
				case <-time.After(time.Until(until)):
					return
				}
			}
		}()
		return grant{func(ctx context.Context) error { _, err := m.UnlockContext(ctx); return err }, over}, nil
	}
}

func (c redisConnection) counter(name string) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return c.Incr(ctx, name).Err() }, nil
}

// queue is a list, and one more with what was taken and is not acknowledged.
func (c redisConnection) queue(name string) (put putter, take taker, err error) {
	put = func(ctx context.Context, item []byte) error { return c.LPush(ctx, name, item).Err() }
	return put, func(ctx context.Context) error {
		item, err := c.BLMove(ctx, name, name+":taken", "RIGHT", "LEFT", 0).Result()
		if err != nil {
			return err
		}
		return c.LRem(ctx, name+":taken", 1, item).Err()
	}, nil
}

func (c redisConnection) watch(ctx context.Context, name string, n int, seen func(value string)) error {
	for range n {
		s := c.Subscribe(ctx, name)
		if _, err := s.Receive(ctx); err != nil {
			return err
		}
		go func() {
			for m := range s.Channel() {
				seen(m.Payload)
			}
		}()
	}
	return nil
}

func (c redisConnection) set(ctx context.Context, name, value string) error {
	return c.Publish(ctx, name, value).Err()
}

// postgresConnection takes advisory locks of its session.
type postgresConnection struct{ *pgx.Conn }

func connectPostgres(ctx context.Context, server string) (connection, error) {
	c, err := pgx.Connect(ctx, postgresURL(server))
	return postgresConnection{c}, err
}

func postgresURL(server string) string {
	return "postgres://postgres@" + server + "/postgres?sslmode=disable"
}

func (c postgresConnection) locker(name string) (locker, error) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	id := int64(hash.Sum64())
	release := func(ctx context.Context) error {
		_, err := c.Exec(ctx, "select pg_advisory_unlock($1)", id)
		return err
	}
	return func(ctx context.Context) (grant, error) {
		_, err := c.Exec(ctx, "select pg_advisory_lock($1)", id)
		return grant{release: release}, err
	}, nil
}

// pinged is a lock whose program asks each second whether its connection is there.
func (c postgresConnection) pinged(lock locker) locker {
	return func(ctx context.Context) (grant, error) {
		held, err := lock(ctx)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for c.Ping(ctx) == nil {
				time.Sleep(time.Second)
			}
		}()
		held.over = over
		return held, err
	}
}

func (c postgresConnection) counter(name string) (func(context.Context) error, error) {
	ctx := context.Background()
	_, err := c.Exec(ctx, "create table if not exists counters (name text primary key, n bigint)")
	if err == nil || isDuplicate(err) {
		_, err = c.Exec(ctx, "insert into counters values ($1, 0) on conflict do nothing", name)
	}
	return func(ctx context.Context) error {
		var n int64
		return c.QueryRow(ctx, "update counters set n = n + 1 where name = $1 returning n", name).Scan(&n)
	}, err
}

// watch has a connection for each watcher, as Redis has.
func (c postgresConnection) watch(ctx context.Context, name string, n int, seen func(value string)) error {
	for range n {
		own, err := pgx.Connect(ctx, c.Config().ConnString())
		if err == nil {
			_, err = own.Exec(ctx, "listen "+pgx.Identifier{name}.Sanitize())
		}
		if err != nil {
			return err
		}
		go func() {
			for {
				change, err := own.WaitForNotification(ctx)
				if err != nil {
					return
				}
				seen(change.Payload)
			}
		}()
	}
	return nil
}

func (c postgresConnection) set(ctx context.Context, name, value string) error {
	_, err := c.Exec(ctx, "select pg_notify($1, $2)", name, value)
	return err
}

// isDuplicate reports whether another connection has made the same table at the same time.
func isDuplicate(err error) bool {
	var refused interface{ SQLState() string }
	return errors.As(err, &refused) && refused.SQLState() == "23505"
}

// queue takes as River does: the first row that nobody else has locked. The transaction's end is
// the acknowledgement.
func (c postgresConnection) queue(string) (put putter, take taker, err error) {
	_, err = c.Exec(context.Background(), "create table if not exists items (id bigserial primary key, item bytea)")
	put = func(ctx context.Context, item []byte) error {
		_, err := c.Exec(ctx, "insert into items (item) values ($1)", item)
		return err
	}
	return put, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error {
			var item []byte
			return tx.QueryRow(ctx, "delete from items where id = (select id from items order by id limit 1 "+
				"for update skip locked) returning item").Scan(&item)
		})
	}, err
}
