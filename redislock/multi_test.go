package redislock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestSeveralLocksOnBothStores(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		servers := zktest.Start(t)
		zk := connectZooKeeper(t, servers)
		defer func() { require.NoError(t, zk.Close(t.Context())) }()
		client, to := s.newClient(t)
		orders, stock := NewMutex(client, "orders").virtual(), locks.NewMutex(zk, "/stock")
		both := locks.NewMultiLock(orders, stock)

		lease, err := both.Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/stock,orders", both.Path())
		require.NotZero(t, lease.Session())
		require.NotEmpty(t, lease.Node())
		require.Positive(t, lease.Remaining())
		require.True(t, s.Exists("orders"))
		_, err = zk.Multi(t.Context(), lease.Guard(), framework.CreateOp("/written", nil, framework.Persistent))
		require.NoError(t, err, "the guard checks the node")
		_, err = zk.Multi(t.Context(), append(lease.Guards(), framework.CreateOp("/x", nil, framework.Persistent))...)
		require.ErrorIs(t, err, errNoGuard)
		_, err = orders.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		_, err = orders.TryLock(lease.Context())
		require.ErrorIs(t, err, locks.ErrHeld)

		to.set(func(l *link) { l.cut = true })
		<-lease.Context().Done()
		require.ErrorIs(t, lease.Err(), ErrExpired)
		synctest.Wait()
		free, err := stock.TryLock(t.Context())
		require.NoError(t, err, "its other locks are released")
		_, err = zk.Multi(t.Context(), lease.Guard(), framework.CreateOp("/late", nil, framework.Persistent))
		require.ErrorIs(t, err, ErrExpired)

		to.set(func(l *link) { l.cut = false })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = both.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, free.Release(t.Context()))
		synctest.Wait()

		onRedis, err := locks.NewMultiLock(orders, NewMutex(client, "stock").virtual()).Lock(t.Context())
		require.NoError(t, err)
		require.Zero(t, onRedis.Session())
		_, err = zk.Multi(t.Context(), onRedis.Guard())
		require.ErrorIs(t, err, errNoGuard)
		require.NoError(t, onRedis.Release(t.Context()))
		require.Equal(t, []string{"{orders}:token", "{stock}:token"}, s.Keys())
	})
}

// TestNobodyAsksAHolderOnRedis: the program may listen all the same, as for a lock on ZooKeeper.
func TestNobodyAsksAHolderOnRedis(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		servers := zktest.Start(t)
		zk := connectZooKeeper(t, servers)
		defer func() { require.NoError(t, zk.Close(t.Context())) }()
		client, _ := s.newClient(t)
		orders := NewMutex(client, "orders", WithReentry()).virtual()
		lease, err := orders.Lock(t.Context())
		require.NoError(t, err)
		nested, err := orders.Lock(lease.Context())
		require.NoError(t, err)
		stock := locks.NewMultiLock(NewMutex(client, "stock").virtual(), locks.NewMutex(zk, "/stock"))
		both, err := stock.Lock(t.Context())
		require.NoError(t, err)
		isAsked := func(l *locks.Lease) bool {
			asked := l.Revoked()
			synctest.Wait()
			select {
			case <-asked:
				return true
			default:
				return false
			}
		}
		for _, l := range []*locks.Lease{lease, nested, both} {
			require.False(t, isAsked(l))
		}
		require.NoError(t, locks.Revoke(t.Context(), zk, "/stock/"+servers.Children("/stock")[0]))
		require.True(t, isAsked(both), "its part on ZooKeeper is asked")
		for _, l := range []*locks.Lease{both, nested, lease} {
			require.NoError(t, l.Release(t.Context()))
		}
	})
}

// TestALostPartIsAcquiredAgain: the first lock ends while the second is waited for, twice.
func TestALostPartIsAcquiredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, _ := s.newClient(t)
		holder, err := NewMutex(a, "second").virtual().Lock(t.Context())
		require.NoError(t, err)
		granted := make(chan *locks.Lease)
		go func() {
			both := locks.NewMultiLock(NewMutex(b, "first").virtual(), NewMutex(b, "second").virtual())
			lease, err := both.Lock(t.Context())
			require.NoError(t, err)
			granted <- lease
		}()
		for range 3 {
			time.Sleep(time.Minute)
			require.True(t, s.Del("first"))
		}
		time.Sleep(time.Minute)
		require.NoError(t, holder.Release(t.Context()))
		lease := <-granted
		require.EqualValues(t, 4, lease.Token(), "the fourth grant of the first")
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestDo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, to := s.newClient(t)
		m := NewMutex(client, "orders").virtual()
		require.NoError(t, locks.Do(t.Context(), m, func(ctx context.Context, lease *locks.Lease) error {
			require.NoError(t, ctx.Err())
			_, err := m.TryLock(ctx)
			require.ErrorIs(t, err, locks.ErrHeld)
			return nil
		}))
		require.False(t, s.Exists("orders"))
		err := locks.Do(t.Context(), m, func(ctx context.Context, lease *locks.Lease) error {
			to.set(func(l *link) { l.cut = true })
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, ErrExpired)
		to.set(func(l *link) { l.cut = false })
	})
}

func connectZooKeeper(t *testing.T, servers *zktest.Server) *framework.Client {
	t.Helper()
	zk, err := framework.Connect(t.Context(), framework.Config{Servers: servers.Servers()},
		framework.WithDialer(servers.Link("a").DialContext), framework.WithTimeClock())
	require.NoError(t, err)
	return zk
}
