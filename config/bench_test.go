package config_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func BenchmarkGet(b *testing.B) {
	zk := zktest.Start(b)
	v := config.New(zk.Member(b, "a", framework.Config{}).Client, path, codec.JSON[limits](),
		config.WithDefault(limits{Rate: 10}))
	b.ReportAllocs()
	sum := 0
	for b.Loop() {
		sum += v.Get().Rate
	}
	_ = sum
}

const readers, readersClients = 1000, 20

// BenchmarkAChangeReachesReaders changes a value for 1,000 readers of 20 clients, on one server in
// memory.
func BenchmarkAChangeReachesReaders(b *testing.B) {
	zk := zktest.Start(b)
	writer := zk.Member(b, "writer", framework.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := writer.MakeDirs(ctx, "/app"); err != nil {
		b.Fatal(err)
	}
	if err := writer.Create(ctx, path, []byte("0"), framework.Persistent); err != nil {
		b.Fatal(err)
	}
	set := func(n int) {
		if _, err := writer.Set(ctx, path, fmt.Append(nil, n), framework.AnyVersion); err != nil {
			b.Error(err)
		}
	}
	var clients []*framework.Client
	for i := range readersClients {
		clients = append(clients, zk.Member(b, fmt.Sprint(i), framework.Config{}).Client)
	}
	b.Run("bare watches", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			b.StopTimer() // a watch tells once: only the change is measured, as for values
			var armed, told sync.WaitGroup
			for i := range readers {
				armed.Add(1)
				told.Go(func() {
					s, err := clients[i%readersClients].Session(ctx)
					if err != nil {
						b.Error(err)
						armed.Done()
						return
					}
					_, _, w, err := s.WatchData(ctx, path)
					armed.Done()
					if err != nil {
						b.Error(err)
						return
					}
					<-w.C()
				})
			}
			armed.Wait()
			b.StartTimer()
			set(n)
			told.Wait()
		}
	})
	b.Run("values", func(b *testing.B) {
		ctx, cancel := context.WithCancel(ctx)
		got := make(chan struct{}, readers)
		var loops sync.WaitGroup
		for i := range readers {
			v := config.New(clients[i%readersClients], path, codec.Bytes())
			loops.Go(func() {
				for s, err := range v.Follow(ctx) {
					if err == nil && s.Source == config.FromServers {
						got <- struct{}{}
					}
				}
			})
		}
		for range readers {
			<-got
		}
		n := 0
		for b.Loop() {
			n++
			set(n)
			for range readers {
				<-got
			}
		}
		cancel()
		loops.Wait()
	})
}
