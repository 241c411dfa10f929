package members

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// telemetry measures one membership.
type telemetry struct {
	listed, cordoned metric.Int64UpDownCounter
	joins, updates   metric.Int64Counter
	drains           metric.Float64Histogram
}

func newTelemetry(c *framework.Client) telemetry {
	p := c.MeterProvider()
	return telemetry{metrics.MembersListed.UpDown(p), metrics.MembersCordoned.UpDown(p),
		metrics.MembersJoins.Counter(p),
		metrics.MembersUpdates.Counter(p), metrics.MembersDrains.Histogram(p)}
}

// countJoin counts a node that was created for the member. Call left when the member is no longer
// listed.
func (t telemetry) countJoin(first bool) (left func()) {
	ctx, reason := context.Background(), "again"
	if first {
		reason = "first"
	}
	t.joins.Add(ctx, 1, metric.WithAttributes(attribute.String(metrics.Reason, reason)))
	t.listed.Add(ctx, 1)
	return func() { t.listed.Add(ctx, -1) }
}

func (t telemetry) countUpdate() { t.updates.Add(context.Background(), 1) }

// changeCordoned counts the member as cordoned now, or as no longer cordoned.
func (t telemetry) changeCordoned(before, now bool) {
	switch {
	case now && !before:
		t.cordoned.Add(context.Background(), 1)
	case before && !now:
		t.cordoned.Add(context.Background(), -1)
	}
}

// recordDrain measures a drain function that has returned.
func (t telemetry) recordDrain(took time.Duration, outcome string) {
	t.drains.Record(context.Background(), took.Seconds(),
		metric.WithAttributes(attribute.String(metrics.Outcome, outcome)))
}

// watchTelemetry counts the changes that one watcher has received.
type watchTelemetry struct {
	changes metric.Int64Counter
	kinds   map[string]metric.MeasurementOption
}

func newWatchTelemetry(c *framework.Client, kinds ...string) watchTelemetry {
	return watchTelemetry{metrics.MembersChanges.Counter(c.MeterProvider()),
		metrics.Values(metrics.MemberEvent, kinds...)}
}

func (t watchTelemetry) countChange(kind string) {
	t.changes.Add(context.Background(), 1, t.kinds[kind])
}
