package framework

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/metrics"
	"github.com/lockstep-go/lockstep/internal/wire"
)

func init() {
	metrics.PathsOf = func(client any) *metrics.Paths { return client.(*Client).tel.paths }
}

// telemetry is what a client and its recipes send traces and metrics with. Frequent measurements
// first ask whether their instrument is enabled, since attributes cost an allocation, also without
// a provider.
type telemetry struct {
	tracers     trace.TracerProvider
	meters      metric.MeterProvider
	propagators propagation.TextMapPropagator
	paths       *metrics.Paths // or nil

	losses     metric.Int64Counter
	states     metric.Int64UpDownCounter
	leaseLeft  metric.Float64Histogram
	heartbeats metric.Float64Histogram
	requests   metric.Int64Counter
}

// newTelemetry uses OpenTelemetry's globals.
func newTelemetry() *telemetry {
	t := &telemetry{tracers: otel.GetTracerProvider(), propagators: otel.GetTextMapPropagator()}
	t.useMeters(otel.GetMeterProvider())
	return t
}

func (t *telemetry) useMeters(meters metric.MeterProvider) {
	t.meters = meters
	t.losses = metrics.SessionLosses.Counter(meters)
	t.states = metrics.SessionState.UpDown(meters)
	t.leaseLeft = metrics.LeaseLeft.Histogram(meters)
	t.heartbeats = metrics.HeartbeatDuration.Histogram(meters)
	t.requests = metrics.Requests.Counter(meters)
}

func (t *telemetry) sessionLost() { t.losses.Add(context.Background(), 1) }

var stateSets = metrics.Values(metrics.State, Connecting.String(), Connected.String(), Suspended.String())

// sessionEnters counts a session in its new state in place of the one before. A lost session is not
// counted.
func (t *telemetry) sessionEnters(before, after State) {
	t.states.Add(context.Background(), -1, stateSets[before.String()])
	if after != Lost {
		t.states.Add(context.Background(), 1, stateSets[after.String()])
	}
}

// sessionBegan counts a session that connects for the first time.
func (t *telemetry) sessionBegan() {
	t.states.Add(context.Background(), 1, stateSets[Connecting.String()])
}

// leaseExtended measures the rest of a lease before its extension.
func (t *telemetry) leaseExtended(left time.Duration) {
	t.leaseLeft.Record(context.Background(), left.Seconds())
}

var heartbeatSets = metrics.Values(metrics.Outcome, "proven", "failed")

// heartbeatEnded measures a proof of life.
func (t *telemetry) heartbeatEnded(took time.Duration, err error) {
	if !t.heartbeats.Enabled(context.Background()) {
		return
	}
	outcome := "proven"
	if err != nil {
		outcome = "failed"
	}
	t.heartbeats.Record(context.Background(), took.Seconds(), heartbeatSets[outcome])
}

// requestKey is an operation and an outcome.
type requestKey struct {
	op      wire.Op
	outcome string
}

// of requestKey: metric.MeasurementOption; one for each operation and outcome that has occurred
var requestSets sync.Map

// countRequest counts a request.
func (t *telemetry) countRequest(op wire.Op, r link.Reply) {
	ctx := context.Background()
	if !t.requests.Enabled(ctx) {
		return
	}
	key := requestKey{op, requestOutcome(r)}
	set, ok := requestSets.Load(key)
	if !ok {
		set, _ = requestSets.LoadOrStore(key, metrics.With(attribute.String(metrics.Operation, op.String()),
			attribute.String(metrics.Outcome, key.outcome)))
	}
	t.requests.Add(ctx, 1, set.(metric.MeasurementOption))
}

// requestOutcome is the outcome of a request in words.
func requestOutcome(r link.Reply) string {
	switch {
	case errors.Is(r.Err, link.ErrDown):
		return "lost"
	case r.Err != nil && !errors.Is(r.Err, link.ErrTooLong):
		return "not sent"
	case r.Code == wire.ThrottledOp:
		return "overloaded"
	case r.Code != wire.OK, r.Err != nil:
		return "refused"
	}
	return "answered"
}

// WithTracerProvider makes the client and its recipes trace to p. Default the global one; nil is
// ignored.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.tel.tracers = p
		}
		return nil
	}
}

// WithMeterProvider makes the client and its recipes measure to p. Default the global one; nil is
// ignored.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) error {
		if p != nil {
			o.tel.useMeters(p)
		}
		return nil
	}
}

// WithMetricPaths gives the gauges of the client's locks and elections the attribute lockstep.path:
// lockstep.lock.held, lockstep.lock.waiting and lockstep.election.leading. It names the first most
// paths of which the program makes a lock or an election, 1 to 1,000, and the others together as
// "other". Default: no paths, since each is a series of its own in a database of metrics.
func WithMetricPaths(most int) Option {
	return func(o *options) error {
		if most < 1 || most > 1000 {
			return fmt.Errorf("WithMetricPaths: %d is not between 1 and 1000", most)
		}
		o.tel.paths = metrics.NewPaths(most)
		return nil
	}
}

// WithPropagators sets how trace contexts are written into nodes. Default the global one; nil is
// ignored.
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
