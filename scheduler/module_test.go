package scheduler

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/framework"
)

// app is an application with the scheduler's module, on a server in memory, in virtual time.
func (w *world) app(opts ...fx.Option) *fxtest.App {
	return fxtest.New(w.t, append([]fx.Option{
		framework.Module, Module,
		fx.Supply(framework.Config{Servers: w.Servers(), SessionTimeout: timeout}),
		framework.AsOption(framework.WithDialer(w.Link("app").DialContext)),
		framework.AsOption(framework.WithClock(framework.TimeClock())),
	}, opts...)...)
}

func TestModuleRunsJobs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var ran, ended atomic.Int64
		work := func(ctx context.Context, _ Run) error {
			ran.Add(1)
			defer ended.Add(1)
			return lasting(3*time.Second)(ctx, Run{})
		}
		app := w.app(
			fx.Supply(&ran),
			AsJob(func(*atomic.Int64) Job { return Job{Name: "one", Spec: "* * * * *", Run: work} }),
			AsJob(func() Job { return Job{Name: "two", Spec: "* * * * *", Run: quick} }),
			AsOption(w.log.of("app")),
		)
		app.RequireStart()
		time.Sleep(61 * time.Second)
		require.EqualValues(t, 1, ran.Load())
		require.Len(t, w.log.ticks(), 2)
		app.RequireStop()
		require.EqualValues(t, 1, ended.Load(), "stop waits for the run")
		_, ok := w.Node(string(DefaultPath) + "/jobs/one")
		require.True(t, ok)
		require.Empty(t, w.Sessions())
	})
}

func TestModuleStartsAndStopsWithoutAServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.Server.Close()
		app := w.app(fx.Supply(Path("/elsewhere")), AsJob(func() Job { return Job{Name: "j", Spec: "* * * * *", Run: quick} }))
		app.RequireStart()
		time.Sleep(time.Minute)
		app.RequireStop()
	})
}

func TestModuleShutsTheApplicationDownWhenItCannotGoOn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", nil)
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath+"/jobs"))
		require.NoError(t, a.client.Create(t.Context(), testPath+"/jobs/j", []byte(`{"v":2}`), framework.Persistent))
		app := w.app(fx.Supply(Path(testPath)), AsJob(func() Job { return Job{Name: "j", Spec: "0 4 * * *", Run: quick} }))
		app.RequireStart()
		require.Equal(t, 1, (<-app.Wait()).ExitCode)
		app.RequireStop()
	})
}

func TestModuleRefusesBadJobs(t *testing.T) {
	base := fx.Options(framework.Module, Module, fx.NopLogger, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}))
	j := func() Job { return Job{Name: "j", Spec: "* * * * *", Run: quick} }
	require.NoError(t, fx.New(base).Err(), "no jobs, nothing to do")
	require.ErrorIs(t, fx.New(base, AsJob(j), AsJob(j)).Err(), ErrDuplicateJob)
	require.ErrorIs(t, fx.New(base, AsJob(func() Job { return Job{Name: "j", Spec: "TZ=", Run: quick} })).Err(), ErrInvalidSpec)
	require.ErrorIs(t, fx.New(base, fx.Supply(Path("x"))).Err(), framework.ErrInvalidPath)
}

func TestModuleRefusesConstructorsOfOtherTypes(t *testing.T) {
	for says, constructor := range map[string]any{
		"got func() *scheduler.Job": func() *Job { return &Job{} },
		"got func() string":         func() string { return "" },
		"got string":                "j",
	} {
		app := fx.New(fx.NopLogger, framework.Module, Module, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}), AsJob(constructor))
		require.ErrorContains(t, app.Err(), "scheduler.AsJob: want a function that returns scheduler.Job or []scheduler.Job")
		require.ErrorContains(t, app.Err(), says)
	}
}

func TestModuleRunsJobsThatAreAddedToTheScheduler(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		add := func(name string) func(*Scheduler) error {
			return func(s *Scheduler) error { return s.Add(Job{Name: name, Spec: "* * * * *", Run: quick}) }
		}
		var s *Scheduler
		app := w.app(AsOption(w.log.of("app")), fx.Invoke(add("invoked")), fx.Populate(&s))
		app.RequireStart()
		time.Sleep(30 * time.Second)
		require.NoError(t, add("later")(s))
		time.Sleep(31 * time.Second)
		require.Len(t, w.runners("00:01:00"), 2)
		app.RequireStop()
	})
}

// TestModuleWaitsForTheFirstJob adds it after the start; until then nothing is asked of the servers.
func TestModuleWaitsForTheFirstJob(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var s *Scheduler
		app := w.app(AsOption(w.log.of("app")), AsJob(func() []Job { return nil }), fx.Populate(&s))
		app.RequireStart()
		time.Sleep(30 * time.Second)
		require.Empty(t, w.Children(string(DefaultPath)))
		require.NoError(t, s.Add(Job{Name: "first", Spec: "* * * * *", Run: quick}))
		time.Sleep(31 * time.Second)
		require.Equal(t, map[string]string{"first": "app"}, w.runners("00:01:00"))
		app.RequireStop()
	})
}

func TestRunsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		s := New(m.Client, testPath)
		require.NoError(t, s.Add(Job{Name: "good", Spec: "* * * * *", Run: lasting(2 * time.Second)}))
		require.NoError(t, s.Add(Job{Name: "bad", Spec: "* * * * *", Run: func(context.Context, Run) error { panic("x") }}))
		require.NoError(t, s.Add(Job{Name: "slow", Spec: "*/30 * * * * *", Run: lasting(50 * time.Second)}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(85 * time.Second)
		cancel()
		require.NoError(t, <-done)
		synctest.Wait()

		outcomes := map[string]codes.Code{}
		for _, s := range spans.Ended() {
			if s.Name() == "lockstep.scheduler.run" {
				require.False(t, s.Parent().IsValid(), "a trace of its own")
				for _, a := range s.Attributes() {
					if a.Key == "lockstep.job" {
						outcomes[a.Value.AsString()] = s.Status().Code
					}
				}
			}
		}
		require.Equal(t, map[string]codes.Code{"good": codes.Unset, "bad": codes.Error, "slow": codes.Unset}, outcomes)

		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		require.Contains(t, missedPoints(got), attribute.NewSet(attribute.String("lockstep.job", "slow"), attribute.String("lockstep.reason", "overlap")))
	})
}

func missedPoints(got metricdata.ResourceMetrics) (out []attribute.Set) {
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "lockstep.scheduler.missed" {
				for _, p := range sum.DataPoints {
					out = append(out, p.Attributes)
				}
			}
		}
	}
	return out
}
