package queue

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
)

// TestEachWayToSettleIsCounted with a real meter, which refuses attributes that are not there.
func TestEachWayToSettleIsCounted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := metric.NewManualReader()
		m := w.Member(t, "a", config, framework.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		q := New(m.Client, testPath, codec.Text())
		defer q.Close(t.Context())
		require.NoError(t, q.PutBatch(t.Context(), []string{"ack", "nack", "permanent"}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		handled := 0
		require.NoError(t, q.Work(ctx, 1, func(_ context.Context, d *Delivery[string]) error {
			if handled++; handled == 4 {
				cancel()
			}
			switch {
			case d.Value == "permanent":
				return Permanent(errors.New("cannot be done"))
			case d.Value == "nack" && d.Attempt == 1:
				return errors.New("not now")
			}
			return nil
		}))
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		settled := map[string]int64{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "lockstep.queue.settled" {
					for _, point := range sum.DataPoints {
						outcome, _ := point.Attributes.Value("lockstep.outcome")
						settled[outcome.AsString()] += point.Value
					}
				}
			}
		}
		require.Equal(t, map[string]int64{"ack": 2, "nack": 1, "permanent": 1}, settled)
	})
}

func TestConsumerSpanLinksToProducer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		recorder, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
		measured := framework.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
		queueOf := func(name string) *Queue[string] {
			return New(w.Member(t, name, config, measured, framework.WithPropagators(propagation.TraceContext{}),
				framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))).Client,
				testPath, codec.Text())
		}
		producer, consumer := queueOf("a"), queueOf("b")
		defer producer.Close(t.Context())
		defer consumer.Close(t.Context())
		require.NoError(t, producer.Put(t.Context(), "x"))
		d, err := consumer.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Ack(t.Context()))

		spans := map[string]sdktrace.ReadOnlySpan{}
		for _, s := range recorder.Ended() {
			spans[s.Name()] = s
		}
		put, take := spans["put "+testPath], spans["take "+testPath]
		require.Equal(t, trace.SpanKindProducer, put.SpanKind())
		require.Equal(t, trace.SpanKindConsumer, take.SpanKind())
		require.Len(t, take.Links(), 1)
		require.Equal(t, put.SpanContext().SpanID(), take.Links()[0].SpanContext.SpanID())
		require.Equal(t, take.SpanContext(), trace.SpanContextFromContext(d.Context()))

		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		sums := map[string]int64{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
					sums[m.Name] += sum.DataPoints[0].Value
				}
			}
		}
		for _, name := range []string{"messaging.client.sent.messages", "messaging.client.consumed.messages",
			"lockstep.queue.settled"} {
			require.Equal(t, int64(1), sums[name], name)
		}
	})
}
