package redislock

import (
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/internal/waitline"
)

// providers are where traces and measurements go to.
type providers struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

func globalProviders() providers { return providers{otel.GetTracerProvider(), otel.GetMeterProvider()} }

// WithTracerProvider traces calls to p, as locks on ZooKeeper are traced. By default the global
// provider; nil is ignored.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.providers.tracers = p
		}
		return nil
	}
}

// WithMeterProvider measures waits and holds to p, as those of locks on ZooKeeper are measured. By
// default the global provider; nil is ignored.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.providers.meters = p
		}
		return nil
	}
}

// telemetry returns that of one kind of grants of the lock.
func (l *lock) telemetry(kind string) *waitline.Telemetry {
	return waitline.NewTelemetryOf("redislock", l.name, kind, l.opts.providers.tracers, l.opts.providers.meters,
		waitline.HoldEnd{Cause: ErrExpired, Reason: "expired"}, waitline.HoldEnd{Cause: ErrLost, Reason: "lost"},
		waitline.HoldEnd{Cause: redis.ErrClosed, Reason: "closed"})
}
