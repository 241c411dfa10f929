package redislock

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		_, err = NewMutex(admin, "renewed").TryLock(ctx)
		if lease.Err() == nil { // the machine was not too busy to renew, nor to ask
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

	t.Run("a paused client", func(t *testing.T) {
		holder := exec.Command(os.Args[0])
		holder.Env = append(os.Environ(), holderEnv+"="+s.addr())
		holder.Stderr = os.Stderr
		in, err := holder.StdinPipe()
		require.NoError(t, err)
		out, err := holder.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, holder.Start())
		defer func() { _ = holder.Wait() }()
		defer func() { _ = holder.Process.Kill() }()
		said := bufio.NewScanner(out)
		require.True(t, said.Scan())
		require.Equal(t, "<nil>", said.Text())
		require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
		next, err := NewMutex(admin, "paused").Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
		_, err = in.Write([]byte("\n"))
		require.NoError(t, err)
		require.True(t, said.Scan())
		require.Equal(t, ErrExpired.Error(), said.Text(), "the holder's first question has the answer")
		require.True(t, said.Scan(), "it has released")
		require.NoError(t, next.Err())
		require.EqualValues(t, 1, admin.Exists(ctx, "paused").Val(), "and not the next one's lock")
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
		require.ErrorIs(t, err, errReplica)

		full := startServer(t, `save ""`)
		client := full.newClient(t)
		held, err := NewMutex(client, "held", WithExpiry(time.Minute)).Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
		for _, l := range []locks.Locker{NewMutex(client, "orders"), NewMutex(client, "orders", WithArrivalOrder()),
			NewRWLock(client, "orders"), NewRWLock(client, "orders").RLocker()} {
			_, err = l.Lock(ctx)
			require.ErrorContains(t, err, "OOM")
			require.Empty(t, client.Keys(ctx, "*orders*").Val())
		}
		require.NoError(t, held.Release(ctx))
		require.Zero(t, client.Exists(ctx, "held").Val(), "a full server releases")
		full.kill()
		_, err = NewMutex(client, "orders").Lock(ctx)
		require.ErrorContains(t, err, "refused")
	})
}

// holderEnv makes the test's program a holder of the lock "paused" on the server with this address.
const holderEnv = "REDISLOCK_TEST_HOLDER"

// holdInThisProcess says whether its lease stands when it is granted, when it reads a line, and
// after its release.
func holdInThisProcess(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	lease, err := NewMutex(client, "paused", WithExpiry(2*time.Second)).Lock(context.Background())
	fmt.Println(err)
	if err != nil {
		return
	}
	_, _ = fmt.Scanln()
	fmt.Println(lease.Err())
	_ = lease.Release(context.Background()) // its end may have released it without an answer
	fmt.Println(lease.Err())
}

// TestOnACluster uses three servers, each of which has some of the locks.
func TestOnACluster(t *testing.T) {
	ctx := t.Context()
	var servers []*realServer
	var admins []*redis.Client
	var addrs []string
	for i := range 3 {
		s := startServer(t, `save ""`, "cluster-enabled yes")
		client := s.newClient(t)
		servers, admins, addrs = append(servers, s), append(admins, client), append(addrs, s.addr())
		require.NoError(t, client.ClusterAddSlotsRange(ctx, i*5462, min(i*5462+5461, 16383)).Err())
		if i > 0 {
			require.NoError(t, client.ClusterMeet(ctx, "127.0.0.1", servers[0].port).Err())
		}
	}
	for _, client := range admins {
		require.Eventually(t, func() bool {
			info := client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:3")
		}, time.Minute, 10*time.Millisecond)
	}
	newClient := func() *redis.ClusterClient {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	a, b := newClient(), newClient()
	for n := range 12 {
		name := fmt.Sprint("orders-", n)
		for _, opts := range [][]Option{{WithExpiry(MaxExpiry)}, {WithExpiry(MaxExpiry), WithArrivalOrder()}} {
			first, err := NewMutex(a, name, opts...).Lock(ctx)
			require.NoError(t, err)
			granted := make(chan *locks.Lease)
			go func() {
				lease, err := NewMutex(b, name, opts...).Lock(ctx)
				require.NoError(t, err)
				granted <- lease
			}()
			require.Eventually(t, func() bool {
				return a.Exists(ctx, "{"+name+"}:waiting", "{"+name+"}:line").Val() > 0
			}, time.Minute, time.Millisecond)
			require.NoError(t, first.Release(ctx))
			second := <-granted // by a call: it does not try again itself for eight hours
			require.Greater(t, second.Token(), first.Token())
			require.NoError(t, second.Release(ctx))
		}
	}

	t.Run("while a slot moves", func(t *testing.T) {
		const name = "moved"
		slot := int(a.ClusterKeySlot(ctx, name).Val())
		at := slot / 5462
		move := func() {
			next := (at + 1) % len(servers)
			from, to := admins[at], admins[next]
			fromID, toID := from.Do(ctx, "CLUSTER", "MYID").Val(), to.Do(ctx, "CLUSTER", "MYID").Val()
			require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID).Err())
			require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID).Err())
			for {
				keys := from.ClusterGetKeysInSlot(ctx, slot, 100).Val()
				if len(keys) == 0 {
					break
				}
				command := []any{"MIGRATE", "127.0.0.1", servers[next].port, "", 0, 5000, "KEYS"}
				for _, key := range keys {
					command = append(command, key)
				}
				require.NoError(t, from.Do(ctx, command...).Err())
			}
			require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID).Err())
			require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID).Err())
			at = next
			require.Eventually(t, func() bool { // the servers agree before the slot moves again
				return !slices.ContainsFunc(admins, func(admin *redis.Client) bool {
					return !owns(admin.ClusterShards(ctx).Val(), int64(slot), servers[at])
				})
			}, time.Minute, time.Millisecond)
		}
		expiry := WithExpiry(5 * time.Second)
		first, err := NewMutex(a, name, expiry).Lock(ctx)
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			lease, err := NewMutex(b, name, expiry).Lock(ctx)
			require.NoError(t, err)
			granted <- lease
		}()
		require.Eventually(t, func() bool { return a.Exists(ctx, "{"+name+"}:waiting").Val() > 0 }, time.Minute,
			time.Millisecond)
		move() // the waiter still listens to the former server
		_ = first.Release(ctx)
		second := <-granted
		require.Greater(t, second.Token(), first.Token())
		require.NoError(t, second.Release(ctx))

		var mu sync.Mutex
		tokens := map[int64]bool{second.Token(): true}
		var all sync.WaitGroup
		for _, client := range []*redis.ClusterClient{a, b} {
			m := NewMutex(client, name, expiry)
			all.Go(func() {
				for range 20 {
					lease, err := m.Lock(ctx)
					if err != nil && isTransient(err) { // the slot moved at its first attempt
						continue
					}
					require.NoError(t, err)
					mu.Lock()
					require.False(t, tokens[lease.Token()], "the count of grants has moved, too")
					tokens[lease.Token()] = true
					mu.Unlock()
					_ = lease.Release(ctx) // its key may have expired while the slot moved
				}
			})
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		for moving := true; moving; {
			move()
			select {
			case <-ended:
				moving = false
			default:
			}
		}
		require.Greater(t, len(tokens), 1)
	})

	refused := 0
	for n := range 12 {
		lease, err := NewMutex(admins[0], fmt.Sprint("orders-", n)).Lock(ctx)
		if err == nil { // the server has this one
			require.NoError(t, lease.Release(ctx))
			continue
		}
		require.ErrorIs(t, err, errInvalid)
		require.ErrorContains(t, err, "NewClusterClient")
		refused++
	}
	require.Positive(t, refused, "the server has not all of the names")
	require.Eventually(t, func() bool {
		subscriptions := 0
		for _, admin := range admins {
			subscriptions += len(admin.PubSubChannels(ctx, "*").Val())
		}
		return subscriptions == 0
	}, time.Minute, 100*time.Millisecond, "they end when nobody waits any more")
}

// owns reports whether a server has a slot, by what another one says.
func owns(shards []redis.ClusterShard, slot int64, server *realServer) bool {
	return slices.ContainsFunc(shards, func(s redis.ClusterShard) bool {
		return fmt.Sprint(s.Nodes[0].Port) == server.port && slices.ContainsFunc(s.Slots, func(r redis.SlotRange) bool {
			return r.Start <= slot && slot <= r.End
		})
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
