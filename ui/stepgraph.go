package ui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/workflow"
)

// graphView is a graph of a run: a drawing, and a table that says the same.
type graphView struct {
	Name    string
	Drawing drawing
	Short   bool // some boxes of the wide picture are several steps
	Steps   int
	Rows    []graphRow // the first ones
}

// graphRow is a step of a graph.
type graphRow struct {
	workflow.GraphStepProgress
	ID    string // of its row on the page; "" if the page leaves it out
	State string
	Mark  severity
	Took  string // "" without a record
}

// graphsOf are the graphs of a run.
func graphsOf(run workflow.Report) (views []graphView) {
	took := map[string]string{}
	for _, r := range run.Steps {
		took[r.Name] = r.Took.String()
	}
	for i, g := range workflow.GraphsIn(run.Steps) {
		v := graphView{Name: g.Name, Steps: len(g.Steps)}
		var rows []graphRow
		for k, s := range g.Steps {
			row := graphRow{GraphStepProgress: s, State: survey.GraphStepState(run, s), Took: took[s.Name]}
			row.Mark = markOfStep[row.State]
			if k < maxRowsOfRun {
				row.ID = fmt.Sprintf("step-%d-%d", i, k)
			}
			rows = append(rows, row)
		}
		v.Drawing, v.Short = drawSteps(fmt.Sprint("graph-", i), g.Name, rows)
		v.Rows = rows[:min(len(rows), maxRowsOfRun)]
		views = append(views, v)
	}
	return views
}

// markOfStep are the marks of the states of steps.
var markOfStep = map[string]severity{survey.StepFailed: bad, survey.StepUnderWay: busy, survey.StepNext: busy,
	survey.StepDone: good, survey.StepWaiting: wait, survey.StepNotDone: off}

// stepStates are these states, that which needs somebody first.
var stepStates = []string{survey.StepFailed, survey.StepUnderWay, survey.StepNext, survey.StepNotDone,
	survey.StepWaiting, survey.StepDone}

// isUrgent reports whether a step is drawn by itself rather than with others.
func (r graphRow) isUrgent() bool { return r.Mark == bad || r.Mark == busy }

// drawSteps draws a graph from the left to the right, for wide windows, and from the top to the
// bottom.
func drawSteps(id, name string, rows []graphRow) (d drawing, short bool) {
	wide, wideArrows, shortWide := boxesOf(rows, 6, 6)
	tall, tallArrows, _ := boxesOf(rows, 12, 2)
	d.Pictures = []picture{draw(id+"-wide", "wide", wide, wideArrows), draw(id+"-tall", "tall", tall, tallArrows)}
	words := []string{fmt.Sprintf("Graph %s, %s:", name, counted(len(rows), "step", "steps"))}
	for _, state := range stepStates {
		var names []string
		for _, r := range rows {
			if r.State == state {
				names = append(names, r.Name)
			}
		}
		switch n := len(names); {
		case n > 5:
			words = append(words, fmt.Sprintf("%s %s.", count(n), state))
		case n > 0:
			words = append(words, fmt.Sprintf("%s %s.", strings.Join(names, ", "), state))
		}
	}
	d.Text = plain(strings.Join(append(words, "The table below has the same."), " "))
	return d, shortWide
}

// boxesOf returns a box for each step, in layers by level. If there are more levels than maxLayers,
// a layer has several of them, except for the first level and the first two with urgent steps. If a
// layer has more steps than maxBoxes, or several levels, its steps are one box for each state,
// except for some urgent ones. Arrows within a layer are left out, as are those that follow from
// others: of a step that is after another one and after what that one is after.
func boxesOf(rows []graphRow, maxLayers, maxBoxes int) (boxes []box, arrows []boxArrow, short bool) {
	layers, merged := layersOf(rows, maxLayers)
	boxAt := map[string]int{} // by step
	isDone := map[int]bool{}  // of boxes
	for i, layer := range layers {
		add := func(b box, done bool, steps ...graphRow) {
			for _, r := range steps {
				boxAt[r.Name] = len(boxes)
			}
			isDone[len(boxes)] = done
			b.Layer = i
			boxes = append(boxes, b)
		}
		if !merged[i] && len(layer) <= maxBoxes {
			for _, r := range layer {
				add(boxOfStep(r), r.Done, r)
			}
			continue
		}
		for _, state := range stepStates {
			var all []graphRow
			for _, r := range layer {
				if r.State == state {
					all = append(all, r)
				}
			}
			for len(all) > 0 && (len(all) == 1 || all[0].isUrgent() && len(boxesIn(boxes, i)) < maxBoxes-2) {
				add(boxOfStep(all[0]), all[0].Done, all[0])
				all = all[1:]
			}
			if len(all) > 0 {
				short = true
				add(boxOfSteps(all), all[0].Done, all...)
			}
		}
	}
	between := map[[2]int]bool{}
	for _, r := range rows {
		for _, name := range r.After {
			from, to := boxAt[name], boxAt[r.Name]
			if boxes[from].Layer < boxes[to].Layer {
				between[[2]int{from, to}] = true
			}
		}
	}
	for from := range boxes {
		for to := range boxes {
			if between[[2]int{from, to}] && !leadsAround(between, len(boxes), from, to) {
				a := boxArrow{From: from, To: to, Class: "next"}
				if isDone[from] {
					a.Class = "done"
				}
				arrows = append(arrows, a)
			}
		}
	}
	return boxes, arrows, short
}

func boxesIn(boxes []box, layer int) []box {
	return slices.DeleteFunc(slices.Clone(boxes), func(b box) bool { return b.Layer != layer })
}

// layersOf distributes steps, which are in the order of their levels, over at most maxLayers
// layers. merged has those with several levels.
func layersOf(rows []graphRow, maxLayers int) (layers [][]graphRow, merged map[int]bool) {
	levels := rows[len(rows)-1].Level + 1
	alone := map[int]bool{0: true}
	for _, mark := range []severity{bad, busy} {
		for _, r := range rows {
			if r.Mark == mark && len(alone) < 3 {
				alone[r.Level] = true
			}
		}
	}
	merged = map[int]bool{}
	last := -1 // the level of the latest layer
	for _, r := range rows {
		switch {
		case r.Level == last:
		case last < 0 || levels <= maxLayers || alone[last] || alone[r.Level]:
			layers = append(layers, nil)
		default:
			merged[len(layers)-1] = true
		}
		last = r.Level
		layers[len(layers)-1] = append(layers[len(layers)-1], r)
	}
	return layers, merged
}

// leadsAround reports whether arrows lead from one box to another by way of others.
func leadsAround(between map[[2]int]bool, boxes, from, to int) bool {
	seen := map[int]bool{}
	var reaches func(at int) bool
	reaches = func(at int) bool {
		for next := range boxes {
			if !between[[2]int{at, next}] || at == from && next == to || seen[next] {
				continue
			}
			seen[next] = true
			if next == to || reaches(next) {
				return true
			}
		}
		return false
	}
	return reaches(from)
}

// classOfMark is the class of the box of a step with a mark.
var classOfMark = map[severity]string{bad: "bad", busy: "busy", good: "good", wait: "wait", off: "wait"}

func boxOfStep(r graphRow) box {
	b := box{Name: short(r.Name, nameLength), Title: plain(r.Name), Below: r.State, Mark: r.Mark,
		Class: classOfMark[r.Mark]}
	switch {
	case r.Done && r.Took != "":
		b.Below += ", " + r.Took
	case len(r.WaitsFor) == 1 && r.State == survey.StepWaiting:
		b.Below = short("for "+r.WaitsFor[0], belowLength)
	case r.State == survey.StepWaiting:
		b.Below = fmt.Sprintf("for %s", counted(len(r.WaitsFor), "step", "steps"))
	}
	if r.ID != "" {
		b.Href = "#" + r.ID
	}
	return b
}

// boxOfSteps is one box for several steps of the same state.
func boxOfSteps(all []graphRow) box {
	b := boxOfStep(all[0])
	b.Name, b.Below = counted(len(all), "step", "steps"), all[0].State
	b.Title = plain(fmt.Sprintf("%s to %s", all[0].Name, all[len(all)-1].Name))
	return b
}
