package config

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// telemetry is a value's instruments, made once.
type telemetry struct{ changes, refusals, sets metric.Int64Counter }

func newTelemetry(c *framework.Client) telemetry {
	p := c.MeterProvider()
	return telemetry{changes: metrics.ConfigChanges.Counter(p), refusals: metrics.ConfigRefused.Counter(p),
		sets: metrics.ConfigSets.Counter(p)}
}

func (t telemetry) countChange()  { t.changes.Add(context.Background(), 1) }
func (t telemetry) countRefusal() { t.refusals.Add(context.Background(), 1) }

// countSet counts a call of Set or Rollback.
func (t telemetry) countSet(err error) {
	t.sets.Add(context.Background(), 1, metric.WithAttributes(attribute.String(metrics.Outcome, outcomeOf(err))))
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "written"
	case errors.Is(err, errConflict):
		return "conflict"
	case errors.Is(err, errRefused):
		return "refused"
	case errors.Is(err, framework.ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}
