package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

type graphStep = workflow.GraphStep[int, any]

func newGraph(t *testing.T, steps ...graphStep) *workflow.Graph[int] {
	t.Helper()
	g, err := workflow.NewGraph("g", anySteps(steps)...)
	require.NoError(t, err)
	return g
}

func anySteps(steps []graphStep) (all []workflow.AnyGraphStep[int]) {
	for _, s := range steps {
		all = append(all, s)
	}
	return all
}

// stepResult reads the result of a step as another type than that with which it was declared.
func stepResult[T any](results workflow.GraphResults, step string) (T, error) {
	return workflow.GraphStep[int, T]{Name: step}.Result(results)
}

// diamond is a graph in which "first" is before "left" and "right", these are before "last", and
// "alone" stands beside them. Each step checks that those before it are recorded on the server.
func (w *world) diamond(t *testing.T, node string, done *doneLog) *workflow.Graph[int] {
	step := func(name string, after ...string) graphStep {
		return graphStep{Name: name, After: after,
			Do: func(_ context.Context, _ workflow.Key, input int, results workflow.GraphResults) (any, error) {
				sum := input
				recorded := w.Children(node)
				for _, before := range after {
					if !slices.Contains(recorded, "step-"+before) {
						t.Errorf("%s begins, and %s has no record", name, before)
					}
					n, err := stepResult[int](results, before)
					if err != nil {
						return nil, err
					}
					sum += n
				}
				done.add("%s", name)
				return sum, nil
			}}
	}
	return newGraph(t, step("last", "left", "right"), step("left", "first"), step("right", "first"), step("first"),
		step("alone"))
}

const diamondNodes = "step-alone step-first step-graph:g step-last step-left step-right"

func TestGraphRunsStepsInTheirOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		var done doneLog
		g := w.diamond(t, path, &done)
		results, err := g.Run(t.Context(), e.opened, 1)
		require.NoError(t, err)
		last, err := stepResult[int](results, "last")
		require.NoError(t, err)
		require.Equal(t, 1+2+2, last)
		require.Equal(t, strings.Fields(diamondNodes), w.steps())
		require.Len(t, done.all(), 5)
		_, err = g.Run(t.Context(), e.opened, 1)
		require.ErrorIs(t, err, framework.ErrInvalid)

		e.open(t)
		results, err = g.Run(t.Context(), e.opened, 1)
		require.NoError(t, err)
		last, err = stepResult[int](results, "last")
		require.NoError(t, err)
		require.Equal(t, 5, last)
		require.Len(t, done.all(), 5, "nothing is run again")
	})
}

// TestGraphStepBeginsAfterTheRecord: the function of the step before has returned, and its record
// takes a second.
func TestGraphStepBeginsAfterTheRecord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		g := newGraph(t,
			graphStep{Name: "a", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
				w.Freeze()
				time.AfterFunc(time.Second, w.Thaw)
				return 1, nil
			}},
			graphStep{Name: "b", After: []string{"a"},
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					if !slices.Contains(w.steps(), "step-a") {
						t.Error("b begins, and a has no record")
					}
					return 2, nil
				}})
		_, err := g.Run(t.Context(), e.opened, 0)
		require.NoError(t, err)
	})
}

// TestGraphRunsStepsAtOnce: two steps wait for each other.
func TestGraphRunsStepsAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		meet := make(chan struct{})
		g := newGraph(t,
			graphStep{Name: "a", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any,
				error) {
				return nil, nil
			}},
			graphStep{Name: "b", After: []string{"a"},
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					meet <- struct{}{}
					return nil, nil
				}},
			graphStep{Name: "c", After: []string{"a"},
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					<-meet
					return nil, nil
				}})
		_, err := g.Run(t.Context(), e.opened, 0)
		require.NoError(t, err)
	})
}

// atRequest calls do at the server's nth request that is no ping, and reports whether that has
// come.
func atRequest(w *world, nth int, do func()) *atomic.Bool {
	var hit atomic.Bool
	var seen int
	w.Observe(func(r zktest.Request) {
		if r.Op != zktest.OpPing {
			if seen++; seen == nth {
				hit.Store(true)
				go do()
			}
		}
	})
	return &hit
}

// faultsAtRequests are what can happen to a member at the nth request.
var faultsAtRequests = map[string]func(w *world, m *worker, nth int) *atomic.Bool{
	"cut":   func(w *world, m *worker, nth int) *atomic.Bool { return atRequest(w, nth, m.Link.Cut) },
	"reset": func(w *world, m *worker, nth int) *atomic.Bool { return atRequest(w, nth, m.Link.Reset) },
	"reply": func(w *world, _ *worker, nth int) *atomic.Bool {
		w.DropReply(nth, zktest.Match{Func: func(r zktest.Request) bool { return r.Op != zktest.OpPing }})
		return atRequest(w, nth, func() {})
	},
}

// TestGraphWithFaultAtEachRequest: at each request in turn the member is cut off for good, or its
// connection breaks, or the reply is lost.
func TestGraphWithFaultAtEachRequest(t *testing.T) {
	for name, fault := range faultsAtRequests {
		for nth := 1; nth <= 20; nth++ {
			in(t, func(t *testing.T, w *world) {
				var done doneLog
				var node atomic.Value
				node.Store("")
				kind := newFunction("work", func(ctx context.Context, run *workflow.Run, input int) (int, error) {
					results, err := w.diamond(t, node.Load().(string), &done).Run(ctx, run, input)
					if err != nil {
						return 0, err
					}
					return stepResult[int](results, "last")
				})
				first, starter := w.flows("a"), w.flows("starter")
				starter.start("work", "x", 1)
				for _, n := range w.Tree(runsPath + "/runs") {
					if strings.HasSuffix(n.Path, "/x") {
						node.Store(n.Path)
					}
				}
				reached := fault(w, first, nth)
				first.work(kind)
				settled()
				require.True(t, reached.Load(), "request %d", nth)
				second := w.flows("b").work(kind)
				require.JSONEq(t, "5", string(second.await("x", workflow.Done).Result), "%s %d", name, nth)
				require.Equal(t, strings.Fields(diamondNodes), w.Children(node.Load().(string)), "%s %d", name, nth)
				for _, step := range []string{"first", "left", "right", "last", "alone"} {
					runs := 0
					for _, line := range done.all() {
						if line == step {
							runs++
						}
					}
					require.GreaterOrEqual(t, runs, 1)
					require.LessOrEqual(t, runs, 2, "%s is run once by each executor at most", step)
				}
				first.Link.Heal()
			})
		}
	}
}

func TestGraphWithFailingStep(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		var done doneLog
		boom := errors.New("boom")
		failing := true
		begun, failed := make(chan struct{}), make(chan struct{})
		adds := func(name string, after ...string) graphStep {
			return graphStep{Name: name, After: after,
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					done.add("%s", name)
					return nil, nil
				}}
		}
		g := newGraph(t,
			graphStep{Name: "fails", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
				if failing {
					failing = false
					<-begun
					time.AfterFunc(time.Second, func() { close(failed) })
					return nil, boom
				}
				done.add("fails")
				return nil, nil
			}},
			graphStep{Name: "under-way",
				Do: func(ctx context.Context, _ workflow.Key, _ int, _ workflow.GraphResults) (any, error) {
					close(begun)
					<-failed
					done.add("under-way")
					return nil, ctx.Err()
				}},
			adds("after-failed", "fails"), adds("after-under-way", "under-way"),
			adds("after-both", "after-failed", "after-under-way"))
		_, err := g.Run(t.Context(), e.opened, 0)
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, path+"/step-fails")
		require.Equal(t, []string{"under-way"}, done.all(), "what is under way is recorded, and nothing else begins")
		require.Equal(t, []string{"step-graph:g", "step-under-way"}, w.steps())
		e.open(t)
		_, err = g.Run(t.Context(), e.opened, 0)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"under-way", "fails", "after-failed", "after-under-way", "after-both"},
			done.all())
	})
}

func TestGraphWhoseContextEnds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		ctx, cancel := context.WithCancel(t.Context())
		var done doneLog
		g := newGraph(t,
			graphStep{Name: "a", Do: func(step context.Context, _ workflow.Key, _ int, _ workflow.GraphResults) (any,
				error) {
				cancel()
				done.add("a")
				return nil, step.Err()
			}},
			graphStep{Name: "b", After: []string{"a"},
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					done.add("b")
					return nil, nil
				}})
		_, err := g.Run(ctx, e.opened, 0)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"a"}, done.all())
		e.open(t)
		_, err = g.Run(ctx, e.opened, 0)
		require.ErrorIs(t, err, context.Canceled)
		e.open(t)
		e.release(t)
		_, err = g.Run(t.Context(), e.opened, 0)
		require.ErrorIs(t, err, workflow.ErrEnded)
		require.Equal(t, []string{"a"}, done.all())
	})
}

func TestGraphsThatCannotBe(t *testing.T) {
	do := func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) { return nil, nil }
	step := func(name string, after ...string) graphStep { return graphStep{Name: name, After: after, Do: do} }
	many := make([]graphStep, workflow.MaxGraphSteps+1)
	for i := range many {
		many[i] = step(fmt.Sprint(i))
	}
	for want, steps := range map[string][]graphStep{
		"it has 0 steps": {},
		"it has 1000 steps, it must have 1 to 999":        many,
		`two steps with the name "a"`:                     {step("a"), step("b"), step("a")},
		`step "b" is after "c", which the graph does not`: {step("a"), step("b", "c")},
		`step "b" is after "a" twice`:                     {step("a"), step("b", "a", "a")},
		`cycle, each one after the one before it: "a" -> "c" -> "b" -> "a":`: {step("a", "b", "x"), step("b", "c"),
			step("c", "a"), step("x"), step("y", "a")},
		`cycle, each one after the one before it: "b" -> "c" -> "b":`: {step("before", "b"), step("b", "c"),
			step("c", "b")},
		`cycle, each one after the one before it: "a" -> "a":`: {step("a", "a")},
		`step "b" has no function`:                             {step("a"), {Name: "b"}},
		`name "b/c" contains`:                                  {step("a"), step("b/c")},
		`step "graph:g" has the name under`:                    {step("graph:g")},
		`step "a": invalid option: timeout 0`: {
			{Name: "a", Do: do, Options: []workflow.StepOption{workflow.WithTimeout(0)}},
		},
	} {
		g, err := workflow.NewGraph("g", anySteps(steps)...)
		require.ErrorIs(t, err, framework.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `graph "g"`)
		require.Nil(t, g)
	}
	for _, name := range []string{"", "a/b", "\u202e", strings.Repeat("x", workflow.MaxName)} {
		_, err := workflow.NewGraph(name, step("a"))
		require.ErrorIs(t, err, framework.ErrInvalid)
	}
	for i := range many {
		many[i] = step(fmt.Sprintf("%0100d", i))
	}
	_, err := workflow.NewGraph("g", anySteps(many[1:])...)
	require.ErrorIs(t, err, framework.ErrTooLarge)
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		_, err := (*workflow.Graph[int])(nil).Run(t.Context(), e.opened, 0)
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = newGraph(t, step("a")).Run(t.Context(), nil, 0)
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.Empty(t, w.steps())
	})
}

// TestAStepOfAGraphHasTypes: one whose function has another result does not compile, nor does a
// reader of another result.
func TestAStepOfAGraphHasTypes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		pack := workflow.GraphStep[int, parcel]{Name: "pack",
			Do: func(_ context.Context, _ workflow.Key, weight int, _ workflow.GraphResults) (parcel, error) {
				return parcel{weight}, nil
			}}
		send := workflow.GraphStep[int, string]{Name: "send", After: []string{pack.Name},
			Do: func(_ context.Context, _ workflow.Key, _ int, results workflow.GraphResults) (string, error) {
				p, err := pack.Result(results)
				return fmt.Sprint("sent ", p.Weight), err
			}}
		g, err := workflow.NewGraph("g", pack, send)
		require.NoError(t, err)
		results, err := g.Run(t.Context(), e.opened, 7)
		require.NoError(t, err)
		sent, err := send.Result(results)
		require.NoError(t, err)
		require.Equal(t, "sent 7", sent)

		_, err = workflow.NewGraph[int]("g", pack, nil)
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, "step 1 is nil")
	})
}

func TestLargestGraph(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		steps := make([]graphStep, workflow.MaxGraphSteps)
		var last int
		for i := range steps { // the first half follow each other
			steps[i] = graphStep{Name: fmt.Sprint(i),
				Do: func(_ context.Context, _ workflow.Key, _ int, _ workflow.GraphResults) (any, error) {
					if i > 0 && i < 500 {
						if last != i-1 {
							t.Errorf("%d follows %d", i, last)
						}
						last = i
					}
					return nil, nil
				}}
			if i > 0 && i < 500 {
				steps[i].After = []string{fmt.Sprint(i - 1)}
			}
		}
		_, err := newGraph(t, steps...).Run(t.Context(), e.opened, 0)
		require.NoError(t, err)
		require.Len(t, w.steps(), workflow.MaxSteps)
	})
}

func TestResultsOfAGraph(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		e := w.execute(w.member("a"))
		type parcel struct{ Number int }
		attempts := 0
		g := newGraph(t,
			graphStep{Name: "a", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any,
				error) {
				return parcel{7}, nil
			}},
			graphStep{Name: "beside",
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) { return nil, nil }},
			graphStep{Name: "b", After: []string{"a"},
				Do: func(_ context.Context, key workflow.Key, _ int, _ workflow.GraphResults) (any, error) {
					attempts = key.Attempt
					if attempts < 3 {
						return nil, errors.New("not yet")
					}
					return "b", nil
				}, Options: []workflow.StepOption{workflow.WithStepAttempts(3, time.Second)}},
			graphStep{Name: "c", After: []string{"b"},
				Do: func(_ context.Context, _ workflow.Key, _ int, results workflow.GraphResults) (any, error) {
					p, err := stepResult[parcel](results, "a")
					require.NoError(t, err, "a is before b")
					require.Equal(t, 7, p.Number)
					_, err = stepResult[int](results, "a")
					require.ErrorIs(t, err, framework.ErrBadValue)
					_, err = stepResult[any](results, "beside")
					require.ErrorIs(t, err, framework.ErrInvalid)
					require.ErrorContains(t, err, `name "beside" in its After`)
					_, err = stepResult[any](results, "c")
					require.ErrorIs(t, err, framework.ErrInvalid)
					_, err = stepResult[any](results, "none")
					require.ErrorIs(t, err, framework.ErrInvalid)
					return 3, nil
				}})
		results, err := g.Run(t.Context(), e.opened, 0)
		require.NoError(t, err)
		require.Equal(t, 3, attempts)
		none, err := stepResult[*int](results, "beside")
		require.NoError(t, err)
		require.Nil(t, none)
		_, err = stepResult[int](workflow.GraphResults{}, "a")
		require.ErrorIs(t, err, framework.ErrInvalid)

		bad, err := workflow.NewGraph("other",
			workflow.GraphStep[int, oneWay]{Name: "one-way",
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (oneWay, error) {
					return oneWay{}, nil
				}},
			graphStep{Name: "wild", Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any,
				error) {
				panic("no")
			}})
		require.NoError(t, err)
		_, err = bad.Run(t.Context(), e.opened, 0)
		require.True(t, errors.Is(err, framework.ErrBadValue) || errors.Is(err, framework.ErrPanic), "%v", err)
		require.NotContains(t, w.steps(), "step-one-way")
	})
}

// TestGraphOfAnotherRelease: a run that one release has begun is taken by another one whose graph
// has changed.
func TestGraphOfAnotherRelease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		reached, goOn := make(chan struct{}, 1), make(chan struct{})
		release := func(steps ...graphStep) workflow.Function {
			g := newGraph(t, steps...)
			return newFunction("order", func(ctx context.Context, run *workflow.Run, input int) (string, error) {
				_, err := g.Run(ctx, run, input)
				return "ok", err
			})
		}
		step := func(name string, after ...string) graphStep {
			return graphStep{Name: name, After: after,
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					done.add("%s", name)
					return nil, nil
				}}
		}
		charge := graphStep{Name: "charge", After: []string{"reserve"},
			Do: func(ctx context.Context, _ workflow.Key, _ int, _ workflow.GraphResults) (any, error) {
				select {
				case reached <- struct{}{}:
				default:
				}
				select {
				case <-goOn:
					done.add("charge")
					return nil, nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}}
		first := w.flows("v1").work(release(step("reserve"), charge, step("ship", "charge")))
		first.start("order", "x", 0)
		<-reached
		second := w.flows("v2")
		first.kill()
		second.work(release(step("reserve"), step("charge"), step("pack", "reserve"), step("ship", "charge", "pack")))
		for second.inspect("x").Error == "" {
			time.Sleep(time.Second)
		}
		report := second.inspect("x")
		require.Contains(t, report.Error, "the run began with another graph")
		require.Contains(t, report.Error,
			`step "charge" was after "reserve"; step "pack" is new; step "ship" is now after "pack"`)
		require.Equal(t, []string{"reserve"}, done.all(), "the other release runs no step")
		require.Equal(t, workflow.Waiting, report.State, "a member of the former release may go on")
		second.stop()
		close(goOn)
		// the same graph, listed in another order
		third := w.flows("v1-again").work(release(step("ship", "charge"), charge, step("reserve")))
		third.await("x", workflow.Done)
		require.Equal(t, []string{"reserve", "charge", "ship"}, done.all())
		third.stop()

		// Retried from its graph, the run begins anew with the other release.
		fourth := w.flows("v2-again").work(release(step("reserve"), step("pack", "reserve")))
		require.NoError(t, fourth.Retry(t.Context(), "x", "graph:g"))
		fourth.await("x", workflow.Done)
		require.Equal(t, []string{"reserve", "charge", "ship", "reserve", "pack"}, done.all())
	})
}

func TestGraphRecordThatIsNone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		do := func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
			t.Error("a step is run")
			return nil, nil
		}
		for data, want := range map[string]error{
			`{"v":1,"kind":"other"}`: framework.ErrForeign,
			`{"v":2,"kind":"graph"}`: framework.ErrNewer,
			`{"v":1,"kind":"graph"}`: framework.ErrBadRecord,
			`7`:                      framework.ErrBadRecord,
			`{"v":1,"kind":"graph","steps":[{"name":"b"}]}`:   framework.ErrMismatch,
			`{"v":1,"kind":"graph","steps":[{"name":"a/b"}]}`: framework.ErrBadRecord,
		} {
			e := w.execute(w.member("a"))
			require.NoError(t, e.Create(t.Context(), path+"/step-graph:g",
				[]byte(`{"v":1,"result":`+data+`,"token":1,"attempts":1,"by":"x"}`), framework.Persistent))
			e.open(t)
			_, err := newGraph(t, graphStep{Name: "a", Do: do}).Run(t.Context(), e.opened, 0)
			require.ErrorIs(t, err, want, data)
			require.ErrorContains(t, err, path+"/step-graph:g")
			require.Equal(t, []string{"step-graph:g"}, w.steps())
			require.NoError(t, e.ledger.Remove(t.Context(), e.lease))
			e.release(t)
		}
	})
}

// TestGraphsOfARunAndTheirProgress: a run has two graphs, with a wait between them.
func TestGraphsOfARunAndTheirProgress(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var done doneLog
		step := func(name string, after ...string) graphStep {
			return graphStep{Name: name, After: after,
				Do: func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
					done.add("%s", name)
					return nil, nil
				}}
		}
		stop := make(chan struct{})
		before, err := workflow.NewGraph("before", step("pack", "charge"), step("charge"))
		require.NoError(t, err)
		slow := step("slow", "ship")
		slow.Do = func(context.Context, workflow.Key, int, workflow.GraphResults) (any, error) {
			<-stop
			return nil,
				nil
		}
		after, err := workflow.NewGraph("after", step("close", "slow", "ship"), slow, step("ship"))
		require.NoError(t, err)
		m := w.flows("a").work(newFunction("order",
			func(ctx context.Context, run *workflow.Run, input int) (string, error) {
				if _, err := before.Run(ctx, run, input); err != nil {
					return "", err
				}
				if _, err := workflow.Await[int](ctx, run, "fetched", 0); err != nil {
					return "", err
				}
				_, err := after.Run(ctx, run, input)
				return "ok", err
			}))
		m.start("order", "x", 0)
		settled()
		first := workflow.GraphProgress{Name: "before", Steps: []workflow.GraphStepProgress{
			{Name: "charge", Done: true}, {Name: "pack", After: []string{"charge"}, Level: 1, Done: true},
		}}
		require.Equal(t, []workflow.GraphProgress{first}, workflow.GraphsIn(m.inspect("x").Steps))
		require.NoError(t, m.Signal(t.Context(), "x", "fetched", 1))
		settled()
		require.Equal(t, []workflow.GraphProgress{first, {Name: "after", Steps: []workflow.GraphStepProgress{
			{Name: "ship", Done: true},
			{Name: "slow", After: []string{"ship"}, Level: 1, WaitsFor: []string{}},
			{Name: "close", After: []string{"slow", "ship"}, Level: 2, WaitsFor: []string{"slow"}},
		}}}, workflow.GraphsIn(m.inspect("x").Steps))
		close(stop)
		m.await("x", workflow.Done)
		require.Equal(t, []string{"charge", "pack", "ship", "close"}, done.all())
		require.Empty(t, workflow.GraphsIn(
			[]workflow.StepRecord{{Name: "graph:x",
				Result: []byte(`{"v":1,"kind":"graph","steps":[{"name":"a","after":["a"]}]}`)}, {Name: "graph:"}}))
	})
}
