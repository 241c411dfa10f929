package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/metrics"
)

// Panel is one panel of the dashboard. It shows one metric.
type Panel struct {
	Metric  *metrics.Metric
	Title   string
	Unit    string // the name of the unit in Grafana
	Queries []Query
}

// Query is one query of a panel, in PromQL with Grafana's variables.
type Query struct {
	Expr   string
	Legend string
}

// selected restricts a query to the jobs and instances that the user of the dashboard selects.
const selected = `{job=~"$job",instance=~"$instance"}`

// sections are the scopes in the order of the dashboard: first the monitor's findings, last the
// recipes that few programs use.
var sections = []string{"monitor", "framework", "locks", "election", "scheduler", "queue", "workflow", "barrier",
	"config", "ids", "registry", "members"}

// Panels returns a panel for each row of the table of metrics, section after section.
func Panels() (panels []Panel) {
	for _, scope := range sections {
		for _, m := range metrics.All {
			if m.Scope == scope {
				panels = append(panels, panelOf(m))
			}
		}
	}
	return panels
}

// panelOf returns the panel of a metric, by the metric's kind: quantiles of a histogram, the rate
// of a counter, the sum of an up-down counter over all processes, and the maximum of a gauge,
// because each process measures the same thing with it.
func panelOf(m *metrics.Metric) Panel {
	title := strings.NewReplacer(".", " ", "_", " ").Replace(strings.TrimPrefix(m.Name, "lockstep."))
	p := Panel{Metric: m, Title: strings.ToUpper(title[:1]) + title[1:], Unit: "short"}
	if m.Unit == "s" {
		p.Unit = "s"
	}
	name, by := PrometheusName(m), labelNames(m.Attributes)
	switch m.Kind {
	case metrics.Histogram:
		quantiles := []int{50, 99}
		if m == metrics.LeaseLeft { // here low values show problems
			quantiles = []int{1, 50}
		}
		for _, q := range quantiles {
			p.Queries = append(p.Queries, Query{
				fmt.Sprintf("histogram_quantile(0.%02d, sum by (%s) (rate(%s_bucket%s[$__rate_interval])))", q,
					strings.Join(append([]string{"le"}, by...), ", "), name, selected),
				legendTemplate(by, fmt.Sprintf("p%d", q)),
			})
		}
	case metrics.Counter:
		p.Unit = "ops"
		p.Queries = []Query{{fmt.Sprintf("sum%s (rate(%s%s[$__rate_interval]))", groupingClause(by), name, selected),
			legendTemplate(by, "")}}
	case metrics.UpDown:
		p.Queries = []Query{{fmt.Sprintf("sum%s (%s%s)", groupingClause(by), name, selected), legendTemplate(by, "")}}
	case metrics.Gauge:
		p.Queries = []Query{{fmt.Sprintf("max%s (%s%s)", groupingClause(by), name, selected), legendTemplate(by, "")}}
	}
	if m == metrics.LastSuccess {
		p.Title = "Time since a job's latest success"
		p.Queries[0].Expr = "time() - " + p.Queries[0].Expr
	}
	return p
}

// groupingClause returns PromQL's "by" with its labels, or "".
func groupingClause(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by (" + strings.Join(by, ", ") + ")"
}

// legendTemplate returns the name of a line: the prefix and the values of its labels.
func legendTemplate(by []string, prefix string) string {
	words := []string{}
	if prefix != "" {
		words = append(words, prefix)
	}
	for _, label := range by {
		words = append(words, "{{"+label+"}}")
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}

// labelNames returns the names that Prometheus gives to attributes.
func labelNames(attributes []string) []string {
	names := slices.Clone(attributes)
	for i, a := range names {
		names[i] = strings.ReplaceAll(a, ".", "_")
	}
	return names
}
