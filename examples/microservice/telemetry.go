package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// telemetry exports a replica's spans and metrics: spans to a writer, one JSON object a line,
// metrics as a page for Prometheus.
type telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	page    http.Handler
}

func newTelemetry(out io.Writer) (*telemetry, error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry() // of its own: several replicas may run in one process
	numbers, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	return &telemetry{
		traces:  sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(numbers)),
		page:    promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}, nil
}

// stop writes the remaining spans.
func (t *telemetry) stop(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx)); err != nil {
		log.Error("telemetry is incomplete", "error", err)
	}
}
