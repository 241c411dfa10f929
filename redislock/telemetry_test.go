package redislock

import (
	"context"
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
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/locks"
)

const scope = "github.com/lockstep-go/lockstep/redislock"

func TestCallsAreTraced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		spans := tracetest.NewSpanRecorder()
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		client, to := s.newClient(t)
		m := NewMutex(client, "orders", WithTracerProvider(tracers)).virtual()
		caller, span := tracers.Tracer("test").Start(t.Context(), "caller")
		lease, err := m.Lock(caller)
		require.NoError(t, err)
		require.Equal(t, span, trace.SpanFromContext(lease.Context()), "the span of the call is over")
		_, err = m.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, lease.Release(t.Context()))
		l := NewRWLock(client, "shelf", WithTracerProvider(tracers)).virtual()
		for _, lock := range []func(context.Context) (*locks.Lease, error){l.Lock, l.TryRLock} {
			lease, err := lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lease.Release(t.Context()))
		}
		synctest.Wait()
		to.set(func(l *link) { l.cut = true })
		_, err = m.TryLock(t.Context())
		require.Error(t, err)
		to.set(func(l *link) { l.cut = false })

		ended := spans.Ended()
		require.Len(t, ended, 6)
		for i, want := range []struct{ name, path, kind, outcome string }{
			{"lockstep.lock.acquire", "orders", "mutex", "granted"},
			{"lockstep.lock.try", "orders", "mutex", "not acquired"},
			{"lockstep.lock.acquire", "orders", "mutex", "given up"},
			{"lockstep.lock.acquire", "shelf", "write", "granted"},
			{"lockstep.lock.try", "shelf", "read", "granted"},
			{"lockstep.lock.try", "orders", "mutex", "error"},
		} {
			require.Equal(t, want.name, ended[i].Name(), i)
			require.Equal(t, scope, ended[i].InstrumentationScope().Name)
			require.Subset(t, ended[i].Attributes(), []attribute.KeyValue{
				attribute.String("lockstep.path", want.path), attribute.String("lockstep.lock.kind", want.kind),
				attribute.String("lockstep.outcome", want.outcome)}, i)
			status := codes.Unset
			if want.outcome == "error" {
				status = codes.Error
			}
			require.Equal(t, status, ended[i].Status().Code, i)
		}
		require.Equal(t, span.SpanContext().SpanID(), ended[0].Parent().SpanID())
		require.Contains(t, ended[0].Attributes(), attribute.Int64("lockstep.token", 1))
	})
}

func TestHoldsAndWaitsAreMeasured(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		reader := sdkmetric.NewManualReader()
		meters := WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		client, to := s.newClient(t)
		// read returns the sums of counters and the counts of histograms by their attributes.
		read := func() map[string]int64 {
			var got metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &got))
			values := map[string]int64{}
			for _, of := range got.ScopeMetrics {
				require.Equal(t, scope, of.Scope.Name)
				for _, m := range of.Metrics {
					switch data := m.Data.(type) {
					case metricdata.Sum[int64]:
						for _, p := range data.DataPoints {
							values[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
						}
					case metricdata.Histogram[float64]:
						for _, p := range data.DataPoints {
							values[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = int64(p.Count)
						}
					}
				}
			}
			return values
		}
		m := NewMutex(client, "orders", meters, WithReentry()).virtual()
		lease, err := m.Lock(t.Context())
		require.NoError(t, err)
		nested, err := m.Lock(lease.Context())
		require.NoError(t, err)
		go func() {
			next, err := m.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, next.Release(t.Context()))
		}()
		synctest.Wait()
		require.Equal(t, map[string]int64{
			"lockstep.lock.held lockstep.lock.kind=mutex":                                   1,
			"lockstep.lock.waiting lockstep.lock.kind=mutex":                                1,
			"lockstep.lock.wait.duration lockstep.lock.kind=mutex,lockstep.outcome=granted": 2,
		}, read(), "a nested lease is no hold")
		require.NoError(t, nested.Release(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
		synctest.Wait()

		expired, err := NewRWLock(client, "shelf", meters).virtual().Lock(t.Context())
		require.NoError(t, err)
		to.set(func(l *link) { l.cut = true })
		<-expired.Context().Done()
		to.set(func(l *link) { l.cut = false })
		time.Sleep(DefaultExpiry)
		lost, err := NewRWLock(client, "shelf", meters).virtual().RLock(t.Context())
		require.NoError(t, err)
		require.True(t, s.Del("{shelf}:readers"))
		<-lost.Context().Done()
		limited, err := NewMutex(client, "orders", meters, WithMaxHold(time.Second)).virtual().Lock(t.Context())
		require.NoError(t, err)
		<-limited.Context().Done()
		synctest.Wait()
		got := read()
		for reason, n := range map[string]int64{"mutex,lockstep.reason=released": 2,
			"mutex,lockstep.reason=max hold": 1, "write,lockstep.reason=expired": 1, "read,lockstep.reason=lost": 1} {
			require.Equal(t, n, got["lockstep.lock.hold.duration lockstep.lock.kind="+reason], reason)
		}
		for _, kind := range []string{"mutex", "write", "read"} {
			require.Zero(t, got["lockstep.lock.held lockstep.lock.kind="+kind])
			require.Zero(t, got["lockstep.lock.waiting lockstep.lock.kind="+kind])
		}
	})
}

// TestAnInstrumentMayAskTheLease that has just ended: it is the user's code, and is not called
// under a mutex of the lease's.
func TestAnInstrumentMayAskTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		client, _ := s.newClient(t)
		var lease *locks.Lease
		asked := make(chan error, 1)
		m := NewMutex(client, "orders", WithMeterProvider(metricstest.NewCalling("lockstep.lock.hold.duration",
			func() { asked <- lease.Release(t.Context()) }))).virtual()
		var err error
		lease, err = m.Lock(t.Context())
		require.NoError(t, err)
		go lease.Release(t.Context())
		require.NoError(t, <-asked)
	})
}
