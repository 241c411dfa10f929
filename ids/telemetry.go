package ids

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// reserveTelemetry measures the reservations of a sequence or a worker. It does not measure ids
// from memory: a measurement would cost more than the id.
type reserveTelemetry struct {
	reservations metric.Int64Counter
	waits        metric.Float64Histogram
	kind         attribute.KeyValue
}

func newReserveTelemetry(c *framework.Client, kind string) reserveTelemetry {
	p := c.MeterProvider()
	return reserveTelemetry{metrics.IDsReservations.Counter(p), metrics.IDsWaits.Histogram(p),
		attribute.String(metrics.IDs, kind)}
}

func (t reserveTelemetry) countReservation(err error) {
	outcome := "error"
	switch {
	case err == nil:
		outcome = "reserved"
	case errors.Is(err, errClosed):
		outcome = "closed"
	}
	t.reservations.Add(context.Background(), 1,
		metric.WithAttributes(t.kind, attribute.String(metrics.Outcome, outcome)))
}

// recordWait measures a wait of a call for a reservation.
func (t reserveTelemetry) recordWait(began time.Time, err error) {
	outcome := "error"
	switch {
	case err == nil:
		outcome = "reserved"
	case errors.Is(err, errClosed):
		outcome = "closed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "given up"
	}
	t.waits.Record(context.Background(), time.Since(began).Seconds(),
		metric.WithAttributes(t.kind, attribute.String(metrics.Outcome, outcome)))
}

// counterTelemetry measures one counter.
type counterTelemetry struct{ changes, transactions metric.Int64Counter }

func newCounterTelemetry(c *framework.Client) counterTelemetry {
	p := c.MeterProvider()
	return counterTelemetry{metrics.IDsCounterChanges.Counter(p), metrics.IDsCounterWrites.Counter(p)}
}

func (t counterTelemetry) countTransaction() { t.transactions.Add(context.Background(), 1) }

func (t counterTelemetry) countChange(err error) {
	if !t.changes.Enabled(context.Background()) {
		return
	}
	outcome := "error"
	switch {
	case err == nil:
		outcome = "made"
	case errors.Is(err, framework.ErrOutcomeUnknown):
		outcome = "unknown"
	case errors.Is(err, errChanged), errors.Is(err, errOverflow):
		outcome = "refused"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "given up"
	}
	t.changes.Add(context.Background(), 1, metric.WithAttributes(attribute.String(metrics.Outcome, outcome)))
}
