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
	Unit    string // Grafana's name
	Queries []Query
}

// Query is one query of a panel, in PromQL with Grafana's variables.
type Query struct {
	Expr   string
	Legend string
}

// selected are the variables by which a user of the dashboard chooses services and processes.
const selected = `{job=~"$job",instance=~"$instance"}`

// sections are the scopes in the order of the dashboard: first what is wrong, last what few programs use.
var sections = []string{"monitor", "framework", "locks", "election", "scheduler", "queue", "workflow", "barrier", "config", "ids", "registry", "members"}

// Panels returns a panel for each row of the table of metrics, section after section.
func Panels() (panels []Panel) {
	for _, scope := range sections {
		for _, m := range metrics.All {
			if m.Scope == scope {
				panels = append(panels, newPanel(m))
			}
		}
	}
	return panels
}

// newPanel shows a metric as its kind asks: quantiles of a histogram, a counter's rate, the sum of up-down counters of all processes, and of gauges,
// which tell of the same thing wherever they are measured, the greatest.
func newPanel(m *metrics.Metric) Panel {
	title := strings.NewReplacer(".", " ", "_", " ").Replace(strings.TrimPrefix(m.Name, "lockstep."))
	p := Panel{Metric: m, Title: strings.ToUpper(title[:1]) + title[1:], Unit: "short"}
	if m.Unit == "s" {
		p.Unit = "s"
	}
	name, by := PrometheusName(m), labels(m.By)
	switch m.Kind {
	case metrics.Histogram:
		quantiles := []int{50, 99}
		if m == metrics.LeaseLeft { // what is low is what matters
			quantiles = []int{1, 50}
		}
		for _, q := range quantiles {
			p.Queries = append(p.Queries, Query{
				fmt.Sprintf("histogram_quantile(0.%02d, sum by (%s) (rate(%s_bucket%s[$__rate_interval])))", q, strings.Join(append([]string{"le"}, by...), ", "), name, selected),
				legend(by, fmt.Sprintf("p%d", q)),
			})
		}
	case metrics.Counter:
		p.Unit = "ops"
		p.Queries = []Query{{fmt.Sprintf("sum%s (rate(%s%s[$__rate_interval]))", grouped(by), name, selected), legend(by, "")}}
	case metrics.UpDown:
		p.Queries = []Query{{fmt.Sprintf("sum%s (%s%s)", grouped(by), name, selected), legend(by, "")}}
	case metrics.Gauge:
		p.Queries = []Query{{fmt.Sprintf("max%s (%s%s)", grouped(by), name, selected), legend(by, "")}}
	}
	if m == metrics.LastSuccess {
		p.Title = "Time since a job's latest success"
		p.Queries[0].Expr = "time() - " + p.Queries[0].Expr
	}
	return p
}

func grouped(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " by (" + strings.Join(by, ", ") + ")"
}

// legend names a line by its labels.
func legend(by []string, prefix string) string {
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

// labels are what Prometheus calls attributes.
func labels(attributes []string) []string {
	names := slices.Clone(attributes)
	for i, a := range names {
		names[i] = strings.ReplaceAll(a, ".", "_")
	}
	return names
}
