package metrics

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const module = "github.com/lockstep-go/lockstep/"

func (m *Metric) meter(p metric.MeterProvider) metric.Meter { return p.Meter(module + m.Scope) }

// In returns the row for another package that measures the same.
func (m *Metric) In(scope string) *Metric {
	other := *m
	other.Scope = scope
	return &other
}

// check panics if the row is of another kind. That is a mistake in this module, not in a program
// that uses it.
func (m *Metric) check(kind Kind) {
	if m.Kind != kind {
		panic("metrics: " + m.Name + " is a " + string(m.Kind))
	}
}

// handle reports an error to OpenTelemetry's error handler. Then the instrument that the provider
// has returned drops all values.
func handle[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// Histogram makes the row's instrument.
func (m *Metric) Histogram(p metric.MeterProvider) metric.Float64Histogram {
	m.check(Histogram)
	return handle(m.meter(p).Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description),
		metric.WithExplicitBucketBoundaries(m.Buckets...)))
}

// Counter makes the row's instrument.
func (m *Metric) Counter(p metric.MeterProvider) metric.Int64Counter {
	m.check(Counter)
	return handle(m.meter(p).Int64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description)))
}

// UpDown makes the row's instrument.
func (m *Metric) UpDown(p metric.MeterProvider) metric.Int64UpDownCounter {
	m.check(UpDown)
	return handle(m.meter(p).Int64UpDownCounter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description)))
}

// Gauge makes the row's instrument, for values that are set.
func (m *Metric) Gauge(p metric.MeterProvider) metric.Float64Gauge {
	m.check(Gauge)
	return handle(m.meter(p).Float64Gauge(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description)))
}

// Observer takes the values of observable gauges.
type Observer struct {
	gauges   map[*Metric]metric.Float64ObservableGauge
	observer metric.Observer
}

// Observe reports a gauge's value for a set of attributes.
func (o Observer) Observe(m *Metric, value float64, attributes ...attribute.KeyValue) {
	o.observer.ObserveFloat64(o.gauges[m], value, metric.WithAttributes(attributes...))
}

// Observe makes observable gauges of rows of one scope. OpenTelemetry calls observe when it reads
// their values, until unregister is called.
func Observe(p metric.MeterProvider, observe func(Observer), rows ...*Metric) (unregister func()) {
	gauges, instruments := map[*Metric]metric.Float64ObservableGauge{}, make([]metric.Observable, len(rows))
	for i, m := range rows {
		m.check(Gauge)
		gauges[m] = handle(m.meter(p).Float64ObservableGauge(m.Name, metric.WithUnit(m.Unit),
			metric.WithDescription(m.Description)))
		instruments[i] = gauges[m]
	}
	registered, err := rows[0].meter(p).RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(Observer{gauges, o})
		return nil
	}, instruments...)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return func() {
		if err := registered.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}

// Values returns an attribute set for each value of an attribute. Callers make them once and use
// them for many measurements.
func Values(key string, values ...string) map[string]metric.MeasurementOption {
	sets := make(map[string]metric.MeasurementOption, len(values))
	for _, v := range values {
		sets[v] = With(attribute.String(key, v))
	}
	return sets
}

// With returns a set of attributes. Callers make it once and use it for many measurements.
func With(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
