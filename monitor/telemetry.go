package monitor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// telemetry is a monitor's instruments. The gauges have values only while this process leads.
type telemetry struct {
	provider metric.MeterProvider
	root     attribute.KeyValue
	scans    metric.Float64Histogram
	events   metric.Int64Counter

	mu      sync.Mutex
	leading bool
	up      float64
	open    map[Problem]int
	seen    *scanResult // of the latest scan that succeeded in this term, or nil
	asked   int64       // requests that the client has made during that scan
}

func newTelemetry(client *framework.Client, root string) *telemetry {
	p := client.MeterProvider()
	return &telemetry{provider: p, root: attribute.String(metrics.Root, root), scans: metrics.MonitorScan.Histogram(p),
		events: metrics.MonitorEvents.Counter(p)}
}

// registerGauges registers the gauges. They are read until unregister is called.
func (t *telemetry) registerGauges() (unregister func()) {
	return metrics.Observe(t.provider, func(o metrics.Observer) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.leading {
			return
		}
		o.Observe(metrics.MonitorUp, t.up, t.root)
		for _, p := range problems {
			o.Observe(metrics.MonitorFindings, float64(t.open[p]), t.root, attribute.String(metrics.Problem, string(p)))
		}
		if t.seen == nil {
			return
		}
		o.Observe(metrics.MonitorRequests, float64(t.asked), t.root)
		rest := 0
		for i, lock := range t.seen.waiting {
			if i >= maxInMetrics {
				rest += lock.waiters
				continue
			}
			o.Observe(metrics.MonitorWaiters, float64(lock.waiters), t.root,
				attribute.String(metrics.Path, stored.Text(lock.path)))
		}
		o.Observe(metrics.MonitorWaiters, float64(rest), t.root, attribute.String(metrics.Path, metrics.OtherPath))
		others := queueItems{path: metrics.OtherPath}
		for i, q := range t.seen.items {
			if i >= maxInMetrics {
				others.items, others.delayed, others.dead = others.items+q.items, others.delayed+q.delayed,
					others.dead+q.dead
				others.oldest, others.attempts, others.held = max(others.oldest, q.oldest),
					max(others.attempts, q.attempts), max(others.held, q.held)
				continue
			}
			t.observeQueue(o, q)
		}
		t.observeQueue(o, others)
	}, metrics.MonitorUp, metrics.MonitorFindings, metrics.MonitorRequests, metrics.MonitorWaiters,
		metrics.MonitorItems, metrics.MonitorOldest,
		metrics.MonitorAttempts, metrics.MonitorHeld)
}

func (t *telemetry) observeQueue(o metrics.Observer, q queueItems) {
	path := attribute.String(metrics.Path, stored.Text(q.path))
	for state, n := range map[string]int{"items": q.items, "delayed": q.delayed, "dead": q.dead} {
		o.Observe(metrics.MonitorItems, float64(n), t.root, path, attribute.String(metrics.State, state))
	}
	o.Observe(metrics.MonitorOldest, q.oldest.Seconds(), t.root, path)
	o.Observe(metrics.MonitorAttempts, float64(q.attempts), t.root, path)
	o.Observe(metrics.MonitorHeld, q.held.Seconds(), t.root, path)
}

// recordScan records how long a scan took and whether it failed with err, and sets what the gauges
// show. After a failed scan only the gauge of the monitor's state changes.
func (t *telemetry) recordScan(ctx context.Context, seen *scanResult, open []openFinding, took time.Duration,
	requests int64, err error) {
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	t.scans.Record(ctx, took.Seconds(), metric.WithAttributes(t.root, attribute.String(metrics.Outcome, outcome)))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leading, t.up = true, 0; err != nil {
		return
	}
	t.up, t.seen, t.asked, t.open = 1, seen, requests, map[Problem]int{}
	for _, f := range open {
		if f.Ended.IsZero() {
			t.open[f.Problem]++
		}
	}
}

// countEvent counts an event that is reported for the first time.
func (t *telemetry) countEvent(ctx context.Context, e Event) {
	t.events.Add(ctx, 1, metric.WithAttributes(t.root, attribute.String(metrics.Problem, string(e.Problem)),
		attribute.String(metrics.Event, string(e.Kind))))
}

// stopLeading makes the gauges have no values.
func (t *telemetry) stopLeading() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leading, t.seen, t.open = false, nil, nil
}
