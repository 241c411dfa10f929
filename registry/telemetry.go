package registry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// registrationTelemetry measures one registration.
type registrationTelemetry struct {
	registered    metric.Int64UpDownCounter
	registrations metric.Int64Counter
	checks        metric.Int64Counter
}

func newRegistrationTelemetry(c *framework.Client) registrationTelemetry {
	p := c.MeterProvider()
	return registrationTelemetry{metrics.RegistryRegistered.UpDown(p), metrics.RegistryRegistrations.Counter(p),
		metrics.RegistryHealth.Counter(p)}
}

// countCreate counts a node that was created for the instance: the first one, or another one.
func (t registrationTelemetry) countCreate(first bool) {
	reason := "again"
	if first {
		reason = "first"
	}
	t.registrations.Add(context.Background(), 1, metric.WithAttributes(attribute.String(metrics.Reason, reason)))
}

// addListed adds 1 when the instance is listed and -1 when it is not any more.
func (t registrationTelemetry) addListed(n int64) { t.registered.Add(context.Background(), n) }

func (t registrationTelemetry) countCheck(err error) {
	outcome := "healthy"
	if err != nil {
		outcome = "unhealthy"
	}
	t.checks.Add(context.Background(), 1, metric.WithAttributes(attribute.String(metrics.Outcome, outcome)))
}

// poolTelemetry measures one pool. Its sets of attributes are made once.
type poolTelemetry struct {
	lists, ejections, unserved   metric.Int64Counter
	instances                    metric.Int64UpDownCounter
	calls                        metric.Float64Histogram
	service, succeeded, failed   metric.MeasurementOption
	enabled, disabled, unusables metric.MeasurementOption
	shown                        listSize // what instances shows; used only by the pool's goroutine
}

// listSize is how many instances of each state a list has.
type listSize struct{ enabled, disabled, unusable int64 }

// newPoolTelemetry names the service by its path, which alerts print and the command line takes.
func newPoolTelemetry(c *framework.Client, path string) *poolTelemetry {
	p, of := c.MeterProvider(), attribute.String(metrics.Service, path)
	with := func(key, value string) metric.MeasurementOption {
		return metrics.With(of, attribute.String(key, value))
	}
	return &poolTelemetry{
		lists: metrics.RegistryLists.Counter(p), ejections: metrics.RegistryEjections.Counter(p),
		unserved:  metrics.RegistryUnserved.Counter(p),
		instances: metrics.RegistryInstances.UpDown(p), calls: metrics.RegistryCalls.Histogram(p),
		service:   metrics.With(of),
		succeeded: with(metrics.Outcome, "succeeded"), failed: with(metrics.Outcome, "failed"),
		enabled: with(metrics.State, "enabled"), disabled: with(metrics.State, "disabled"),
		unusables: with(metrics.State, "unusable"),
	}
}

// countList counts a list that was read, and makes the metric show how many instances it has.
func (t *poolTelemetry) countList(size listSize) {
	t.lists.Add(context.Background(), 1, t.service)
	t.showSize(size)
}

// showSize makes the metric show how many instances the pool's list has.
func (t *poolTelemetry) showSize(size listSize) {
	ctx := context.Background()
	t.instances.Add(ctx, size.enabled-t.shown.enabled, t.enabled)
	t.instances.Add(ctx, size.disabled-t.shown.disabled, t.disabled)
	t.instances.Add(ctx, size.unusable-t.shown.unusable, t.unusables)
	t.shown = size
}

// recordCall measures a call that has ended, and counts an ejection.
func (t *poolTelemetry) recordCall(took time.Duration, err error, ejected bool) {
	ctx := context.Background()
	if ejected {
		t.ejections.Add(ctx, 1, t.service)
	}
	if !t.calls.Enabled(ctx) {
		return
	}
	outcome := t.succeeded
	if err != nil {
		outcome = t.failed
	}
	t.calls.Record(ctx, took.Seconds(), outcome)
}

// notPicked counts a pick without an instance.
func (t *poolTelemetry) notPicked(err error) {
	outcome := "error"
	switch {
	case errors.Is(err, ErrNoInstance):
		outcome = "no instance"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "given up"
	}
	t.unserved.Add(context.Background(), 1, t.service,
		metric.WithAttributes(attribute.String(metrics.Outcome, outcome)))
}
