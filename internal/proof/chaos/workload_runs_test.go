//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/workflow"
)

// runKind is the kind of all runs. An input is the number of steps.
var runKind = workflow.NewKind[int, string]("task")

const (
	// runSteps is how many steps a run has.
	runSteps = 5
	// goSignal is the signal that a run waits for after its second step.
	goSignal = "go"
	// runRetention is how long finished runs stay: longer than a segment lasts.
	runRetention = 10 * time.Minute
)

// workflowActor starts runs. It starts some twice, and signals and cancels some. If its process is
// killed before it has sent a run's signal, the harness sends it.
func workflowActor(p *clientProcess, w workload, rng *rand.Rand) actorFunc {
	flows := p.services.flows
	return func(ctx context.Context, t iteration) {
		id := fmt.Sprintf("%s.%d", p.name, p.lastOp.Add(1))
		for range 1 + rng.IntN(2) {
			callCtx, cancel := sometimesTimeout(ctx, rng)
			_ = call{request: event{Kind: kindStart, Path: w.path, Item: id}, mayHappenLater: true}.run(callCtx, p,
				func(int64, *event) error {
					_, err := runKind.Start(callCtx, flows, id, runSteps)
					return err
				})
			cancel()
		}
		wait(ctx, randomPause(rng, 100*time.Millisecond), t.stop)
		callCtx, cancel := sometimesTimeout(ctx, rng)
		defer cancel()
		if rng.IntN(8) == 0 {
			_ = call{request: event{Kind: kindCancelRun, Path: w.path, Item: id}, mayHappenLater: true,
				mayBeUnknown: true, refusals: []error{framework.ErrNotFound, workflow.ErrFinished}}.run(callCtx, p,
				func(int64, *event) error { return flows.Cancel(callCtx, id, "because") })
		}
		number := int64(rng.IntN(1000))
		_ = call{request: event{Kind: kindSignal, Path: w.path, Item: id, Number: number}, mayHappenLater: true,
			mayBeUnknown: true, refusals: []error{framework.ErrNotFound, workflow.ErrFinished}}.run(callCtx, p,
			func(int64, *event) error { return flows.Signal(callCtx, id, goSignal, number) })
		if rng.IntN(4) == 0 {
			p.waitForRun(callCtx, t.stop, flows, id)
		}
		wait(ctx, randomPause(rng, 500*time.Millisecond), t.stop)
	}
}

// waitForRun waits until a run has finished, and writes how it finished.
func (p *clientProcess) waitForRun(ctx context.Context, stop <-chan struct{}, flows *workflow.Workflows, id string) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	info, err := flows.Wait(ctx, id)
	if !errors.Is(err, framework.ErrNotFound) { // its start may have failed
		p.writeShown(ctx, runsPath,
			event{Kind: kindFinish, Item: id, Source: string(info.State) + " " + string(info.Result)}, err)
	}
}

// executorActor executes runs until the harness lets the process rest.
func executorActor(p *clientProcess, _ workload, rng *rand.Rand) actorFunc {
	return func(ctx context.Context, t iteration) {
		flows := workflow.New(p.client, runsPath, workflow.WithRetention(runRetention),
			workflow.WithFailedRetention(runRetention), workflow.WithGrace(time.Second))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-t.stop:
				cancel()
			case <-ctx.Done():
			}
		}()
		err := flows.Register(runKind.Function(p.executeRun, workflow.WithWorkers(4),
			workflow.WithRunAttempts(10, time.Second)))
		if err == nil {
			err = flows.Work(ctx)
		}
		if errors.Is(err, framework.ErrDraining) {
			err = nil // a function's context has ended with the grace
		}
		closing, done := context.WithTimeout(context.Background(), 2*sessionTimeout)
		defer done()
		_ = flows.Close(closing) // if it fails, its session ends with the process
		if err != nil {
			p.writeShown(ctx, runsPath, event{}, err)
		}
	}
}

// executeRun is the function of all runs. It returns the results of the steps and the data of the
// signal.
func (p *clientProcess) executeRun(ctx context.Context, run *workflow.Run, steps int) (result string, err error) {
	op := p.lastOp.Add(1)
	p.write(event{At: now(), Op: op, Step: stepRequested, Kind: kindExecution, Path: runsPath, Item: run.ID()})
	p.write(event{At: now(), Op: op, Step: stepGranted})
	rng := rand.New(rand.NewPCG(uint64(op), 17))
	lastHeld := int64(0)
	defer func() {
		p.write(event{At: now(), Op: op, Step: stepEnded, End: endReleased, LastHeld: lastHeld})
	}()
	var results []string
	for i := range steps {
		if i == 2 {
			data, err := workflow.Await[int64](ctx, run, goSignal, 0)
			if err != nil {
				return "", err
			}
			results = append(results, fmt.Sprint(data))
		}
		if i == 3 {
			if err := run.Sleep(ctx, "pause", 500*time.Millisecond); err != nil {
				return "", err
			}
		}
		name := fmt.Sprint("step", i)
		got, err := workflow.Step(ctx, run, name, func(ctx context.Context, key workflow.Key) (string, error) {
			d := randomPause(rng, 40*time.Millisecond)
			if rng.IntN(40) == 0 {
				d = time.Duration(rng.Int64N(int64(longestHold / 2)))
			}
			seen, alive := p.watchHold(ctx, op, ctx, d, nil)
			if lastHeld = max(lastHeld, seen); !alive {
				return "", context.Cause(ctx)
			}
			if rng.IntN(20) == 0 {
				return "", errors.New("the step failed")
			}
			effect := sinkEffect{Step: name, Key: key.ID, Token: key.Token,
				Result: fmt.Sprintf("%s.%d", p.name, p.lastOp.Add(1))}
			return effect.Result, effect.addTo(p.sink, run.ID())
		})
		if err != nil {
			return "", err
		}
		p.writeShown(ctx, runsPath, event{Kind: kindStep, Item: run.ID(), Order: name, Source: got}, nil)
		results = append(results, got)
	}
	return strings.Join(results, ","), nil
}

// sinkEffect is a line of a sink: the effect of a step.
type sinkEffect struct {
	Step   string `json:"step"`
	Key    string `json:"key"`
	Token  int64  `json:"token"`
	Result string `json:"result"`
}

// errOldToken is returned to an executor if a later one has written.
var errOldToken = errors.New("the sink has a higher token")

// addTo adds an effect to the sink of a run, a file. The sink refuses a token below the highest
// one, as package workflow says that it should.
func (e sinkEffect) addTo(dir, run string) error {
	file, err := os.OpenFile(filepath.Join(dir, run), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // which unlocks it
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	all, err := readSink(dir, run)
	if err != nil {
		return err
	}
	for _, former := range all {
		if former.Token > e.Token {
			return fmt.Errorf("%w: %d, not %d", errOldToken, former.Token, e.Token)
		}
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	return err
}

// readSink returns the effects of a run, in their order.
func readSink(dir, run string) (all []sinkEffect, err error) {
	data, err := os.ReadFile(filepath.Join(dir, run))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var e sinkEffect
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("sink of %s: %w", run, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// finishedRun is a run that has ended, and the effects of its steps.
type finishedRun struct {
	workflow.Report
	effects []sinkEffect
}

// awaitRunsFinished waits until all runs have finished, and returns those that no earlier segment
// has. It signals runs that still wait for their signal.
func (env *testEnv) awaitRunsFinished(ctx context.Context) ([]finishedRun, error) {
	for {
		infos, err := failure.Collect(env.services.flows.List(ctx))
		var open []string
		for _, info := range infos {
			if info.State.IsFinished() {
				continue
			}
			open = append(open, fmt.Sprintf("%s is %s and waits for %q (%s)", info.ID, info.State,
				info.Waits, info.Error))
			if slices.Equal(info.Waits, []string{fmt.Sprintf("signal %q", goSignal)}) {
				_ = env.services.flows.Signal(ctx, info.ID, goSignal, 0) // the next round sees whether it was late
			}
		}
		if err == nil && len(open) == 0 {
			return env.inspectRuns(ctx, infos)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %d runs do not end: %s: %w", runsPath, len(open),
				strings.Join(open[:min(len(open), 5)], "; "), errors.Join(err, ctx.Err()))
		}
		_ = recipe.Pause(ctx, checkInterval*20)
	}
}

// inspectRuns reads the runs that no earlier segment has. It returns an error if a run of an
// earlier segment has changed.
func (env *testEnv) inspectRuns(ctx context.Context, infos []workflow.Report) (runs []finishedRun, err error) {
	for _, info := range infos {
		end := string(info.State) + " " + string(info.Result)
		if before, seen := env.runEnds[info.ID]; seen {
			if before != end {
				return nil, fmt.Errorf("%s: %s has ended as %q, and then as %q", runsPath, info.ID, before, end)
			}
			continue
		}
		env.runEnds[info.ID] = end
		full, err := env.services.flows.Inspect(ctx, info.ID)
		if err != nil {
			return nil, err
		}
		effects, err := readSink(env.sink, info.ID)
		if err != nil {
			return nil, err
		}
		runs = append(runs, finishedRun{full, effects})
		_ = os.Remove(filepath.Join(env.sink, info.ID)) // there is none without an effect
	}
	return runs, nil
}
