package metricstest

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// NewCalling returns a provider whose counters and histograms with a name call a function at each
// measurement, as code of the user's may.
func NewCalling(name string, call func()) metric.MeterProvider {
	return callingProvider{call: instrumentCall{name, call}}
}

type instrumentCall struct {
	name string
	call func()
}

type callingProvider struct {
	noop.MeterProvider
	call instrumentCall
}

func (p callingProvider) Meter(string, ...metric.MeterOption) metric.Meter {
	return callingMeter{call: p.call}
}

type callingMeter struct {
	noop.Meter
	call instrumentCall
}

func (m callingMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name != m.call.name {
		return noop.Int64Counter{}, nil
	}
	return callingCounter{call: m.call.call}, nil
}

func (m callingMeter) Float64Histogram(name string,
	_ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if name != m.call.name {
		return noop.Float64Histogram{}, nil
	}
	return callingHistogram{call: m.call.call}, nil
}

func (m callingMeter) Int64UpDownCounter(string,
	...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return enabledUpDownCounter{}, nil
}

type callingCounter struct {
	noop.Int64Counter
	call func()
}

func (c callingCounter) Add(context.Context, int64, ...metric.AddOption) { c.call() }

func (c callingCounter) Enabled(context.Context) bool { return true }

type callingHistogram struct {
	noop.Float64Histogram
	call func()
}

func (h callingHistogram) Record(context.Context, float64, ...metric.RecordOption) { h.call() }

func (h callingHistogram) Enabled(context.Context) bool { return true }

// enabledUpDownCounter says that somebody reads it: packages measure nothing otherwise.
type enabledUpDownCounter struct{ noop.Int64UpDownCounter }

func (enabledUpDownCounter) Enabled(context.Context) bool { return true }
