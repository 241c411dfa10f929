package dashboard

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockstep-go/lockstep/internal/metrics"
)

// Alert is one alert rule for Prometheus.
type Alert struct {
	Name     string `yaml:"alert"`
	Expr     string `yaml:"expr"`
	For      string `yaml:"for,omitempty"`
	Severity string `yaml:"-"`
	Summary  string `yaml:"-"`
	Action   string `yaml:"-"` // what an operator should do
	Entry    string `yaml:"-"` // the heading of its entry in docs/operate/run-book.md
	// Example is series, with one value a minute, for which the alert fires within an hour. Fires
	// is the labels of that alert. A test runs them.
	Example []string          `yaml:"-"`
	Fires   map[string]string `yaml:"-"`
}

// The severities. A critical alert needs an operator at once; a warning can wait until working
// hours.
const (
	critical = "critical"
	warning  = "warning"
)

// Alerts are the rules. Their thresholds are for programs with Lockstep's default options.
var Alerts = []Alert{
	{
		Name: "LockstepMonitorAbsent", Expr: fmt.Sprintf("absent(%s)", PrometheusName(metrics.MonitorUp)), For: "5m",
		Severity: critical,
		Summary:  "No monitor scans locks, jobs, queues and workflows.",
		Action: "Start a program with package monitor, or find out why none leads. Remove this rule if you run no " +
			"monitor, or only `lockstep monitor`, which exports no metrics.",
		Entry:   "No monitor scans",
		Example: []string{}, Fires: map[string]string{},
	},
	{
		Name: "LockstepMonitorFails",
		Expr: fmt.Sprintf("max by (lockstep_root) (%s) == 0", PrometheusName(metrics.MonitorUp)), For: "5m",
		Severity: critical,
		Summary:  "The monitor of {{ $labels.lockstep_root }} cannot scan.",
		Action:   "Read the log of the monitor that leads, then run `lockstep doctor`.",
		Entry:    "No monitor scans",
		Example:  []string{PrometheusName(metrics.MonitorUp) + `{lockstep_root="/shop"} 0x60`},
		Fires:    map[string]string{"lockstep_root": "/shop"},
	},
	{
		Name: "LockstepFinding", Expr: fmt.Sprintf("max by (lockstep_root, lockstep_problem) (%s) > 0",
			PrometheusName(metrics.MonitorFindings)), Severity: warning,
		Summary: "{{ $value }} findings ({{ $labels.lockstep_problem }}) below {{ $labels.lockstep_root }}.",
		Action:  "`lockstep check {{ $labels.lockstep_root }}` names each path and what is wrong with it.",
		Entry:   "The monitor has found something",
		Example: []string{PrometheusName(metrics.MonitorFindings) +
			`{lockstep_root="/shop",lockstep_problem="many waiters"} 2x60`},
		Fires: map[string]string{"lockstep_root": "/shop", "lockstep_problem": "many waiters"},
	},
	{
		Name: "LockstepDisconnected",
		Expr: fmt.Sprintf(`sum by (job, instance) (%s{lockstep_state=~"connecting|suspended"}) > 0`,
			PrometheusName(metrics.SessionState)), For: "2m", Severity: critical,
		Summary: "{{ $labels.instance }} has reached no ZooKeeper server for two minutes.",
		Action:  "Run `lockstep doctor` on that machine.",
		Entry:   "No server can be reached",
		Example: []string{PrometheusName(metrics.SessionState) +
			`{job="shop",instance="a",lockstep_state="suspended"} 1x60`},
		Fires: map[string]string{"job": "shop", "instance": "a"},
	},
	{
		Name: "LockstepSessionLost", Expr: recentRiseExpr(metrics.SessionLosses, "job, instance", "15m"),
		Severity: warning,
		Summary:  "{{ $labels.instance }} has lost a session: what it held has ended.",
		Action:   "Look for long pauses of that process and for restarts of the servers; see docs/timeouts.md.",
		Entry:    "Sessions are lost",
		Example:  []string{PrometheusName(metrics.SessionLosses) + `{job="shop",instance="a"} _x55 1x5`},
		Fires:    map[string]string{"job": "shop", "instance": "a"},
	},
	{
		Name: "LockstepLeaseNearlyOver",
		Expr: fmt.Sprintf("histogram_quantile(0.01, sum by (job, instance, le) (rate(%s_bucket[15m]))) < 2",
			PrometheusName(metrics.LeaseLeft)), For: "5m", Severity: warning,
		Summary: "Leases of {{ $labels.instance }} come within two seconds of their end.",
		Action:  "The servers or that process answer late: run `lockstep doctor`; see docs/timeouts.md.",
		Entry:   "Sessions are lost",
		Example: []string{PrometheusName(metrics.LeaseLeft) + `_bucket{job="shop",instance="a",le="1"} 0+1x60`,
			PrometheusName(metrics.LeaseLeft) + `_bucket{job="shop",instance="a",le="+Inf"} 0+10x60`},
		Fires: map[string]string{"job": "shop", "instance": "a"},
	},
	{
		Name: "LockstepOverloaded", Expr: fmt.Sprintf(`sum by (job) (rate(%s{lockstep_outcome="overloaded"}[5m])) > 0`,
			PrometheusName(metrics.Requests)), For: "5m", Severity: warning,
		Summary: "The servers throttle requests of {{ $labels.job }}.",
		Action:  "Find the operations that rise in the dashboard, then look at the servers' load.",
		Entry:   "The servers are slow",
		Example: []string{PrometheusName(metrics.Requests) +
			`{job="shop",lockstep_operation="getData",lockstep_outcome="overloaded"} 0+1x60`},
		Fires: map[string]string{"job": "shop"},
	},
	{
		Name: "LockstepDeadlock", Expr: recentRiseExpr(metrics.LockDeadlocks, "job, lockstep_deadlock_broken", "15m"),
		Severity: warning,
		Summary:  "{{ $labels.job }} was in a deadlock.",
		Action: "Its log names the locks of the cycle; `lockstep locks --deadlocks` shows one that lasts. See " +
			"docs/deadlocks.md.",
		Entry: "A deadlock",
		Example: []string{PrometheusName(metrics.LockDeadlocks) +
			`{job="shop",lockstep_lock_kind="mutex",lockstep_deadlock_broken="true"} _x55 1x5`},
		Fires: map[string]string{"job": "shop", "lockstep_deadlock_broken": "true"},
	},
	{
		Name: "LockstepTicksMissed", Severity: warning,
		// the other reasons are wanted
		Expr: recentRiseExpr(metrics.MissedTicks, "lockstep_job, lockstep_reason", "30m",
			`lockstep_reason=~"no leader|late|busy|runner lost"`),
		Summary: "{{ $labels.lockstep_job }} has missed ticks: {{ $labels.lockstep_reason }}.",
		Action:  "`lockstep jobs {{ $labels.lockstep_job }}` lists them with their reasons.",
		Entry:   "A job did not run",
		Example: []string{PrometheusName(metrics.MissedTicks) +
			`{lockstep_job="/billing/jobs/rollup",lockstep_reason="late"} 0x50 3x10`},
		Fires: map[string]string{"lockstep_job": "/billing/jobs/rollup", "lockstep_reason": "late"},
	},
	{
		Name: "LockstepJobFails", Severity: warning,
		Expr: recentRiseExpr(metrics.RunDuration, "lockstep_job, lockstep_outcome", "30m",
			`lockstep_outcome=~"failed|panicked|timed out|lost"`),
		Summary: "A run of {{ $labels.lockstep_job }} has ended badly: {{ $labels.lockstep_outcome }}.",
		Action:  "`lockstep jobs {{ $labels.lockstep_job }}` shows the error.",
		Entry:   "A run fails",
		Example: []string{PrometheusName(metrics.RunDuration) +
			`_count{lockstep_job="/billing/jobs/rollup",lockstep_outcome="failed"} 0x50 1x10`},
		Fires: map[string]string{"lockstep_job": "/billing/jobs/rollup", "lockstep_outcome": "failed"},
	},
	{
		Name: "LockstepRunStuck", Expr: recentRiseExpr(metrics.StuckRuns, "job, instance, lockstep_job", "30m"),
		Severity: warning,
		Summary: "A run of {{ $labels.lockstep_job }} in {{ $labels.instance }} does not return although its " +
			"context has ended.", Action: "Take a dump of that process's goroutines, then restart it.",
		Entry: "A run does not end",
		Example: []string{PrometheusName(metrics.StuckRuns) +
			`{job="shop",instance="a",lockstep_job="/billing/jobs/rollup"} _x50 1x10`},
		Fires: map[string]string{"job": "shop", "instance": "a", "lockstep_job": "/billing/jobs/rollup"},
	},
	{
		Name: "LockstepConfigRefused", Expr: recentRiseExpr(metrics.ConfigRefused, "job, instance", "15m"),
		Severity: warning,
		Summary:  "{{ $labels.instance }} has refused a configuration value and goes on with the one before.",
		Action:   "Its log names the path: `lockstep config history PATH`, then `lockstep config rollback PATH VERSION`.",
		Entry:    "A configuration value is refused",
		Example:  []string{PrometheusName(metrics.ConfigRefused) + `{job="shop",instance="a"} 0x50 1x10`},
		Fires:    map[string]string{"job": "shop", "instance": "a"},
	},
	{
		Name: "LockstepPoolListOld",
		Expr: fmt.Sprintf("sum by (job, instance, lockstep_service) (increase(%s[10m])) == 0",
			PrometheusName(metrics.RegistryLists)), Severity: warning,
		Summary: "{{ $labels.instance }} uses an old list of the instances of {{ $labels.lockstep_service }}.",
		Action:  "Run `lockstep doctor` on that machine. Calls go on with the list that it has.",
		Entry:   "A pool has an old list",
		Example: []string{PrometheusName(metrics.RegistryLists) +
			`{job="shop",instance="a",lockstep_service="/services/billing"} 7x60`},
		Fires: map[string]string{"job": "shop", "instance": "a", "lockstep_service": "/services/billing"},
	},
	{
		Name: "LockstepNoInstance", Expr: fmt.Sprintf("sum by (job, lockstep_service) (rate(%s[5m])) > 0",
			PrometheusName(metrics.RegistryUnserved)), For: "2m", Severity: critical,
		Summary: "Calls of {{ $labels.job }} find no instance of {{ $labels.lockstep_service }}.",
		Action:  "`lockstep services {{ $labels.lockstep_service }}` lists the instances and their states.",
		Entry:   "A service has no instance",
		Example: []string{PrometheusName(metrics.RegistryUnserved) +
			`{job="shop",lockstep_service="/services/billing",lockstep_outcome="no instance"} 0+1x60`},
		Fires: map[string]string{"job": "shop", "lockstep_service": "/services/billing"},
	},
}

// recentRiseExpr returns an expression that is true for a while after a counter has risen. It is
// also true after the first value of a new counter, which increase() ignores.
func recentRiseExpr(m *metrics.Metric, by, within string, matchers ...string) string {
	name := PrometheusName(m)
	if m.Kind == metrics.Histogram {
		name += "_count"
	}
	if len(matchers) > 0 {
		name += "{" + strings.Join(matchers, ",") + "}"
	}
	return fmt.Sprintf("sum by (%s) (increase(%s[%s]) > 0 or (%s unless %s offset %s) > 0) > 0", by, name, within,
		name, name, within)
}

// RunBook is the page with an entry for each alert.
const RunBook = "https://github.com/lockstep-go/lockstep/blob/main/docs/operate/run-book.md"

// RunBookURL returns the address of the alert's entry.
func (a Alert) RunBookURL() string {
	return RunBook + "#" + strings.NewReplacer(" ", "-", "'", "").Replace(strings.ToLower(a.Entry))
}

type ruleGroups struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       `yaml:",inline"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Rules returns docs/prometheus/lockstep.yml.
func Rules() (string, error) {
	g := ruleGroup{Name: "lockstep"}
	for _, a := range Alerts {
		g.Rules = append(g.Rules,
			rule{a, map[string]string{"severity": a.Severity},
				map[string]string{"summary": a.Summary, "description": a.Action, "runbook_url": a.RunBookURL()}})
	}
	return encodeYAML(ruleGroups{[]ruleGroup{g}})
}

// encodeYAML returns the text of a generated YAML file.
func encodeYAML(v any) (string, error) {
	var b strings.Builder
	b.WriteString("# Generated by internal/metrics/dashboard from the metrics of docs/telemetry.md.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(v)
	return b.String(), err
}
