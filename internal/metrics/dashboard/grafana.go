package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The parts of Grafana's JSON that Grafana uses.
type (
	grafanaDashboard struct {
		UID           string           `json:"uid"`
		Title         string           `json:"title"`
		Description   string           `json:"description"`
		Tags          []string         `json:"tags"`
		SchemaVersion int              `json:"schemaVersion"`
		Editable      bool             `json:"editable"`
		Refresh       string           `json:"refresh"`
		Time          grafanaTime      `json:"time"`
		Templating    grafanaVariables `json:"templating"`
		Panels        []grafanaPanel   `json:"panels"`
	}
	grafanaTime struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	grafanaVariables struct {
		List []grafanaVariable `json:"list"`
	}
	grafanaVariable struct {
		Name       string         `json:"name"`
		Label      string         `json:"label"`
		Type       string         `json:"type"`
		Query      string         `json:"query"`
		Datasource *grafanaSource `json:"datasource,omitempty"`
		Refresh    int            `json:"refresh"`
		Multi      bool           `json:"multi"`
		IncludeAll bool           `json:"includeAll"`
		AllValue   string         `json:"allValue,omitempty"`
		Current    map[string]any `json:"current"`
	}
	grafanaSource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	grafanaPanel struct {
		ID          int             `json:"id"`
		Type        string          `json:"type"`
		Title       string          `json:"title"`
		Description string          `json:"description,omitempty"`
		GridPos     grafanaPosition `json:"gridPos"`
		Datasource  *grafanaSource  `json:"datasource,omitempty"`
		FieldConfig *grafanaFields  `json:"fieldConfig,omitempty"`
		Targets     []grafanaTarget `json:"targets,omitempty"`
	}
	grafanaPosition struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	grafanaFields struct {
		Defaults  grafanaDefaults `json:"defaults"`
		Overrides []any           `json:"overrides"`
	}
	grafanaDefaults struct {
		Unit string `json:"unit"`
		Min  *int   `json:"min,omitempty"`
	}
	grafanaTarget struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	}
)

// Half of Grafana's 24 columns, and a height that shows ten lines of a legend.
const (
	panelWidth  = 12
	panelHeight = 8
)

// Grafana returns docs/grafana/lockstep.json: a row for each section, with its panels in pairs.
func Grafana() (string, error) {
	source := &grafanaSource{"prometheus", "${datasource}"}
	d := grafanaDashboard{
		UID: "lockstep", Title: "Lockstep", Tags: []string{"lockstep"}, SchemaVersion: 39, Editable: true,
		Refresh: "30s", Time: grafanaTime{"now-1h", "now"},
		Description: "Generated from the metrics of docs/telemetry.md. Each panel shows one metric; its description " +
			"tells what is measured.",
		Templating: grafanaVariables{[]grafanaVariable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1,
				Current: map[string]any{}},
			queryVariable("job", "Job", "label_values(lockstep_session_state, job)", source),
			queryVariable("instance", "Instance", `label_values(lockstep_session_state{job=~"$job"}, instance)`,
				source),
		}},
	}
	y, inRow := 0, 0
	section := ""
	zero := 0
	for _, p := range Panels() {
		if p.Metric.Scope != section {
			y, inRow, section = y+inRow%2*panelHeight, 0, p.Metric.Scope
			d.Panels = append(d.Panels,
				grafanaPanel{ID: len(d.Panels) + 1, Type: "row", Title: strings.ToUpper(section[:1]) + section[1:],
					GridPos: grafanaPosition{1, 24, 0, y}})
			y++
		}
		panel := grafanaPanel{
			ID: len(d.Panels) + 1, Type: "timeseries", Title: p.Title,
			Description: fmt.Sprintf("`%s`: %s", p.Metric.Name, p.Metric.Description),
			GridPos:     grafanaPosition{panelHeight, panelWidth, inRow % 2 * panelWidth, y}, Datasource: source,
			FieldConfig: &grafanaFields{Defaults: grafanaDefaults{Unit: p.Unit, Min: &zero}, Overrides: []any{}},
		}
		for i, q := range p.Queries {
			panel.Targets = append(panel.Targets,
				grafanaTarget{RefID: string(rune('A' + i)), Expr: q.Expr, LegendFormat: q.Legend})
		}
		d.Panels = append(d.Panels, panel)
		if inRow++; inRow%2 == 0 {
			y += panelHeight
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return b.String(), err
}

// queryVariable returns a variable whose values come from a query. By default all values are
// selected.
func queryVariable(name, label, query string, source *grafanaSource) grafanaVariable {
	return grafanaVariable{Name: name, Label: label, Type: "query", Query: query, Datasource: source, Refresh: 2,
		Multi: true, IncludeAll: true, AllValue: ".*",
		Current: map[string]any{"text": "All", "value": "$__all"}}
}
