// Package dashboard generates three files from the table in internal/metrics: the table of
// docs/telemetry.md, a dashboard for Grafana (docs/grafana/lockstep.json), and alert rules for
// Prometheus (docs/prometheus/lockstep.yml). Its tests compare the files with the generated texts.
// With UPDATE=1 they write the files.
package dashboard

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/internal/metrics"
)

// Page returns the table of docs/telemetry.md.
func Page() string {
	var b strings.Builder
	b.WriteString("| kind | name | in Prometheus | description | attributes |\n|---|---|---|---|---|\n")
	for _, m := range metrics.All {
		attributes := make([]string, len(m.Attributes))
		for i, a := range m.Attributes {
			attributes[i] = "`" + a + "`"
		}
		fmt.Fprintf(&b, "| %s, %s | `%s` | `%s` | %s | %s |\n", m.Kind, m.Unit, m.Name, PrometheusName(m),
			m.Description, strings.Join(attributes, ", "))
	}
	return b.String()
}

// PrometheusName returns the name that OpenTelemetry's exporter for Prometheus gives to a metric. A
// histogram has several names, which begin with it.
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
