// Package survey reads what recipes have stored below a root, for all that show or judge it: the
// monitor, the web page and lockstep top. It only reads, and judges nothing.
package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// Part is a part of a survey, or several of them.
type Part int

// The parts. Locks has elections and claims, too.
const (
	Locks Part = 1 << iota
	Jobs
	Queues
	Runs // of workflows
	Barriers
)

// Survey is what Read has read.
type Survey struct {
	Locks    []locks.Report
	Jobs     []scheduler.Report
	Queues   []queue.Report
	Runs     []workflow.Report // Workflows after Workflows, in the order of their ids
	Barriers []barrier.Report
	// QueuePaths are the paths of the queues, also of those that cannot be read, and Requested
	// those of the locks for which holders of other locks have requests. Both need Queues.
	QueuePaths, Requested []string
	Unread                []Unread
}

// Unread is something that could not be read, or was left out. Path is that of the queue or the
// Workflows, or the root of the survey; Err may name a path below it.
type Unread struct {
	Part Part
	Path string
	Err  error
}

const (
	maxSearched = 100_000 // directories that are searched for queues, schedulers and workflows
	maxRuns     = 100_000 // runs that are read
	readAtOnce  = 500     // queues, or schedulers
)

// Read reads parts of what is at and below a root, which may be "/". pause, which may be nil, is
// called after some requests each: it may wait, and ends the survey with an error.
//
// The error is that of ctx or pause, or wraps framework.ErrClosed, framework.ErrAuthFailed,
// framework.ErrInvalid or a transient error: later reads would fail, too. What was read before
// is returned with it.
func Read(ctx context.Context, client *framework.Client, root string, parts Part,
	pause func(context.Context) error) (*Survey, error) {
	r := &reading{client: client, root: root, parts: parts, pause: pause}
	for _, read := range []func(context.Context) error{r.findDirectories, r.readQueues, r.readJobs, r.readLocks,
		r.readRuns, r.readBarriers} {
		if err := read(ctx); err != nil {
			return &r.Survey, err
		}
	}
	return &r.Survey, nil
}

// reading is a survey that is under way.
type reading struct {
	Survey
	client                *framework.Client
	root                  string
	parts                 Part
	pause                 func(context.Context) error
	schedulers, workflows []string // paths
}

// finishRead keeps each of the joined errors of a read as something that is unread, and pauses. It
// returns an error that ends the survey.
func (r *reading) finishRead(ctx context.Context, part Part, path string, err error) error {
	if err != nil {
		for _, e := range failure.SplitJoined(err) {
			if ends := EndedBy(ctx, e); ends != nil {
				return ends
			}
			r.Unread = append(r.Unread, Unread{part, path, e})
		}
	}
	if r.pause == nil {
		return nil
	}
	return r.pause(ctx)
}

// EndedBy returns the error with which a survey, or what reads behind it, ends after err: ctx has
// ended, or later reads would fail, too. It returns nil if err concerns one path.
func EndedBy(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return failure.Ended(ctx)
	case failure.IsTransient(err), errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed),
		errors.Is(err, failure.ErrInvalidPath):
		return err
	}
	return nil
}

// layouts are those of the directories that one search finds.
var layouts = []recipe.Layout{
	{Recognize: queuelayout.IsQueue, Own: queuelayout.OwnNames},
	{Recognize: joblayout.HasLayout, Own: joblayout.OwnNodes()},
	{Recognize: recipe.HasLockRequests},
	{Recognize: func(names []string) bool { return moduleonly.HasWorkflows(names) },
		Own: []string{"ended", "failed", "kept", "runs", "sweeper"}}, // beside "queues"
}

// findDirectories finds queues, schedulers, workflows and requests for locks.
func (r *reading) findDirectories(ctx context.Context) error {
	if r.parts&(Jobs|Queues|Runs) == 0 {
		return nil
	}
	for found, err := range recipe.Find(ctx, r.client, []string{r.root}, maxSearched, layouts...) {
		if err := r.finishRead(ctx, r.parts&(Jobs|Queues|Runs), r.root, err); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		switch found.Layout {
		case 0:
			r.QueuePaths = append(r.QueuePaths, found.Path)
		case 1:
			r.schedulers = append(r.schedulers, found.Path)
		case 2:
			if lock, ok := strings.CutSuffix(found.Path, recipe.LockRequestsSuffix); ok {
				r.Requested = append(r.Requested, lock)
			}
		case 3:
			r.workflows = append(r.workflows, found.Path)
		}
	}
	return nil
}

func (r *reading) readQueues(ctx context.Context) error {
	if r.parts&Queues == 0 {
		return nil
	}
	for paths := range slices.Chunk(r.QueuePaths, readAtOnce) {
		var ended error
		err := queuelayout.InspectMany(ctx, r.client, paths, func(report any, err error) {
			one := report.(queue.Report)
			switch {
			case err == nil:
				r.Queues = append(r.Queues, one)
			case EndedBy(ctx, err) != nil:
				ended = err
			default:
				r.Unread = append(r.Unread, Unread{Queues, one.Path, err})
			}
		})
		if err = cmp.Or(err, ended); err != nil {
			return err
		}
		if err := r.finishRead(ctx, Queues, r.root, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) readJobs(ctx context.Context) error {
	if r.parts&Jobs == 0 {
		return nil
	}
	for paths := range slices.Chunk(r.schedulers, readAtOnce) {
		all, err := moduleonly.InspectSchedulers(ctx, r.client, paths)
		reports, _ := all.([]scheduler.Report)
		r.Jobs = append(r.Jobs, reports...)
		if err := r.finishRead(ctx, Jobs, r.root, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) readLocks(ctx context.Context) (err error) {
	if r.parts&Locks != 0 {
		r.Locks, err = collect(ctx, r, Locks, locks.List(ctx, r.client, r.root))
	}
	return err
}

func (r *reading) readBarriers(ctx context.Context) (err error) {
	if r.parts&Barriers != 0 {
		r.Barriers, err = collect(ctx, r, Barriers, barrier.List(ctx, r.client, r.root))
	}
	return err
}

// collect returns what a sequence yields, and notes its errors.
func collect[T any](ctx context.Context, r *reading, part Part, sequence iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range sequence {
		if err == nil {
			all = append(all, one)
		}
		if err := r.finishRead(ctx, part, r.root, err); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (r *reading) readRuns(ctx context.Context) error {
	if r.parts&Runs == 0 {
		return nil
	}
	for _, path := range r.workflows {
		w := workflow.New(r.client, path)
		defer w.Close(ctx) //nolint:errcheck // it has put nothing
		for run, err := range w.List(ctx) {
			if err == nil && len(r.Runs) == maxRuns {
				return r.finishRead(ctx, Runs, path,
					fmt.Errorf("%w: there are more than %d runs; the rest was left out",
						framework.ErrTooLarge, maxRuns))
			}
			if err == nil {
				r.Runs = append(r.Runs, run)
			}
			if err := r.finishRead(ctx, Runs, path, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsUntaken reports whether a run could go on, and no member has it. It returns false if the claims
// of its kind could not be read.
func IsUntaken(run workflow.Report) bool {
	return run.State == workflow.Active && run.Taken == nil && run.TakenErr == nil
}

// The states of a step of a graph.
const (
	StepDone     = "done"
	StepFailed   = "failed"
	StepNotDone  = "not done" // and the run has ended
	StepWaiting  = "waiting"
	StepUnderWay = "under way"
	StepNext     = "next"
)

// GraphStepState is the state of a step of a run's graph. What is stored does not distinguish a
// step under way from one that is about to begin.
func GraphStepState(run workflow.Report, s workflow.GraphStepProgress) string {
	switch {
	case s.Done:
		return StepDone
	case s.Failed:
		return StepFailed
	case run.State.IsFinished():
		return StepNotDone
	case len(s.WaitsFor) > 0:
		return StepWaiting
	case run.State == workflow.Active && run.Taken != nil:
		return StepUnderWay
	}
	return StepNext
}
