package lockstep_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// bench is a server with the client of a service that runs in the background.
type bench struct {
	t      *testing.T
	zk     *zktest.Server
	link   *zktest.Link
	client *framework.Client
	health lockstep.Health
	stop   context.CancelFunc
	result chan error
}

// newBench makes a client that is not started.
func newBench(t *testing.T) *bench {
	zk := zktest.Start(t)
	b := &bench{t: t, zk: zk, link: zk.Link("service"), result: make(chan error, 1)}
	var err error
	b.client, err = framework.New(framework.Config{Servers: zk.Servers(), Identity: "service"},
		framework.WithDialer(b.link.DialContext), framework.WithTimeClock(),
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	return b
}

// run begins to run a service. It ends with b.stop, and no signal.
func (b *bench) run(parts []lockstep.Part, opts ...lockstep.Option) {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.stop = cancel
	b.t.Cleanup(cancel)
	opts = append([]lockstep.Option{lockstep.WithSignals(), lockstep.WithHealthState(&b.health)}, opts...)
	go func() { b.result <- lockstep.Run(ctx, b.client, parts, opts...) }()
}

// untilEnd is a function of a part that ends with its context.
func untilEnd(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// waitFor waits, in virtual time, until check holds.
func waitFor(t *testing.T, check func() bool) {
	t.Helper()
	for range 1000 {
		synctest.Wait()
		if check() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("it does not come about")
}

func (b *bench) waitUntilReady() {
	b.t.Helper()
	waitFor(b.t, func() bool { return b.health.Ready() == nil })
}

// TestPartsStopInOrder checks, at the end of each part, which other parts still work.
func TestPartsStopInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		other := b.zk.Member(t, "other", framework.Config{})
		group := members.New(other.Client, "/web")
		pool := registry.NewPool(other.Client, "/services", "web")
		defer pool.Close(context.Background())
		standIn := election.New(other.Client, "/leader")
		state := func() (s struct{ pool, leader, member bool }) {
			picked, err := pool.Pick(t.Context())
			if s.pool = err == nil; s.pool {
				picked.Done(nil)
			}
			_, err = standIn.Leader(t.Context())
			s.leader = err == nil
			view, err := group.Inspect(t.Context())
			require.NoError(t, err)
			s.member = len(view.Members) == 1
			return s
		}
		type seen struct {
			part                 string
			pool, leader, member bool
		}
		var order []seen
		end := func(part string) {
			s := state()
			order = append(order, seen{part, s.pool, s.leader, s.member})
		}
		function := func(name string) func(context.Context) error {
			return func(ctx context.Context) error { <-ctx.Done(); end(name); return nil }
		}
		b.run([]lockstep.Part{ // in another order than they end
			lockstep.Background("value", function("value")),
			lockstep.Join(members.New(b.client, "/web"), "web-1", members.Info{}),
			lockstep.Lead(election.New(b.client, "/leader"), func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				end("leader")
				return nil
			}),
			lockstep.Register("instance", registry.New(b.client, "/services"),
				registry.Instance{Service: "web", ID: "1", Address: "a", Port: 80}),
			lockstep.Go("work", function("work")),
		})
		b.waitUntilReady()
		waitFor(t, func() bool { s := state(); return s.pool && s.leader && s.member })
		b.stop()
		require.NoError(t, <-b.result)
		require.Equal(t, []seen{
			{"work", false, true, true}, {"leader", false, true, true}, {"value", false, false, true},
		}, order)
		require.False(t, state().member)
		require.Len(t, b.zk.Sessions(), 1, "that of the other client")
		require.EqualError(t, b.health.Ready(), "the service does not run")
	})
}

// TestAServiceStartsWhileTheServersAreAway and drains while they are: it is live all the time.
func TestAServiceStartsWhileTheServersAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.link.Cut()
		leading, release := make(chan struct{}), make(chan struct{})
		require.NoError(t, b.health.Live())
		require.EqualError(t, b.health.Ready(), "the service does not run")
		b.run([]lockstep.Part{lockstep.Lead(election.New(b.client, "/leader"),
			func(ctx context.Context, _ *election.Term) error {
				close(leading)
				<-release
				return ctx.Err()
			})})
		time.Sleep(time.Hour)
		require.NoError(t, b.health.Live())
		require.ErrorContains(t, b.health.Ready(), "no session; "+b.zk.Servers()[0])
		b.link.Heal()
		<-leading
		b.waitUntilReady()

		b.link.Cut()
		synctest.Wait()
		require.Equal(t, framework.Suspended, b.client.Status().State)
		require.NoError(t, b.health.Ready(), "its holds stand")
		waitFor(t, func() bool { return b.client.Status().State == framework.Connecting })
		require.ErrorContains(t, b.health.Ready(), "no session")
		require.NoError(t, b.health.Live())
		b.link.Heal()
		b.waitUntilReady()
		b.stop()
		synctest.Wait()
		require.EqualError(t, b.health.Ready(), "the service drains")
		require.NoError(t, b.health.Live())
		close(release)
		require.NoError(t, <-b.result)
	})
}

// TestReadyMeansListed: a service whose instance cannot be registered is not ready.
func TestReadyMeansListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run([]lockstep.Part{lockstep.Go("work", untilEnd), lockstep.Register("instance",
			registering(func(ctx context.Context) (*registry.Registration, error) { return nil, untilEnd(ctx) }),
			registry.Instance{})})
		waitFor(t, func() bool { return b.client.Status().State == framework.Connected })
		require.EqualError(t, b.health.Ready(), "the parts are starting")
		b.stop()
		require.NoError(t, <-b.result, "the registration was not made in time, which is no error")
	})
}

// TestAnInstanceIsRegisteredLast: callers find it when the other parts have started.
func TestAnInstanceIsRegisteredLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.link.Cut()
		var asked atomic.Bool
		b.run([]lockstep.Part{
			lockstep.Register("instance",
				registering(func(ctx context.Context) (*registry.Registration, error) {
					asked.Store(true)
					return nil, untilEnd(ctx)
				}), registry.Instance{}),
			lockstep.Join(members.New(b.client, "/web"), "web-1", members.Info{}),
		})
		time.Sleep(time.Minute)
		require.False(t, asked.Load())
		b.link.Heal()
		waitFor(t, asked.Load)
		b.stop()
		require.NoError(t, <-b.result)
	})
}

// registering is a registry whose Register is this function.
type registering func(ctx context.Context) (*registry.Registration, error)

func (f registering) Register(ctx context.Context, _ registry.Instance, _ ...registry.RegisterOption) (
	*registry.Registration, error) {
	return f(ctx)
}

// TestTheSessionExpiresWhileTheServiceDrains: what it held has ended, and the stop goes on.
func TestTheSessionExpiresWhileTheServiceDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run([]lockstep.Part{
			lockstep.Go("work", func(ctx context.Context) error {
				<-ctx.Done()
				b.zk.Expire(b.client.Status().SessionID)
				b.link.Cut()
				return nil
			}),
			lockstep.Lead(election.New(b.client, "/leader"),
				func(ctx context.Context, _ *election.Term) error { return untilEnd(ctx) }),
			lockstep.Register("instance", registry.New(b.client, "/services"),
				registry.Instance{Service: "web", ID: "1", Address: "a", Port: 80}),
			lockstep.Join(members.New(b.client, "/web"), "web-1", members.Info{}),
		})
		b.waitUntilReady()
		began := time.Now()
		b.stop()
		if err := <-b.result; err != nil {
			require.ErrorIs(t, err, framework.ErrUnconfirmed)
		}
		require.LessOrEqual(t, time.Since(began), lockstep.DefaultGrace)
	})
}

// TestTheGraceEnds with a function that goes on: the session is closed all the same.
func TestTheGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		release := make(chan struct{})
		var leaderEnded time.Duration
		var began time.Time
		b.run([]lockstep.Part{
			lockstep.Go("slow", func(context.Context) error { <-release; return nil }),
			lockstep.Lead(election.New(b.client, "/leader"), func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				leaderEnded = time.Since(began)
				return nil
			}),
		}, lockstep.WithGrace(8*time.Second))
		b.waitUntilReady()
		waitFor(t, func() bool { return b.client.Status().EphemeralBytes > 0 })
		began = time.Now()
		b.stop()
		err := <-b.result
		require.Equal(t, 8*time.Second, time.Since(began))
		require.ErrorIs(t, err, framework.ErrUnfinished)
		require.EqualError(t, err, "slow: it has not ended within 7s of the stop")
		require.Equal(t, 7*time.Second, leaderEnded)
		require.Empty(t, b.zk.Sessions())
		require.Error(t, b.health.Live())
		close(release)
	})
}

// TestRecipesKeepToTheGrace: a handler has three quarters of the service's grace, though the
// queue's own is longer.
func TestRecipesKeepToTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		mails := queue.New(b.client, "/mails", codec.Text())
		working := make(chan struct{})
		var began time.Time
		var took time.Duration
		var cause error
		b.run([]lockstep.Part{
			lockstep.Go("put", func(ctx context.Context) error { return mails.Put(ctx, "m") }),
			lockstep.Go("mails", func(ctx context.Context) error {
				return mails.Work(ctx, 1, func(ctx context.Context, _ *queue.Delivery[string]) error {
					close(working)
					<-ctx.Done()
					took, cause = time.Since(began), context.Cause(ctx)
					return nil
				})
			}),
		}, lockstep.WithGrace(8*time.Second))
		<-working
		began = time.Now()
		b.stop()
		err := <-b.result
		require.Equal(t, 6*time.Second, took)
		require.ErrorIs(t, cause, framework.ErrDraining)
		require.ErrorIs(t, err, framework.ErrDraining)
		require.NotErrorIs(t, err, framework.ErrUnfinished)
	})
}

// TestAPartFails: the others end in order, and the error names the part.
func TestAPartFails(t *testing.T) {
	own := errors.New("disk full")
	for name, c := range map[string]struct {
		f    func(context.Context) error
		is   error
		says string
	}{
		"an error": {func(context.Context) error { return own }, own, "bad: disk full"},
		"a panic": {
			func(context.Context) error { panic("oops") }, framework.ErrPanic, "bad: the function panicked: oops",
		},
		"Goexit": {
			func(context.Context) error { runtime.Goexit(); return nil }, framework.ErrPanic,
			"bad: the function panicked: it has ended its goroutine (runtime.Goexit)",
		},
		"a context": {
			func(context.Context) error { return context.Canceled }, context.Canceled, "bad: context canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				ended := false
				good := lockstep.Go("good", func(ctx context.Context) error { <-ctx.Done(); ended = true; return nil })
				b.run([]lockstep.Part{lockstep.Background("bad", c.f), good})
				err := <-b.result
				require.ErrorIs(t, err, c.is)
				require.EqualError(t, err, c.says)
				var part *lockstep.PartError
				require.ErrorAs(t, err, &part)
				require.Equal(t, "bad", part.Part)
				require.True(t, ended)
			})
		})
	}
}

// TestAPanicOfALeader ends the service, and gives the lead away. It is not called again.
func TestAPanicOfALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		calls := 0
		b.run([]lockstep.Part{
			lockstep.Lead(election.New(b.client, "/leader"), func(context.Context, *election.Term) error {
				calls++
				panic("oops")
			}),
			lockstep.Go("work", func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(10 * time.Second) // in which an election would call its function again
				return nil
			}),
		})
		err := <-b.result
		require.ErrorIs(t, err, framework.ErrPanic)
		require.EqualError(t, err, "election /leader: the function panicked: oops")
		require.Equal(t, 1, calls)
		require.Empty(t, b.zk.Sessions())
	})
}

// TestAServiceEndsWhenItsWorkIsDone, and not before.
func TestAServiceEndsWhenItsWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		b.run([]lockstep.Part{
			lockstep.Go("short", func(context.Context) error { return nil }),
			lockstep.Lead(election.New(b.client, "/leader"), func(context.Context, *election.Term) error {
				time.Sleep(time.Hour)
				return election.ErrStop
			}),
			lockstep.Background("value", untilEnd),
		})
		require.NoError(t, <-b.result)
		require.GreaterOrEqual(t, time.Since(began), time.Hour)
	})
}

// TestAServiceWithoutFunctionsGoesOn until it is stopped.
func TestAServiceWithoutFunctionsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run([]lockstep.Part{lockstep.Background("short", func(context.Context) error { return nil })})
		time.Sleep(time.Hour)
		require.Empty(t, b.result)
		b.stop()
		require.NoError(t, <-b.result)
	})
}

// TestRefusedArguments: a service that cannot be one does not connect, and says why.
func TestRefusedArguments(t *testing.T) {
	zk := zktest.Start(t)
	away := zk.Link("away")
	away.Cut()
	newClient := func() *framework.Client {
		c, err := framework.New(framework.Config{Servers: zk.Servers()}, framework.WithDialer(away.DialContext),
			framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		return c
	}
	c := newClient()
	lead := func(context.Context, *election.Term) error { return nil }
	good := []lockstep.Part{lockstep.Go("work", untilEnd)}
	var used lockstep.Health
	running, stop := context.WithCancel(t.Context())
	var other sync.WaitGroup
	other.Go(func() {
		_ = lockstep.Run(running, newClient(), good, lockstep.WithHealthState(&used), lockstep.WithSignals())
	})
	require.Eventually(t, func() bool { return used.Ready().Error() != "the service does not run" },
		time.Minute, time.Millisecond)
	for says, run := range map[string]func() error{
		"it has no parts": func() error { return lockstep.Run(t.Context(), c, nil) },
		"part 0 is empty: make it with Go, Lead, Background, Register or Join": func() error {
			return lockstep.Run(t.Context(), c, make([]lockstep.Part, 1))
		},
		"work: the service has two parts of this name": func() error {
			return lockstep.Run(t.Context(), c, append(good, good...))
		},
		"election /a: the service has two parts of this name": func() error {
			e := election.New(c, "/a")
			return lockstep.Run(t.Context(), c, []lockstep.Part{lockstep.Lead(e, lead), lockstep.Lead(e, lead)})
		},
		"part 0 has no name": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{lockstep.Go("", untilEnd)})
		},
		"work: the function is nil": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{lockstep.Go("work", nil)})
		},
		"election /a: the function is nil": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{
				lockstep.Lead[*election.Term](election.New(c, "/a"), nil)})
		},
		"election: the election is nil": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{lockstep.Lead((*election.Election)(nil), lead)})
		},
		`election no path: invalid path "no path": it must begin with a slash`: func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{lockstep.Lead(election.New(c, "no path"), lead)})
		},
		"instance: the registry is nil": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{
				lockstep.Register("instance", (*registry.Registry)(nil), registry.Instance{})})
		},
		"member 1: the group is nil": func() error {
			return lockstep.Run(t.Context(), c, []lockstep.Part{
				lockstep.Join((*members.Group)(nil), "1", members.Info{})})
		},
		"WithGrace: 0s: it must be positive": func() error {
			return lockstep.Run(t.Context(), c, good, lockstep.WithGrace(0))
		},
		"WithSignals: signal 0 is nil": func() error {
			return lockstep.Run(t.Context(), c, good, lockstep.WithSignals(nil))
		},
		`WithProbes: "8080": want host:port or :port`: func() error {
			return lockstep.Run(t.Context(), c, good, lockstep.WithProbes("8080"))
		},
		"WithHealthState: the Health is nil": func() error {
			return lockstep.Run(t.Context(), c, good, lockstep.WithHealthState(nil))
		},
		"WithHealthState: another service uses this Health": func() error {
			return lockstep.Run(t.Context(), c, good, lockstep.WithHealthState(&used))
		},
		"the client is nil": func() error { return lockstep.Run(t.Context(), nil, good) },
	} {
		err := run()
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	stop()
	other.Wait()
	require.Empty(t, zk.Sessions())
}

// TestProbes checks the pages that WithProbes serves.
func TestProbes(t *testing.T) {
	zk := zktest.Start(t)
	c, err := framework.New(framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("service").DialContext))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	parts := []lockstep.Part{lockstep.Go("work", untilEnd)}
	require.ErrorContains(t, lockstep.Run(ctx, c, parts, lockstep.WithProbes(listener.Addr().String())),
		"address already in use")

	var log logtest.Buffer
	c, err = framework.New(framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("service").DialContext),
		framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	result := make(chan error)
	go func() {
		result <- lockstep.Run(ctx, c, parts, lockstep.WithProbes("127.0.0.1:0"), lockstep.WithSignals())
	}()
	address := healthAddress(t, &log)
	require.Eventually(t, func() bool { status, _ := probe(t, address, "readyz"); return status == http.StatusOK },
		time.Minute, time.Millisecond)
	status, body := probe(t, address, "livez")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", body)
	status, _ = probe(t, address, "other")
	require.Equal(t, http.StatusNotFound, status)
	cancel()
	require.NoError(t, <-result)
	status, body = probe(t, address, "livez")
	require.Zero(t, status, body)

	answer := httptest.NewRecorder()
	new(lockstep.Health).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/probe/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "the service does not run\n", answer.Body.String())
}

// healthAddress waits until a service has logged where it serves its health.
func healthAddress(t *testing.T, log *logtest.Buffer) (address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := regexp.MustCompile(`"?serving health"? address=(\S+)`).FindStringSubmatch(log.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	}, time.Minute, time.Millisecond)
	return address
}

// probe gets a page of a service's health: its status and body, or 0 and the error.
func probe(t *testing.T, address, page string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + "/" + page)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// TestEachRecipeIsAPart compiles a service of all recipes.
func TestEachRecipeIsAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		c := b.client
		jobs := scheduler.New(c, "/jobs")
		require.NoError(t, jobs.Add(scheduler.Job{Name: "j", Spec: "@yearly",
			Run: func(context.Context, scheduler.Run) error { return nil }}))
		orders := workflow.New(c, "/orders")
		require.NoError(t, orders.Register(workflow.NewKind[string, string]("order").Function(
			func(context.Context, *workflow.Run, string) (string, error) { return "", nil })))
		b.run([]lockstep.Part{
			lockstep.Go("jobs", jobs.Run),
			lockstep.Go("orders", orders.Work),
			lockstep.Background("limits", config.New(c, "/limits", codec.Text()).Run),
			lockstep.Background("monitor", monitor.New(c, "/monitor", "/").Run),
			lockstep.Register("instance", registry.New(c, "/services"),
				registry.Instance{Service: "web", ID: "1", Address: "a", Port: 80}, registry.WithLinger(time.Second)),
			lockstep.Join(members.New(c, "/web"), "web-1", members.Info{}),
		})
		b.waitUntilReady()
		time.Sleep(time.Minute)
		b.stop()
		require.NoError(t, <-b.result)
		require.Empty(t, b.zk.Sessions())
	})
}
