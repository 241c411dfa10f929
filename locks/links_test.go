package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// tracedMember is a client whose spans a recorder gets.
func tracedMember(t *testing.T, w *world, name string, spans *tracetest.SpanRecorder) *framework.Client {
	return w.zk.Member(t, name, config, framework.WithPropagators(propagation.TraceContext{}),
		framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))).Client
}

// linksOf are the traces that a span links to, and the owners that the links name.
func linksOf(span sdktrace.ReadOnlySpan) map[string]string {
	links := map[string]string{}
	for _, l := range span.Links() {
		owner := ""
		for _, a := range l.Attributes {
			if a.Key == "lockstep.waited_for" {
				owner = a.Value.AsString()
			}
		}
		links[l.SpanContext.TraceID().String()] = owner
	}
	return links
}

func TestAWaitLinksToWhatItWaitedFor(t *testing.T) {
	for name, newLock := range map[string]func(*framework.Client) locks.Locker{
		"mutex": func(c *framework.Client) locks.Locker { return locks.NewMutex(c, path) },
		"claim": func(c *framework.Client) locks.Locker { return locks.NewClaim(c, path) },
		"write": func(c *framework.Client) locks.Locker { return locks.NewRWLock(c, path) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				spans := tracetest.NewSpanRecorder()
				holder, err := newLock(tracedMember(t, w, "a", spans)).Lock(t.Context())
				require.NoError(t, err)
				second := newLock(tracedMember(t, w, "b", spans))
				waited := make(chan struct{})
				go func() {
					defer close(waited)
					lease, err := second.Lock(context.Background())
					if err == nil {
						_ = lease.Release(context.Background())
					}
				}()
				synctest.Wait()
				time.Sleep(time.Second)
				require.NoError(t, holder.Release(t.Context()))
				<-waited

				ended := spans.Ended()
				require.Len(t, ended, 2)
				require.Empty(t, ended[0].Links(), "the first waits for none")
				require.Equal(t, map[string]string{ended[0].SpanContext().TraceID().String(): "a"}, linksOf(ended[1]))
			})
		})
	}
}

func TestAWaitLinksToTheHolderAndToTheOneBefore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		done := make(chan struct{}, 3)
		for _, name := range []string{"a", "b", "c"} {
			m := locks.NewMutex(tracedMember(t, w, name, spans), path)
			go func() {
				defer func() { done <- struct{}{} }()
				lease, err := m.Lock(context.Background())
				if err != nil {
					return
				}
				time.Sleep(time.Second)
				_ = lease.Release(context.Background())
			}()
			time.Sleep(100 * time.Millisecond)
		}
		for range 3 {
			<-done
		}
		ended := spans.Ended()
		require.Len(t, ended, 3)
		id := func(i int) string { return ended[i].SpanContext().TraceID().String() }
		require.Equal(t, map[string]string{id(0): "a"}, linksOf(ended[1]))
		require.Equal(t, map[string]string{id(0): "a", id(1): "b"}, linksOf(ended[2]))
	})
}

func TestALocalWaiterLinksToTheOneBefore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		m := locks.NewMutex(tracedMember(t, w, "a", spans), path)
		first, err := m.Lock(t.Context())
		require.NoError(t, err)
		waited := make(chan error)
		go func() {
			_, err := m.Lock(context.Background())
			waited <- err
		}()
		time.Sleep(time.Second)
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, <-waited)
		ended := spans.Ended()
		require.Equal(t, map[string]string{ended[0].SpanContext().TraceID().String(): "a"}, linksOf(ended[1]))
	})
}

func TestHoldsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.zk.Member(t, "a", config,
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		released, err := locks.NewMutex(m.Client, path).Lock(t.Context())
		require.NoError(t, err)
		_, err = locks.NewMutex(m.Client, path+"2", locks.WithMaxHold(3*time.Second)).Lock(t.Context())
		require.NoError(t, err)
		waiting, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := locks.NewMutex(m.Client, path).Lock(waiting)
			gaveUp <- err
		}()
		time.Sleep(2 * time.Second)
		sum := func(name string) (n int64) {
			for _, p := range collected(t, reader)[name].(metricdata.Sum[int64]).DataPoints {
				n += p.Value
			}
			return n
		}
		require.EqualValues(t, 2, sum("lockstep.lock.held"))
		require.EqualValues(t, 1, sum("lockstep.lock.waiting"))
		cancel()
		require.Error(t, <-gaveUp)
		require.NoError(t, released.Release(t.Context()))
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 0, sum("lockstep.lock.held"))
		require.EqualValues(t, 0, sum("lockstep.lock.waiting"))
		holds := map[string]float64{}
		for _, p := range collected(t,
			reader)["lockstep.lock.hold.duration"].(metricdata.Histogram[float64]).DataPoints {
			reason, _ := p.Attributes.Value(attribute.Key("lockstep.reason"))
			holds[reason.AsString()] = p.Sum
		}
		require.Equal(t, map[string]float64{"released": 2, "max hold": 3}, holds)
	})
}

// collected are a reader's metrics by name.
func collected(t *testing.T, reader *sdkmetric.ManualReader) map[string]metricdata.Aggregation {
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	byName := map[string]metricdata.Aggregation{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			byName[m.Name] = m.Data
		}
	}
	return byName
}
