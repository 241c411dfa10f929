package schedulerfx_test

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/scheduler/schedulerfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1) // fx listens for them: the runtime's part of that must be begun outside bubbles
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

const (
	timeout  = 10 * time.Second
	testPath = "/cron"
)

// world is a server in memory, in virtual time, and the runs that were started.
type world struct {
	*zktest.Server
	t       *testing.T
	started *started
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t, &started{}}) })
}

// started are the jobs of the runs that were started.
type started struct {
	mu    sync.Mutex
	names []string
}

func (s *started) option() scheduler.Option {
	return scheduler.WithOnEvent(func(e scheduler.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Kind == scheduler.EventStarted {
			s.names = append(s.names, e.Job)
		}
	})
}

func (s *started) jobs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.names))
}

func quick(context.Context, scheduler.Run) error { return nil }

// lasting returns a job function that takes some time.
func lasting(d time.Duration) func(context.Context, scheduler.Run) error {
	return func(ctx context.Context, _ scheduler.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// app is an application with the scheduler's module, on a server in memory, in virtual time.
func (w *world) app(opts ...fx.Option) *fxtest.App {
	return fxtest.New(w.t, append([]fx.Option{
		frameworkfx.Module, frameworkfx.Grace(scheduler.DefaultGrace), schedulerfx.At(testPath),
		fx.Supply(framework.Config{Servers: w.Servers(), SessionTimeout: timeout}),
		frameworkfx.AsOption(framework.WithDialer(w.Link("app").DialContext)),
		frameworkfx.AsOption(framework.WithTimeClock()),
	}, opts...)...)
}

func TestModuleRunsJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var ran, ended atomic.Int64
		work := func(ctx context.Context, _ scheduler.Run) error {
			ran.Add(1)
			defer ended.Add(1)
			return lasting(3*time.Second)(ctx, scheduler.Run{})
		}
		app := w.app(
			fx.Supply(&ran),
			schedulerfx.AsJob(func(*atomic.Int64) scheduler.Job {
				return scheduler.Job{Name: "one", Spec: "* * * * *",
					Run: work}
			}),
			schedulerfx.AsJob(func() scheduler.Job {
				return scheduler.Job{Name: "two", Spec: "* * * * *",
					Run: quick}
			}),
			schedulerfx.AsOption(w.started.option()),
		)
		app.RequireStart()
		time.Sleep(61 * time.Second)
		require.EqualValues(t, 1, ran.Load())
		require.Equal(t, []string{"one", "two"}, w.started.jobs())
		app.RequireStop()
		require.EqualValues(t, 1, ended.Load(), "stop waits for the run")
		_, ok := w.Node(testPath + "/jobs/one")
		require.True(t, ok)
		require.Empty(t, w.Sessions())
	})
}

func TestModuleStartsAndStopsWithoutAServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.Server.Close()
		app := w.app(schedulerfx.AsJob(scheduler.Job{Name: "j", Spec: "* * * * *", Run: quick}))
		app.RequireStart()
		time.Sleep(time.Minute)
		app.RequireStop()
	})
}

func TestModuleShutsTheApplicationDownWhenItCannotGoOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		client := w.Member(t, "a", framework.Config{SessionTimeout: timeout}).Client
		require.NoError(t, client.MakeDirs(t.Context(), testPath+"/jobs"))
		require.NoError(t, client.Create(t.Context(), testPath+"/jobs/j", []byte(`{"v":2}`), framework.Persistent))
		app := w.app(schedulerfx.AsJob(scheduler.Job{Name: "j", Spec: "0 4 * * *", Run: quick}))
		app.RequireStart()
		require.Equal(t, 1, (<-app.Wait()).ExitCode)
		app.RequireStop()
	})
}

func TestModuleRefusesBadJobs(t *testing.T) {
	client := fx.Options(frameworkfx.Module, fx.NopLogger,
		fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	base := fx.Options(client, schedulerfx.At(testPath, scheduler.WithGrace(10*time.Second)))
	j := func() scheduler.Job { return scheduler.Job{Name: "j", Spec: "* * * * *", Run: quick} }
	require.NoError(t, fx.New(base).Err(), "no jobs, nothing to do")
	require.ErrorIs(t, fx.New(base, schedulerfx.AsJob(j), schedulerfx.AsJob(j)).Err(), framework.ErrInvalid)
	require.ErrorIs(t, fx.New(base,
		schedulerfx.AsJob(func() scheduler.Job { return scheduler.Job{Name: "j", Spec: "TZ=", Run: quick} })).Err(),
		framework.ErrInvalid)
	require.NoError(t, fx.New(base, schedulerfx.AsJob(scheduler.Job{Name: "j", Spec: "* * * * *", Run: quick})).Err())
	require.ErrorIs(t, fx.New(client, schedulerfx.At("x")).Err(), framework.ErrInvalid)
	long := schedulerfx.AsOption(func() scheduler.Option { return scheduler.WithGrace(time.Minute) })
	require.ErrorContains(t, fx.New(base, long).Err(), "scheduler.WithGrace: functions may take 1m0s to end, and the "+
		"application's stop allows 11.25s: give fx.New frameworkfx.Grace(1m0s)")
	require.NoError(t, fx.New(base, long, frameworkfx.Grace(time.Minute)).Err())
}

func TestModuleRefusesConstructorsOfOtherTypes(t *testing.T) {
	for says, constructor := range map[string]any{
		"got func() *scheduler.Job": func() *scheduler.Job { return &scheduler.Job{} },
		"got func() string":         func() string { return "" },
		"got string":                "j",
	} {
		app := fx.New(fx.NopLogger, frameworkfx.Module, schedulerfx.At(testPath),
			fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}), schedulerfx.AsJob(constructor))
		require.ErrorContains(t, app.Err(),
			"schedulerfx.AsJob: want scheduler.Job or []scheduler.Job, or a function that returns one")
		require.ErrorContains(t, app.Err(), says)
	}
}

func TestModuleRunsJobsAddedToScheduler(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		add := func(name string) func(*scheduler.Scheduler) error {
			return func(s *scheduler.Scheduler) error {
				return s.Add(scheduler.Job{Name: name, Spec: "* * * * *", Run: quick})
			}
		}
		var s *scheduler.Scheduler
		app := w.app(schedulerfx.AsOption(w.started.option()), fx.Invoke(add("invoked")), fx.Populate(&s))
		app.RequireStart()
		time.Sleep(30 * time.Second)
		require.NoError(t, add("later")(s))
		time.Sleep(31 * time.Second)
		require.Equal(t, []string{"invoked", "later"}, w.started.jobs())
		app.RequireStop()
	})
}

// TestModuleWaitsForTheFirstJob adds it after the start; until then nothing is asked of the
// servers.
func TestModuleWaitsForTheFirstJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var s *scheduler.Scheduler
		app := w.app(schedulerfx.AsOption(w.started.option()), schedulerfx.AsJob(func() []scheduler.Job { return nil }),
			fx.Populate(&s))
		app.RequireStart()
		time.Sleep(30 * time.Second)
		require.Empty(t, w.Children(testPath))
		require.NoError(t, s.Add(scheduler.Job{Name: "first", Spec: "* * * * *", Run: quick}))
		time.Sleep(31 * time.Second)
		require.Equal(t, []string{"first"}, w.started.jobs())
		app.RequireStop()
	})
}
