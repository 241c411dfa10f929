package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// telemetry is where spans and metrics go: one JSON object a line.
type telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
}

func newTelemetry(out io.Writer) (*telemetry, error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return nil, err
	}
	numbers, err := stdoutmetric.New(stdoutmetric.WithWriter(out))
	if err != nil {
		return nil, err
	}
	return &telemetry{
		traces:  sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numbers, sdkmetric.WithInterval(time.Minute)))),
	}, nil
}

// stop writes what is left.
func (t *telemetry) stop(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx)); err != nil {
		log.Error("telemetry is incomplete", "error", err)
	}
}
