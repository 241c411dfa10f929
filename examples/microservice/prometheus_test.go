package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
	"github.com/lockstep-go/lockstep/internal/metrics/dashboard"
	"github.com/lockstep-go/lockstep/internal/proof/prometheus"
	"github.com/lockstep-go/lockstep/zktest"
)

// notMeasuredHere are the metrics that this service does not record: those of features that it does
// not use, and of events that must not happen to it. The test records a value of each of them
// itself, with the instruments of the table.
var notMeasuredHere = []*metrics.Metric{
	metrics.SessionLosses, metrics.LockDeadlocks, metrics.MissedTicks, metrics.StuckRuns, metrics.MonitorEvents,
	metrics.BarrierWaits, metrics.BarrierRounds, metrics.ConfigChanges, metrics.ConfigRefused, metrics.ConfigSets,
	metrics.IDsReservations, metrics.IDsWaits, metrics.IDsCounterChanges, metrics.IDsCounterWrites,
	metrics.RegistryRegistered, metrics.RegistryRegistrations, metrics.RegistryHealth, metrics.RegistryLists,
	metrics.RegistryInstances, metrics.RegistryCalls,
	metrics.RegistryEjections, metrics.RegistryUnserved,
	metrics.MembersListed, metrics.MembersJoins, metrics.MembersUpdates, metrics.MembersCordoned, metrics.MembersDrains,
	metrics.MembersChanges,
	metrics.WorkflowExecutions, metrics.WorkflowSteps,
}

// measureOnce records one value of a metric.
func measureOnce(m *metrics.Metric, p metric.MeterProvider) {
	ctx := context.Background()
	attributes := make([]attribute.KeyValue, len(m.Attributes))
	for i, key := range m.Attributes {
		attributes[i] = attribute.String(key, "test")
	}
	switch m.Kind {
	case metrics.Histogram:
		m.Histogram(p).Record(ctx, 1, metrics.With(attributes...))
	case metrics.Counter:
		m.Counter(p).Add(ctx, 1, metrics.With(attributes...))
	case metrics.UpDown:
		m.UpDown(p).Add(ctx, 1, metrics.With(attributes...))
	case metrics.Gauge:
		m.Gauge(p).Record(ctx, 1, metrics.With(attributes...))
	}
}

// TestTheDashboardAndTheRulesOnARealPrometheus loads docs/prometheus/lockstep.yml into Prometheus,
// which reads the pages of two replicas, and evaluates each query of docs/grafana/lockstep.json and
// each rule. The files are what package dashboard generates: its own tests compare them.
func TestTheDashboardAndTheRulesOnARealPrometheus(t *testing.T) {
	prometheus.Tool(t, "prometheus")
	address, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	o := options{servers: []string{address}, host: "127.0.0.1", report: "* * * * * *", lookInterval: time.Second}
	var replicas []*replica
	for i := range 2 {
		r, err := startReplica(o, i, io.Discard, log)
		require.NoError(t, err)
		defer r.stop()
		replicas = append(replicas, r)
	}
	c, err := framework.Connect(t.Context(), framework.Config{Servers: o.servers}, framework.WithLogger(log))
	require.NoError(t, err)
	defer c.Close(context.Background())
	p := prometheus.Start(t, "../../docs/prometheus/lockstep.yml", replicas[0].address, replicas[1].address)

	open := map[string]bool{} // queries that have not returned a number yet
	for _, panel := range dashboard.Panels() {
		for _, q := range panel.Queries {
			open[strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*").Replace(q.Expr)] = true
		}
	}
	require.Greater(t, len(open), len(metrics.All))
	web, round := client(t), 0
	for began := time.Now(); len(open) > 0; round++ {
		require.Less(t, time.Since(began), 3*time.Minute, "no data: %v", open)
		orderFrom(t, web, replicas[round%2].address)
		// it ends a term, unless that one leads already
		_ = election.New(c, electionPath).RequestTransfer(t.Context(), replicas[round%2].id)
		for _, m := range notMeasuredHere {
			measureOnce(m, replicas[0].tel.metrics)
		}
		for query := range open {
			samples, err := p.Query(t.Context(), query)
			require.NoError(t, err)
			if slices.ContainsFunc(samples, func(s prometheus.Sample) bool { return s.Value != "NaN" }) {
				delete(open, query)
			}
		}
	}

	for _, m := range metrics.All {
		name := dashboard.PrometheusName(m)
		if m.Kind == metrics.Histogram {
			name += "_count"
		}
		samples, err := p.Query(t.Context(), "last_over_time("+name+"[10m])") // also if the latest reading has failed
		require.NoError(t, err)
		require.NotEmpty(t, samples, name)
		for _, label := range m.Attributes {
			require.Contains(t, samples[0].Labels, strings.ReplaceAll(label, ".", "_"), name)
		}
	}

	var rules []prometheus.Rule
	require.Eventually(t, func() bool { // until each was evaluated
		rules, err = p.Rules(t.Context())
		return err == nil && len(rules) > 0 &&
			!slices.ContainsFunc(rules, func(r prometheus.Rule) bool { return r.Health == "unknown" })
	}, time.Minute, 100*time.Millisecond)
	require.Len(t, rules, len(dashboard.Alerts))
	for _, r := range rules {
		require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.Error)
	}
}
