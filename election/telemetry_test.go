package election_test

import (
	"context"
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

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

func TestCampaignsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		e := election.New(m.Client, path)
		term, err := e.Campaign(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Campaign(ctx)
		require.Error(t, err)

		var got []sdktrace.ReadOnlySpan
		for _, s := range spans.Ended() {
			if s.Name() == "lockstep.election.campaign" {
				got = append(got, s)
			}
		}
		require.Len(t, got, 2)
		require.Contains(t, got[0].Attributes(), attribute.String("lockstep.outcome", "elected"))
		require.Contains(t, got[0].Attributes(), attribute.Int64("lockstep.token", term.Token()))
		require.Contains(t, got[1].Attributes(), attribute.String("lockstep.outcome", "given up"))
		require.Equal(t, codes.Unset, got[1].Status().Code)
	})
}

func TestACampaignLinksToTheLeaders(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		candidate := func(name string) *election.Election {
			m := w.Member(t, name, config, framework.WithPropagators(propagation.TraceContext{}),
				framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
			return election.New(m.Client, path)
		}
		a, b := candidate("a"), candidate("b")
		term, err := a.Campaign(t.Context())
		require.NoError(t, err)
		leader, err := b.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, term.Trace(), leader.Trace)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Campaign(ctx)
		require.Error(t, err)

		links := map[string][]sdktrace.Link{}
		var won sdktrace.ReadOnlySpan
		for _, s := range spans.Ended() {
			links[s.Name()] = append(links[s.Name()], s.Links()...)
			if s.Name() == "lockstep.election.campaign" && won == nil {
				won = s
			}
		}
		require.Len(t, links["lockstep.lock.acquire"], 1)
		require.Equal(t, won.SpanContext().SpanID(), links["lockstep.lock.acquire"][0].SpanContext.SpanID())
		require.Contains(t, leader.Trace["traceparent"], won.SpanContext().SpanID().String())
	})
}

func TestTermsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.Member(t, "a", config, framework.WithMetricPaths(1),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		read := func() map[string]metricdata.Metrics {
			synctest.Wait()
			var all metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &all))
			out := map[string]metricdata.Metrics{}
			for _, s := range all.ScopeMetrics {
				for _, m := range s.Metrics {
					out[m.Name] = m
				}
			}
			return out
		}
		term, err := election.New(m.Client, path, election.WithMaxTerm(time.Minute)).Campaign(t.Context())
		require.NoError(t, err)
		leading := read()["lockstep.election.leading"].Data.(metricdata.Sum[int64]).DataPoints
		require.EqualValues(t, 1, leading[0].Value)
		require.Equal(t, attribute.NewSet(attribute.String("lockstep.path", path)), leading[0].Attributes)
		time.Sleep(2 * time.Minute)
		require.NoError(t, term.Resign(t.Context()))
		all := read()
		require.EqualValues(t, 0, all["lockstep.election.leading"].Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		terms := all["lockstep.election.term.duration"].Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, terms, 1)
		require.EqualValues(t, 60, terms[0].Sum)
		reason, _ := terms[0].Attributes.Value("lockstep.reason")
		require.Equal(t, "over", reason.AsString())
	})
}
