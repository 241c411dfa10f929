// Package dashboard generates what describes Lockstep's metrics from the table in internal/metrics: the table of docs/telemetry.md. A test
// compares the page with what it generates; with UPDATE=1 the test writes it.
package dashboard

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/internal/metrics"
)

// Page returns the table of docs/telemetry.md.
func Page() string {
	var b strings.Builder
	b.WriteString("| kind | name | in Prometheus | of | by |\n|---|---|---|---|---|\n")
	for _, m := range metrics.All {
		by := make([]string, len(m.By))
		for i, a := range m.By {
			by[i] = "`" + a + "`"
		}
		fmt.Fprintf(&b, "| %s, %s | `%s` | `%s` | %s | %s |\n", m.Kind, m.Unit, m.Name, PrometheusName(m), m.Of, strings.Join(by, ", "))
	}
	return b.String()
}

// PrometheusName is what OpenTelemetry's exporter for Prometheus calls a metric; a histogram has several, which begin so.
func PrometheusName(m *metrics.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" && !strings.HasSuffix(name, "_seconds") {
		name += "_seconds"
	}
	if m.Kind == metrics.Counter {
		name += "_total"
	}
	return name
}
