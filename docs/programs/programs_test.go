package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// These tests show that the programs do what the page says, each once and without faults. The leader
// needs Kubernetes, and has no test.

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// etcd returns a client of a server of its own.
func etcd(t *testing.T) *clientv3.Client {
	var addresses []string
	for range 2 {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		addresses = append(addresses, "http://"+free.Addr().String())
		check(t, free.Close())
	}
	var log bytes.Buffer
	server := exec.Command("etcd", "--data-dir", t.TempDir(), "--listen-client-urls", addresses[0],
		"--advertise-client-urls", addresses[0], "--listen-peer-urls", addresses[1],
		"--initial-advertise-peer-urls", addresses[1], "--initial-cluster", "default="+addresses[1])
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal("install etcd (Debian: etcd-server): ", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: addresses[:1], DialTimeout: time.Minute})
	check(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

func redisClient(t *testing.T) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestMigrate(t *testing.T) {
	client := etcd(t)
	var running, most atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := migrate(t.Context(), client, func(context.Context) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(10 * time.Millisecond)
				running.Add(-1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Error("at once: ", most.Load())
	}
}

func TestNightly(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ran, ended := make(chan bool, 4), make(chan error)
	go func() {
		ended <- nightly(ctx, redisClient(t), func(context.Context) error {
			ran <- true
			return errNoSales
		})
	}()
	for {
		answer := httptest.NewRecorder()
		http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequest("POST", "/report", nil))
		if answer.Code == http.StatusOK {
			break
		}
	}
	<-ran
	stop()
	check(t, <-ended)
	if len(ran) > 0 {
		t.Error("a permanent error was tried again")
	}
}

func TestTasks(t *testing.T) {
	server := redisClient(t)
	client, inspector := asynq.NewClientFromRedisClient(server), asynq.NewInspectorFromRedisClient(server)
	check(t, put(t.Context(), client, "mail", Mail{To: "ann"}))
	check(t, put(t.Context(), client, "mail", Mail{}))
	check(t, put(t.Context(), client, "thumbnail", Thumbnail{"cat.png", "64x64"}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- workOnTasks(ctx, server) }()
	for {
		queue, err := inspector.GetQueueInfo("default")
		check(t, err)
		if queue.Archived == 1 && queue.Size == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	check(t, <-ended)
}

func TestLimited(t *testing.T) {
	client, began := redisClient(t), time.Now()
	for range 7 {
		check(t, limited(t.Context(), client, func(context.Context) error { return nil }))
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Error("seven calls took ", took)
	}
}

func TestFlags(t *testing.T) {
	client := etcd(t)
	ctx, stop := context.WithCancel(t.Context())
	var flags atomic.Pointer[Flags]
	flags.Store(&Flags{})
	var following sync.WaitGroup
	following.Go(func() { followFlags(ctx, client, &flags) })
	for i, value := range []string{`{"newCheckout":true,"percent":101}`, `{"newCheckout":true,"percent":10}`} {
		_, err := client.Put(ctx, "/shop/flags", value)
		check(t, err)
		for i == 1 && checkout(&flags, 7) != "the new checkout" {
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	following.Wait()
}

func TestBilling(t *testing.T) {
	client := etcd(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serveBilling(ctx, client, server, listener) }()
	conn, err := dialBilling(client)
	check(t, err)
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	check(t, err)
	check(t, conn.Close())
	stop()
	check(t, <-ended)
}

func TestEventIDs(t *testing.T) {
	client := etcd(t)
	var given []int64
	for range 3 {
		node, session, err := newEventIDs(t.Context(), client)
		check(t, err)
		defer session.Close()
		given = append(given, node.Generate().Int64())
	}
	slices.Sort(given)
	if len(slices.Compact(given)) != 3 {
		t.Error("given twice: ", given)
	}
}

func TestSale(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	check(t, workOnSales(ctx, "sqlite:"+t.TempDir()+"/shop.db", func(flows dbos.Context) {
		result, err := order(flows, "sale-1", 7)
		check(t, err)
		if result != "refunded" {
			t.Error(result)
		}
		stop()
	}))
}
