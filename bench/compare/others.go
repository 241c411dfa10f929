package main

import (
	"context"
	"hash/fnv"
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

type etcdConnection struct{ *clientv3.Client }

func connectEtcd(servers []string) (connection, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	return etcdConnection{c}, err
}

// locker opens a session, which etcd identifies contenders by.
func (c etcdConnection) locker(name string) (locker, error) {
	s, err := concurrency.NewSession(c.Client, concurrency.WithTTL(int(sessionTimeout.Seconds())))
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, "/"+name)
	return func(ctx context.Context) (func(context.Context) error, error) { return m.Unlock, m.Lock(ctx) }, nil
}

func (c etcdConnection) close() { _ = c.Client.Close() }

type redisConnection struct {
	*redis.Client
	redsync bool
}

func connectRedis(server string, redsync bool) (connection, error) {
	return redisConnection{redis.NewClient(&redis.Options{Addr: server}), redsync}, nil
}

// locker lets a contender of redsync try until it holds: by default it gives up after 32 tries.
func (c redisConnection) locker(name string) (locker, error) {
	if c.redsync {
		m := redsync.New(goredis.NewPool(c.Client)).NewMutex(name, redsync.WithTries(1<<30),
			redsync.WithExpiry(sessionTimeout))
		release := func(ctx context.Context) error { _, err := m.UnlockContext(ctx); return err }
		return func(ctx context.Context) (func(context.Context) error, error) {
			return release, m.LockContext(ctx)
		}, nil
	}
	m := redislock.NewMutex(c.Client, name, redislock.WithExpiry(sessionTimeout))
	return func(ctx context.Context) (func(context.Context) error, error) {
		lease, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}, nil
}

func (c redisConnection) close() { _ = c.Client.Close() }

// postgresConnection takes advisory locks of its session.
type postgresConnection struct{ *pgx.Conn }

func connectPostgres(ctx context.Context, server string) (connection, error) {
	c, err := pgx.Connect(ctx, "postgres://postgres@"+server+"/postgres?sslmode=disable")
	return postgresConnection{c}, err
}

func (c postgresConnection) locker(name string) (locker, error) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	id := int64(hash.Sum64())
	release := func(ctx context.Context) error {
		_, err := c.Exec(ctx, "select pg_advisory_unlock($1)", id)
		return err
	}
	return func(ctx context.Context) (func(context.Context) error, error) {
		_, err := c.Exec(ctx, "select pg_advisory_lock($1)", id)
		return release, err
	}, nil
}

func (c postgresConnection) close() { _ = c.Conn.Close(context.Background()) }
