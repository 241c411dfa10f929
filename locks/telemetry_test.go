package locks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestRequestsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		m := w.zk.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
			framework.WithPropagators(propagation.TraceContext{}))
		mu := locks.NewMutex(m.Client, path)
		l, err := mu.Lock(t.Context())
		require.NoError(t, err)
		_, err = mu.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = mu.Lock(ctx)
		require.Error(t, err)

		ended := spans.Ended()
		require.Len(t, ended, 3)
		for i, want := range []struct{ name, outcome string }{
			{"lockstep.lock.acquire", "granted"}, {"lockstep.lock.try", "not acquired"},
			{"lockstep.lock.acquire", "given up"},
		} {
			require.Equal(t, want.name, ended[i].Name())
			require.Contains(t, ended[i].Attributes(), attribute.String("lockstep.outcome", want.outcome))
			require.Contains(t, ended[i].Attributes(), attribute.String("lockstep.path", path))
			require.Equal(t, codes.Unset, ended[i].Status().Code, "an outcome is not an error")
		}
		require.Contains(t, ended[0].Attributes(), attribute.Int64("lockstep.token", l.Token()))

		n, _ := w.zk.Node(l.Node())
		o := ownerIn(t, n.Data)
		require.Contains(t, o.Trace["traceparent"], ended[0].SpanContext().TraceID().String(),
			"others can link to who holds")

		var got metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &got))
		names := map[string]string{}
		for _, s := range got.ScopeMetrics {
			for _, m := range s.Metrics {
				names[m.Name] = m.Unit
			}
		}
		require.Equal(t, "s", names["lockstep.lock.wait.duration"])
	})
}

// TestAnInstrumentMayAskTheLease that has just ended, and its lock: both have a mutex. It is not in
// virtual time, which stops while a goroutine waits for a mutex.
func TestAnInstrumentMayAskTheLease(t *testing.T) {
	for name, options := range map[string][]locks.MutexOption{"alone": nil,
		"handoff": {locks.WithLocalHandoff(time.Second)}} {
		t.Run(name, func(t *testing.T) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			var lease *locks.Lease
			var mutex *locks.Mutex
			asked := make(chan error, 1)
			m := zktest.Start(t).Member(t, "a", config,
				framework.WithMeterProvider(metricstest.NewCalling("lockstep.lock.hold.duration", func() {
					_, err := mutex.TryLock(ended)
					asked <- errors.Join(err, lease.Release(t.Context()))
				})))
			mutex = locks.NewMutex(m.Client, path, options...)
			var err error
			lease, err = mutex.Lock(t.Context())
			require.NoError(t, err)
			go lease.Release(t.Context())
			select {
			case err := <-asked:
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, framework.ErrUnconfirmed)
			case <-time.After(time.Minute):
				require.Fail(t, "the instrument waits for a mutex of its caller")
			}
		})
	}
}

// TestGaugesNameTheFirstPaths, if the client is told to, and count all others together.
func TestGaugesNameTheFirstPaths(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.zk.Member(t, "a", config, framework.WithMetricPaths(2),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		held := func() map[string]int64 {
			synctest.Wait()
			var all metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &all))
			values := map[string]int64{}
			for _, s := range all.ScopeMetrics {
				for _, m := range s.Metrics {
					if m.Name == "lockstep.lock.held" {
						for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
							path, named := point.Attributes.Value("lockstep.path")
							require.True(t, named)
							values[path.AsString()] += point.Value
						}
					}
				}
			}
			return values
		}
		leases := map[string]*locks.Lease{}
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			lease, err := locks.NewMutex(m.Client, path).Lock(t.Context())
			require.NoError(t, err)
			leases[path] = lease
		}
		require.Equal(t, map[string]int64{"/a": 1, "/b": 1, "other": 2}, held())
		require.NoError(t, leases["/a"].Release(t.Context()))
		require.NoError(t, leases["/d"].Release(t.Context()))
		require.Equal(t, map[string]int64{"/a": 0, "/b": 1, "other": 1}, held())
		_, err := locks.NewMutex(m.Client, "/c").TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired, "a path keeps its place")
		_, err = locks.NewRWLock(m.Client, "/a").RLock(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"/a": 1, "/b": 1, "other": 1}, held())
	})
}

func TestNumberOfPathsOfGauges(t *testing.T) {
	for _, most := range []int{-1, 0, 1001} {
		_, err := framework.New(framework.Config{Servers: []string{"zk"}}, framework.WithMetricPaths(most))
		require.ErrorContains(t, err, fmt.Sprint("WithMetricPaths: ", most))
		require.ErrorIs(t, err, framework.ErrInvalid)
	}
}
