package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// MaxGraphSteps is how many steps a graph may have. The record of the graph is one more of the
// MaxSteps of a run.
const MaxGraphSteps = MaxSteps - 1

const (
	graphKind   = "graph"
	graphPrefix = "graph:" // of the name of the step that records a graph
)

// GraphStep is a step of a Graph, for runs with an input I. Its result has type O.
type GraphStep[I, O any] struct {
	// Name is the step's name, as for Step. It is unique in the run.
	Name string
	// After are the names of the steps that must have a record before this one begins. Their order
	// means nothing.
	After []string
	// Do is the step's function. Its result is recorded as JSON. results has the recorded results
	// of the steps before this one; GraphStep.Result reads them. Contexts, errors and panics have
	// the same effect as for the function of Step.
	Do func(ctx context.Context, key Key, input I, results GraphResults) (O, error)
	// Options are as for Step.
	Options []StepOption
}

// Result returns the recorded result of the step. Within a step of the graph, it returns
// framework.ErrInvalid for one that need not have a record yet: only the steps in After, and those
// that they are after, may be read. A result that does not decode into O is framework.ErrBadValue.
func (s GraphStep[I, O]) Result(results GraphResults) (O, error) {
	var result, none O
	data, err := results.read(s.Name)
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return none, fmt.Errorf("%w: step %q: %s is no %T: %w", errResult, s.Name, shortenResult(data), result, err)
	}
	return result, nil
}

// AnyGraphStep is a GraphStep for runs with an input I, whatever its result is. No other type can
// be one.
type AnyGraphStep[I any] interface{ declare() graphStep[I] }

// graphStep is a GraphStep without the type of its result.
type graphStep[I any] struct {
	shapeStep
	options []StepOption
	run     func(ctx context.Context, r *stepRecorder, input I, results GraphResults) error // or nil
}

func (s GraphStep[I, O]) declare() graphStep[I] {
	declared := graphStep[I]{shapeStep: shapeStep{s.Name, slices.Clone(s.After)}, options: slices.Clone(s.Options)}
	if s.Do != nil {
		declared.run = func(ctx context.Context, r *stepRecorder, input I, results GraphResults) error {
			_, err := Step(ctx, r, s.Name,
				func(ctx context.Context, key Key) (O, error) { return s.Do(ctx, key, input, results) },
				declared.options...)
			return err
		}
	}
	return declared
}

// Graph is a set of steps with a declared order: which step follows which. Make one with NewGraph
// when the program starts. Its methods are safe for concurrent use, and one Graph serves any number
// of runs.
type Graph[I any] struct {
	name  string
	steps []graphStep[I]
	shape graphShape
	data  json.RawMessage // the shape, as it is recorded
}

// NewGraph returns a graph. It sends no request. The name tells the graphs of one run apart.
//
// It returns framework.ErrInvalid, and says which step is wrong, if there is no step, or there are
// more than MaxGraphSteps; if a step has no function, or a name or an option that Step would
// refuse; if a name is used twice; if a step is after one that the graph does not have; or if steps
// form a cycle. It returns ErrTooLarge of package framework if names and order together are more
// than MaxResult bytes as JSON.
func NewGraph[I any](name string, steps ...AnyGraphStep[I]) (*Graph[I], error) {
	if name == "" {
		return nil, fmt.Errorf("%w: a graph has no name", errOption)
	}
	g := &Graph[I]{name: name, shape: graphShape{Kind: graphKind}}
	for i, step := range steps {
		if isNil(step) {
			return nil, fmt.Errorf("%w: graph %q: step %d is nil", errOption, name, i)
		}
		declared := step.declare()
		g.steps = append(g.steps, declared)
		g.shape.Steps = append(g.shape.Steps, declared.shapeStep)
	}
	if err := checkName(graphPrefix + name); err != nil {
		return nil, fmt.Errorf("the graph's name: %w", err)
	}
	if err := g.shape.check(graphPrefix + name); err != nil {
		return nil, fmt.Errorf("%w: graph %q: %w", errOption, name, err)
	}
	for _, step := range g.steps {
		if step.run == nil {
			return nil, fmt.Errorf("%w: graph %q: step %q has no function", errOption, name, step.Name)
		}
		if _, err := recipe.ApplyOptions(stepDefaults(), step.options); err != nil {
			return nil, fmt.Errorf("graph %q: step %q: %w", name, step.Name, err)
		}
	}
	data, err := encodeRecord(g.shape)
	if err == nil {
		g.data, err = encodeResult(json.RawMessage(data))
	}
	if err != nil {
		return nil, fmt.Errorf("graph %q: its names and its order: %w", name, err)
	}
	return g, nil
}

// Run runs the steps of the graph that have no record yet, each as Step does, and returns the
// results of all. A step begins as soon as all steps that it is after have their records; steps
// that do not follow each other run at once. The graph itself is recorded first, as one more step,
// so that anyone can see what remains: GraphsIn.
//
// A Kind's function calls Run with its *Run; an executor of a ledger calls it with its *OpenLedger.
// Give it the same input each time, because the input is not recorded. After a restart it runs only
// the steps without a record. If a graph of this name with other steps or another order is
// recorded, Run returns framework.ErrMismatch.
//
// When a step fails, no further step begins, and if it has failed permanently, none begins in later
// calls. Run waits until the steps under way have returned; they are recorded if they succeed. It
// returns all their errors, joined, as Parallel does. To go on after an error, let the Kind's
// function return it, or open the ledger again: a second call with the same *Run or *OpenLedger
// returns framework.ErrInvalid. A step cannot wait for a signal, a time or a child: do that before
// or after Run, or between two graphs.
func (g *Graph[I]) Run(ctx context.Context, in Recorder, input I) (GraphResults, error) {
	r := recorderOf(in)
	if g == nil || r == nil {
		return GraphResults{}, fmt.Errorf("%w: the graph, the run or the open ledger is nil", errOption)
	}
	if err := g.recordShape(ctx, r); err != nil {
		return GraphResults{}, err
	}
	if err := g.recordedFailure(ctx, r, input); err != nil {
		return GraphResults{}, err
	}
	recorded := make(map[string]chan struct{}, len(g.steps)) // closed when the step has its record
	for _, step := range g.steps {
		recorded[step.Name] = make(chan struct{})
	}
	failed := make(chan struct{})
	fail := sync.OnceFunc(func() { close(failed) })
	functions := make([]func(context.Context) error, len(g.steps))
	for i, step := range g.steps {
		functions[i] = func(ctx context.Context) error {
			for _, name := range step.After {
				select {
				case <-recorded[name]:
				case <-failed:
					return nil
				}
			}
			select {
			case <-failed: // a select with several ready cases takes any
				return nil
			default:
			}
			if err := step.run(ctx, r, input, GraphResults{g.shape, r, step.Name}); err != nil {
				fail()
				return err
			}
			close(recorded[step.Name])
			return nil
		}
	}
	if err := r.Parallel(ctx, functions...); err != nil {
		return GraphResults{}, err
	}
	return GraphResults{g.shape, r, ""}, nil
}

// recordedFailure returns the errors of the steps that have failed permanently, joined, or nil.
func (g *Graph[I]) recordedFailure(ctx context.Context, r *stepRecorder, input I) error {
	var failed []error
	for _, step := range g.steps {
		if record, ok := r.recordOf(step.Name); ok && record.Failure != nil {
			failed = append(failed, step.run(ctx, r, input, GraphResults{}))
		}
	}
	return errors.Join(failed...)
}

// recordShape records the graph, or compares it with the one that is recorded.
func (g *Graph[I]) recordShape(ctx context.Context, r *stepRecorder) error {
	record := graphPrefix + g.name
	data, err := Step(ctx, r, record, func(context.Context, Key) (json.RawMessage, error) { return g.data, nil })
	if err != nil {
		return err
	}
	began, err := parseShape(data, record)
	if err == nil {
		if differences := g.shape.differences(began); len(differences) > 0 {
			err = fmt.Errorf("%w, in another release: graph %q: %s: give the kind of the changed graph another name "+
				"and keep the former one until its runs have ended, "+
				"or finish this run with the former release, or run all its steps again: retry it from step %q, or "+
				"remove the ledger",
				errGraphChanged, g.name, strings.Join(differences, "; "), record)
		}
	}
	return failure.Wrap("graph", r.ledger.stepNode(record), err)
}

// GraphResults are the recorded results of a graph's steps: within a step those of the steps before
// it, and after Graph.Run all. GraphStep.Result reads them.
type GraphResults struct {
	shape   graphShape
	results *stepRecorder
	reader  string // the step that reads; "" is after all
}

func (r GraphResults) read(step string) ([]byte, error) {
	if r.results == nil || !slices.ContainsFunc(r.shape.Steps, func(s shapeStep) bool { return s.Name == step }) {
		return nil, fmt.Errorf("%w: the graph has no step %q", errOption, step)
	}
	if r.reader != "" && !r.shape.stepsBefore(r.reader)[step] {
		return nil, fmt.Errorf("%w: step %q reads the result of %q, which may have none yet: name %q in its After",
			errOption, r.reader, step, step)
	}
	record, ok := r.results.recordOf(step)
	if !ok || record.Failure != nil {
		return nil, fmt.Errorf("%w: step %q has no result", errOption, step)
	}
	return record.Result, nil
}

// GraphProgress is how far a run has come in a graph.
type GraphProgress struct {
	// Name is the graph's name.
	Name string `json:"name"`
	// Steps are all steps, each behind those that it is after.
	Steps []GraphStepProgress `json:"steps"`
}

// GraphStepProgress is how far a run has come with a step of a graph.
type GraphStepProgress struct {
	// Name is the step's name.
	Name string `json:"name"`
	// After are the steps that this one is after.
	After []string `json:"after,omitempty"`
	// Level is 0 for a step that is after none, and else one more than the highest level of those
	// that it is after.
	Level int `json:"level"`
	// Done reports whether the step has a recorded result, and Failed whether it has failed
	// permanently.
	Done   bool `json:"done"`
	Failed bool `json:"failed,omitempty"`
	// WaitsFor are the steps in After that have no result. A step that is not done, has not failed
	// and waits for none is under way, or is the next to begin.
	WaitsFor []string `json:"waits_for,omitempty"`
}

// GraphsIn finds the graphs that are recorded among the steps of a run, which Workflows.Inspect or
// Ledger.Records have returned, in the order in which the run began them. What is recorded under
// the name of a graph and cannot be read as one is left out.
func GraphsIn(records []StepRecord) []GraphProgress {
	done, failed := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		done[r.Name], failed[r.Name] = r.Error == "", r.Error != ""
	}
	var graphs []GraphProgress
	for _, r := range records {
		name, isGraph := strings.CutPrefix(r.Name, graphPrefix)
		if !isGraph {
			continue
		}
		shape, err := parseShape(r.Result, r.Name)
		if err != nil {
			continue
		}
		levels, _ := shape.levels()
		progress := GraphProgress{Name: name}
		for _, s := range shape.Steps {
			p := GraphStepProgress{Name: s.Name, After: s.After, Level: levels[s.Name], Done: done[s.Name],
				Failed: failed[s.Name]}
			if !p.Done {
				p.WaitsFor = slices.DeleteFunc(slices.Clone(s.After), func(name string) bool { return done[name] })
			}
			progress.Steps = append(progress.Steps, p)
		}
		slices.SortStableFunc(progress.Steps, func(a, b GraphStepProgress) int { return a.Level - b.Level })
		graphs = append(graphs, progress)
	}
	return graphs
}

// graphShape is the result of the step that records a graph.
type graphShape struct {
	Kind  string      `json:"kind"`
	Steps []shapeStep `json:"steps"`
}

type shapeStep struct {
	Name  string   `json:"name"`
	After []string `json:"after,omitempty"`
}

// parseShape reads the result of the step that records a graph.
func parseShape(data []byte, record string) (shape graphShape, err error) {
	if _, err = recipe.Decode(data, recordVersion, &shape); err != nil {
		return graphShape{}, err
	}
	if shape.Kind != graphKind {
		return graphShape{}, fmt.Errorf("%w: the result of step %q is no graph", errForeign, record)
	}
	if err = shape.check(record); err != nil {
		return graphShape{}, fmt.Errorf("%w: the graph in the result of step %q: %w", framework.ErrBadRecord,
			record, err)
	}
	return shape, nil
}

// check reports why there cannot be such a graph, or nil. record is the name under which the graph
// is recorded.
func (g graphShape) check(record string) error {
	if len(g.Steps) == 0 || len(g.Steps) > MaxGraphSteps {
		return fmt.Errorf("it has %d steps, it must have 1 to %d", len(g.Steps), MaxGraphSteps)
	}
	names := map[string]bool{}
	for _, s := range g.Steps {
		if err := checkName(s.Name); err != nil {
			return err
		}
		if s.Name == record {
			return fmt.Errorf("step %q has the name under which the graph itself is recorded: give it another one",
				s.Name)
		}
		if names[s.Name] {
			return fmt.Errorf("it has two steps with the name %q: give each its own", s.Name)
		}
		names[s.Name] = true
	}
	for _, s := range g.Steps {
		after := map[string]bool{}
		for _, name := range s.After {
			switch {
			case !names[name]:
				return fmt.Errorf("step %q is after %.*q, which the graph does not have", s.Name, MaxName, name)
			case after[name]:
				return fmt.Errorf("step %q is after %q twice: name it once", s.Name, name)
			}
			after[name] = true
		}
	}
	if _, circle := g.levels(); len(circle) > 0 {
		return fmt.Errorf("steps form a cycle, each one after the one before it: %s: leave one of these out of After",
			strings.Join(circle, " -> "))
	}
	return nil
}

// levels returns the level of each step, or, if steps form a circle, the quoted names of one
// circle, in the order of their running, with the first one again at the end.
func (g graphShape) levels() (levels map[string]int, circle []string) {
	levels = map[string]int{}
	followers := map[string][]string{}
	after := map[string][]string{}
	missing := map[string]int{} // how many steps before this one have no level yet
	var ready []string
	for _, s := range g.Steps {
		after[s.Name], missing[s.Name] = s.After, len(s.After)
		for _, name := range s.After {
			followers[name] = append(followers[name], s.Name)
		}
		if len(s.After) == 0 {
			ready = append(ready, s.Name)
		}
	}
	for len(ready) > 0 {
		name := ready[0]
		ready = ready[1:]
		for _, follower := range followers[name] {
			levels[follower] = max(levels[follower], levels[name]+1)
			if missing[follower]--; missing[follower] == 0 {
				ready = append(ready, follower)
			}
		}
	}
	first := slices.IndexFunc(g.Steps, func(s shapeStep) bool { return missing[s.Name] > 0 })
	if first < 0 {
		return levels, nil
	}
	// Each step that is left waits for one that is left. So the way back comes to a step a second
	// time.
	var back []string
	name := g.Steps[first].Name
	for !slices.Contains(back, name) {
		back = append(back, name)
		before := after[name]
		name = before[slices.IndexFunc(before, func(name string) bool { return missing[name] > 0 })]
	}
	back = append(back[slices.Index(back, name):], name)
	slices.Reverse(back)
	for _, name := range back {
		circle = append(circle, fmt.Sprintf("%q", name))
	}
	return nil, circle
}

// stepsBefore returns the steps that have records when a step begins.
func (g graphShape) stepsBefore(step string) map[string]bool {
	after := map[string][]string{}
	for _, s := range g.Steps {
		after[s.Name] = s.After
	}
	before := map[string]bool{}
	for look := []string{step}; len(look) > 0; {
		var next []string
		for _, name := range look {
			for _, earlier := range after[name] {
				if !before[earlier] {
					before[earlier] = true
					next = append(next, earlier)
				}
			}
		}
		look = next
	}
	return before
}

// mostDifferences is how many differences an error names.
const mostDifferences = 5

// differences says in words how the graph differs from the one with which a run began. The order in
// which steps are listed is none.
func (g graphShape) differences(began graphShape) (differences []string) {
	differ := func(format string, names ...any) {
		differences = append(differences, fmt.Sprintf(format, names...))
	}
	former := map[string][]string{}
	for _, s := range began.Steps {
		former[s.Name] = s.After
	}
	for _, s := range g.Steps {
		was, ok := former[s.Name]
		delete(former, s.Name)
		if !ok {
			differ("step %q is new", s.Name)
			continue
		}
		for _, name := range s.After {
			if !slices.Contains(was, name) {
				differ("step %q is now after %q", s.Name, name)
			}
		}
		for _, name := range was {
			if !slices.Contains(s.After, name) {
				differ("step %q was after %q", s.Name, name)
			}
		}
	}
	for _, s := range began.Steps {
		if _, ok := former[s.Name]; ok {
			differ("step %q is gone", s.Name)
		}
	}
	if more := len(differences) - mostDifferences; more > 0 {
		differences = append(differences[:mostDifferences], fmt.Sprintf("and %d more", more))
	}
	return differences
}
