package dashboard

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/prometheus"
)

type promtoolSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type promtoolAlert struct {
	EvalTime  string `yaml:"eval_time"`
	Alertname string `yaml:"alertname"`
	Expected  []struct {
		Labels map[string]string `yaml:"exp_labels"`
	} `yaml:"exp_alerts"`
}

type promtoolTest struct {
	Name     string           `yaml:"name"`
	Interval string           `yaml:"interval"`
	Input    []promtoolSeries `yaml:"input_series"`
	Alerts   []promtoolAlert  `yaml:"alert_rule_test"`
}

// TestEachAlertFires runs each rule on its example with promtool, which also parses it. Without any
// series, only LockstepMonitorAbsent fires.
func TestEachAlertFires(t *testing.T) {
	promtool := prometheus.Tool(t, "promtool")
	dir := t.TempDir()
	file := struct {
		Rules []string       `yaml:"rule_files"`
		Tests []promtoolTest `yaml:"tests"`
	}{Rules: []string{"rules.yml"}}
	plain := ruleGroup{Name: "lockstep"} // without annotations, which promtool would compare too
	for _, a := range Alerts {
		plain.Rules = append(plain.Rules, rule{Alert: a, Labels: map[string]string{"severity": a.Severity}})
		test := promtoolTest{Name: a.Name, Interval: "1m"}
		for _, line := range a.Example {
			labels, values, ok := strings.Cut(line, "} ")
			require.True(t, ok, line)
			test.Input = append(test.Input, promtoolSeries{labels + "}", values})
		}
		labels := map[string]string{"severity": a.Severity}
		maps.Copy(labels, a.Fires)
		fires := promtoolAlert{EvalTime: "58m", Alertname: a.Name}
		fires.Expected = append(fires.Expected, struct {
			Labels map[string]string `yaml:"exp_labels"`
		}{labels})
		test.Alerts = []promtoolAlert{fires}
		if a.Name != "LockstepMonitorAbsent" {
			quiet := promtoolTest{Name: a.Name + " without data", Interval: "1m",
				Alerts: []promtoolAlert{{EvalTime: "58m", Alertname: a.Name}}}
			file.Tests = append(file.Tests, quiet)
		}
		file.Tests = append(file.Tests, test)
	}
	for name, content := range map[string]any{"rules.yml": ruleGroups{[]ruleGroup{plain}}, "tests.yml": file} {
		text, err := encodeYAML(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), promtool, "test", "rules",
		filepath.Join(dir, "tests.yml")).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), promtool, "check", "rules",
		"../../../docs/prometheus/lockstep.yml").CombinedOutput()
	require.NoError(t, err, string(out))
}
