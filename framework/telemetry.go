package framework

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/lockstep-go/lockstep/framework"

// telemetry holds where a client and its recipes send traces and metrics.
type telemetry struct {
	tracers     trace.TracerProvider
	meters      metric.MeterProvider
	propagators propagation.TextMapPropagator
	losses      metric.Int64Counter
}

// newTelemetry uses OpenTelemetry's globals.
func newTelemetry() *telemetry {
	t := &telemetry{tracers: otel.GetTracerProvider(), propagators: otel.GetTextMapPropagator()}
	t.measure(otel.GetMeterProvider())
	return t
}

func (t *telemetry) measure(meters metric.MeterProvider) {
	var err error
	t.meters = meters
	t.losses, err = meters.Meter(scope).Int64Counter("lockstep.session.losses",
		metric.WithUnit("{session}"), metric.WithDescription("Sessions that were lost"))
	if err != nil {
		otel.Handle(err)
	}
}

func (t *telemetry) sessionLost() { t.losses.Add(context.Background(), 1) }

// WithTracerProvider makes the client and its recipes trace to p. Default the global one; nil is ignored.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.tel.tracers = p
		}
		return nil
	}
}

// WithMeterProvider makes the client and its recipes measure to p. Default the global one; nil is ignored.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.tel.measure(p)
		}
		return nil
	}
}

// WithPropagators sets how trace contexts are written into nodes. Default the global one; nil is ignored.
func WithPropagators(p propagation.TextMapPropagator) Option {
	return func(o *options) error {
		if p != nil {
			o.tel.propagators = p
		}
		return nil
	}
}

// TracerProvider is where the client's recipes trace to.
func (c *Client) TracerProvider() trace.TracerProvider { return c.tel.tracers }

// MeterProvider is where the client's recipes measure to.
func (c *Client) MeterProvider() metric.MeterProvider { return c.tel.meters }

// Propagators write trace contexts into nodes.
func (c *Client) Propagators() propagation.TextMapPropagator { return c.tel.propagators }
