package zktest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// A program, or an example, runs a server of its own. Tests use Start, which
// cleans up after itself.
func Example() {
	srv, err := zktest.New(zktest.WithSessionTimeouts(time.Second, time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	link := srv.Link("worker")
	conn, _, err := zk.Connect(srv.Servers(), time.Minute, zk.WithDialer(link.Dial), zk.WithLogInfo(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	path, err := conn.Create("/job-", []byte("mine"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	fmt.Println(srv.Children("/"))
	fmt.Println(srv.Sessions()[0].Ephemerals)
	// Output:
	// /job-0000000000 <nil>
	// [job-0000000000 zookeeper]
	// [/job-0000000000]
}

// The answer to a request is lost: the server has done it, and the client
// cannot know.
func ExampleServer_DropReply() {
	srv, err := zktest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	link := srv.Link("worker")
	conn, _, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(link.Dial), zk.WithLogInfo(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	srv.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: "/job"})
	_, err = conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	_, created := srv.Node("/job")
	fmt.Println(err)
	fmt.Println("created:", created)
	// Output:
	// zk: connection closed
	// created: true
}

// Other programs, in whatever language, reach the server by TCP. Its time is real then.
func ExampleServer_ListenTCP() {
	srv, err := zktest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	address, err := srv.ListenTCP("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{Servers: []string{address}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	fmt.Println(client.Create(ctx, "/hello", nil, framework.Persistent))
	// Output: <nil>
}

// What follows is in docs/testing.md, word for word; a test sees to that.

func TestTheNextHolderWaitsForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		a, b := zk.Member(t, "a", framework.Config{}), zk.Member(t, "b", framework.Config{})

		first, err := locks.NewMutex(a.Client, "/orders/42").Lock(t.Context())
		require.NoError(t, err)
		a.Link.BlackHole(true, true) // no packet arrives, and neither side gets an error

		second, err := locks.NewMutex(b.Client, "/orders/42").Lock(t.Context())
		require.NoError(t, err)
		require.Error(t, first.Err()) // it ended before the second was granted
		require.Greater(t, second.Token(), first.Token())
	})
}

// Billing is a service: whichever instance leads sends reminders, one an hour.
type Billing struct {
	Client *framework.Client
	Remind func(ctx context.Context, term *election.Term) error
}

func (b *Billing) Run(ctx context.Context) error {
	return election.New(b.Client, "/billing").Lead(ctx, func(ctx context.Context, term *election.Term) error {
		for {
			select {
			case <-time.After(time.Hour):
				if err := b.Remind(ctx, term); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

func TestRemindersGoOnThroughANight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		ctx, stop := context.WithCancel(t.Context())
		sent := map[string]int{}
		var mu sync.Mutex
		var services sync.WaitGroup
		members := map[string]*zktest.Member{}
		for _, name := range []string{"a", "b"} {
			m := zk.Member(t, name, framework.Config{SessionTimeout: 40 * time.Second})
			members[name] = m
			billing := &Billing{Client: m.Client, Remind: func(ctx context.Context, term *election.Term) error {
				mu.Lock()
				defer mu.Unlock()
				sent[name]++
				return nil
			}}
			services.Go(func() {
				if err := billing.Run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			time.Sleep(time.Minute) // so that a leads
		}
		time.Sleep(4 * time.Hour)
		members["a"].Link.Cut()
		time.Sleep(8 * time.Hour) // milliseconds
		members["a"].Link.Heal()
		time.Sleep(4 * time.Hour)
		stop()
		services.Wait()
		require.Equal(t, map[string]int{"a": 4, "b": 11}, sent) // one hour was begun again
	})
}

func TestAReportIsWrittenOnceEachNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		written := map[time.Time]int{}
		var services sync.WaitGroup
		var links []*zktest.Link
		for _, name := range []string{"a", "b", "c"} {
			m := zk.Member(t, name, framework.Config{SessionTimeout: 40 * time.Second})
			links = append(links, m.Link)
			cron := scheduler.New(m.Client, "/cron")
			require.NoError(t, cron.Add(scheduler.Job{Name: "report", Spec: "0 3 * * *", Zone: time.UTC,
				Run: func(ctx context.Context, run scheduler.Run) error {
					mu.Lock()
					defer mu.Unlock()
					written[run.Tick]++
					return nil
				}}))
			services.Go(func() {
				if err := cron.Run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		for night := range 3 {
			time.Sleep(12 * time.Hour)
			links[night%3].Cut() // one of them sleeps badly
			time.Sleep(12 * time.Hour)
			links[night%3].Heal()
		}
		stop()
		services.Wait()
		require.Len(t, written, 3)
		for tick, times := range written {
			require.Equal(t, 1, times, tick)
		}
	})
}

func TestAnOrderOutlivesItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's time: no call waits for ever
		defer cancel()
		zk := zktest.Start(t)
		shop, tired, fresh := zk.Member(t, "shop", framework.Config{}), zk.Member(t, "tired", framework.Config{}),
			zk.Member(t, "fresh", framework.Config{})
		orders := func(m *zktest.Member) *queue.Queue[string] {
			return queue.New(m.Client, "/orders", codec.JSON[string]())
		}

		lost := zk.DropReply(1, zktest.Match{Op: zktest.OpMulti}) // the order is stored, and the shop cannot know
		require.NoError(t, orders(shop).Put(ctx, "42 screws"))
		<-lost.Hit()

		first, err := orders(tired).Take(ctx)
		require.NoError(t, err)
		tired.Link.Cut() // for good
		second, err := orders(fresh).Take(ctx)
		require.NoError(t, err)
		require.Equal(t, "42 screws", second.Value)
		require.Equal(t, 2, second.Attempt)
		require.Error(t, first.Context().Err(), "the first worker was told in time")
		require.NoError(t, second.Ack(ctx))
	})
}
