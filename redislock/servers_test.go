package redislock

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// realServer is a process of redis-server.
type realServer struct {
	process *os.Process
	port    string
	log     *bytes.Buffer
	ended   chan struct{}
}

// redisProgram returns the path of redis-server. Debian's package redis-tools, which starts no
// service, has the same program by another name.
func redisProgram(t *testing.T) string {
	for _, name := range []string{"redis-server", "redis-check-rdb"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	const missing = "redis-server is missing: install Debian's package redis-tools"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// startServer starts a server on a free port, which another process may take before the server
// does.
func startServer(t *testing.T, config ...string) *realServer {
	program := redisProgram(t)
	for range 10 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, _ := net.SplitHostPort(free.Addr().String())
		require.NoError(t, free.Close())
		dir := t.TempDir()
		file := filepath.Join(dir, "redis.conf")
		lines := append([]string{"bind 127.0.0.1", "port " + port, "dir " + dir}, config...)
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		s := &realServer{port: port, log: new(bytes.Buffer), ended: make(chan struct{})}
		command := exec.Command(program)
		command.Args = []string{"redis-server", file}
		if strings.HasPrefix(strings.Join(config, "\n"), "sentinel") {
			command.Args = append(command.Args, "--sentinel")
		}
		command.Stdout, command.Stderr = s.log, s.log
		require.NoError(t, command.Start())
		s.process = command.Process
		go func() {
			_ = command.Wait()
			close(s.ended)
		}()
		t.Cleanup(func() {
			s.kill()
			if t.Failed() {
				t.Log(s.log)
			}
		})
		if s.isReady() {
			return s
		}
	}
	t.Fatal("no server starts")
	return nil
}

func (s *realServer) isReady() bool {
	client := redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	defer func() { _ = client.Close() }()
	for {
		err := client.Ping(context.Background()).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return true
		}
		select {
		case <-s.ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *realServer) addr() string { return "127.0.0.1:" + s.port }

func (s *realServer) kill() {
	_ = s.process.Kill()
	<-s.ended
}

func (s *realServer) newClient(t *testing.T) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestOnARealServer(t *testing.T) {
	s := startServer(t, `save ""`)
	admin := s.newClient(t)
	ctx := t.Context()

	t.Run("contenders exclude each other under faults", func(t *testing.T) {
		const clients, workers, each = 3, 3, 20
		var inside, grants, token atomic.Int64
		var all sync.WaitGroup
		for range clients {
			m := NewMutex(s.newClient(t), "orders")
			for range workers {
				all.Go(func() {
					for range each {
						lease, err := m.Lock(ctx)
						if err != nil && isTransient(err) { // its connection was closed at its first attempt
							continue
						}
						require.NoError(t, err)
						require.EqualValues(t, 1, inside.Add(1))
						require.Greater(t, lease.Token(), token.Swap(lease.Token()))
						grants.Add(1)
						inside.Add(-1)
						require.NoError(t, lease.Release(ctx))
					}
				})
			}
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		for {
			require.NoError(t, admin.ScriptFlush(ctx).Err())
			require.NoError(t, admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err())
			require.NoError(t, admin.ClientKillByFilter(ctx, "TYPE", "pubsub").Err())
			select {
			case <-ended:
				require.Positive(t, grants.Load())
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})

	t.Run("readers and a writer", func(t *testing.T) {
		l := NewRWLock(s.newClient(t), "shelf")
		first, err := l.RLock(ctx)
		require.NoError(t, err)
		second, err := l.RLock(ctx)
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			lease, err := NewRWLock(admin, "shelf").Lock(ctx)
			require.NoError(t, err)
			granted <- lease
		}()
		require.NoError(t, first.Release(ctx))
		require.NoError(t, second.Release(ctx))
		require.NoError(t, (<-granted).Release(ctx))
	})

	t.Run("arrival order", func(t *testing.T) {
		lease, err := NewMutex(admin, "line", WithArrivalOrder()).Lock(ctx)
		require.NoError(t, err)
		order := make(chan int, 5)
		var all sync.WaitGroup
		for n := range 5 {
			client := s.newClient(t)
			all.Go(func() {
				lease, err := NewMutex(client, "line", WithArrivalOrder()).Lock(ctx)
				if err == nil {
					order <- n
					err = lease.Release(ctx)
				}
				require.NoError(t, err)
			})
			require.Eventually(t, func() bool { return admin.ZCard(ctx, "{line}:line").Val() == int64(n+1) },
				time.Minute, time.Millisecond)
		}
		require.NoError(t, lease.Release(ctx))
		for n := range 5 {
			require.Equal(t, n, <-order)
		}
		all.Wait()
	})

	t.Run("a renewal and an expiry", func(t *testing.T) {
		m := NewMutex(s.newClient(t), "renewed", WithExpiry(time.Second))
		lease, err := m.Lock(ctx)
		require.NoError(t, err)
		time.Sleep(3 * time.Second) // three expiries
		if lease.Err() == nil {     // the machine was not too busy to renew
			_, err = NewMutex(admin, "renewed").TryLock(ctx)
			require.ErrorIs(t, err, locks.ErrNotAcquired)
		}
		_ = lease.Release(ctx)
		fixed, err := NewMutex(admin, "fixed", WithExpiry(MinExpiry*5), WithoutRenewal()).Lock(ctx)
		require.NoError(t, err)
		next, err := NewMutex(admin, "fixed").Lock(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, fixed.Err(), ErrExpired)
		require.NoError(t, next.Release(ctx))
	})

	t.Run("a paused server", func(t *testing.T) {
		paused := startServer(t, `save ""`)
		lease, err := NewMutex(paused.newClient(t), "orders", WithExpiry(2*time.Second)).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, paused.process.Signal(syscall.SIGSTOP))
		<-lease.Context().Done()
		require.NoError(t, paused.process.Signal(syscall.SIGCONT))
		require.ErrorIs(t, lease.Err(), ErrExpired)
		next, err := NewMutex(paused.newClient(t), "orders").Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})

	t.Run("refusals", func(t *testing.T) {
		require.NoError(t, admin.LPush(ctx, "list", 1).Err())
		_, err := NewMutex(admin, "list").Lock(ctx)
		require.ErrorIs(t, err, errForeign)
		require.NoError(t, admin.Set(ctx, "{members}:readers", 1, 0).Err())
		_, err = NewRWLock(admin, "members").RLock(ctx)
		require.ErrorIs(t, err, errForeign)

		guarded := startServer(t, `save ""`, "requirepass secret", "user weak on >weak ~* +@all -@scripting")
		for says, o := range map[string]*redis.Options{
			"authenticat": {}, // NOAUTH, or a refusal of so long a request before authentication
			"WRONGPASS":   {Password: "wrong"},
			"NOPERM":      {Username: "weak", Password: "weak"},
		} {
			o.Addr = guarded.addr()
			client := redis.NewClient(o)
			_, err := NewMutex(client, "orders").Lock(ctx)
			require.ErrorContains(t, err, says)
			require.NoError(t, client.Close())
		}

		replica := startServer(t, `save ""`, "replicaof 127.0.0.1 "+s.port)
		_, err = NewMutex(replica.newClient(t), "orders").Lock(ctx)
		require.ErrorIs(t, err, ErrReplica)

		full := startServer(t, `save ""`)
		client := full.newClient(t)
		held, err := NewMutex(client, "held", WithExpiry(time.Second)).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
		_, err = NewMutex(client, "orders").Lock(ctx)
		require.ErrorContains(t, err, "OOM")
		require.Zero(t, client.Exists(ctx, "orders").Val())
		require.NoError(t, held.Release(ctx))
		require.Zero(t, client.Exists(ctx, "held").Val(), "a full server releases")
		full.kill()
		_, err = NewMutex(client, "orders").Lock(ctx)
		require.ErrorContains(t, err, "refused")
	})
}

// TestAFailoverGivesTheLockAway shows what these locks do not promise. The replica does not have
// the lock when the primary dies, and grants it again; for a moment both leases stand.
func TestAFailoverGivesTheLockAway(t *testing.T) {
	ctx := t.Context()
	primary := startServer(t, `save ""`)
	replica := startServer(t, `save ""`, "replicaof 127.0.0.1 "+primary.port)
	sentinel := startServer(t, "sentinel monitor orders 127.0.0.1 "+primary.port+" 1",
		"sentinel down-after-milliseconds orders 500", "sentinel failover-timeout orders 5000")
	newClient := func() *redis.Client {
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "orders",
			SentinelAddrs: []string{sentinel.addr()}})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	admin := primary.newClient(t)
	require.Eventually(t, func() bool {
		return strings.Contains(admin.Info(ctx, "replication").Val(), "state=online") &&
			strings.Contains(sentinel.newClient(t).Info(ctx, "sentinel").Val(), "slaves=1")
	}, time.Minute, 10*time.Millisecond)

	require.NoError(t, replica.process.Signal(syscall.SIGSTOP)) // it does not connect again
	require.NoError(t, admin.ClientKillByFilter(ctx, "TYPE", "replica").Err())
	const expiry = 3 * time.Minute
	first, err := NewMutex(newClient(), "orders", WithExpiry(expiry)).Lock(ctx)
	require.NoError(t, err)
	primary.kill()
	require.NoError(t, replica.process.Signal(syscall.SIGCONT))

	m := NewMutex(newClient(), "orders")
	var second *locks.Lease
	require.Eventually(t, func() bool {
		second, err = m.Lock(ctx)
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, first.Err(), "two hold the lock")
	require.NoError(t, second.Err())
	require.LessOrEqual(t, second.Token(), first.Token(), "and the token does not tell which one is late")
	fmt.Printf("two hold the lock: the first one's lease stands for %v yet; its next renewal ends it sooner\n",
		first.Remaining().Round(time.Second))
	require.LessOrEqual(t, first.Remaining(), expiry)
	require.NoError(t, second.Release(ctx))
	require.NoError(t, first.Release(ctx))
}
