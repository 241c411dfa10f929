package monitor

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
)

// Report is the outcome of one look.
type Report struct {
	// Findings are the problems that the look has seen, in the order of Problems and then of paths.
	Findings []Finding
	// Locks are the locks, elections and claims that the look has seen, Jobs the jobs and Queues the
	// queues. What could not be read is not among them: it is a finding.
	Locks  []*locks.Report
	Jobs   []scheduler.JobReport
	Queues []queue.Report
}

// Check looks once at the locks, jobs and queues at and below root, which may be "/". It changes no
// node. It does not find long holds and growing queues, which take several looks. A path that it
// cannot read is a finding (ProblemUnread). It measures ages by this machine's clock. It ignores
// the options that concern several looks or events.
//
// The error is that of ctx, or wraps framework.ErrInvalid, framework.ErrInvalidPath,
// framework.ErrClosed, framework.ErrAuthFailed, or a transient error such as
// framework.ErrOverloaded: call Check again then.
func Check(ctx context.Context, client *framework.Client, root string, opts ...Option) (Report, error) {
	k, err := NewLooker(client, root, opts...)
	if err != nil {
		return Report{}, err
	}
	return k.Look(ctx)
}

// Looker looks again and again, and remembers what it has seen, so that it also finds what takes
// several looks: long holds and growing queues. It is for programs that show the present state. A
// Monitor also reports events, and works once in a cluster.
type Looker struct {
	root   string
	looker *rootLooker
}

// NewLooker returns a Looker for the locks, jobs and queues at and below root, which may be "/".
// The error wraps framework.ErrInvalid or framework.ErrInvalidPath.
func NewLooker(client *framework.Client, root string, opts ...Option) (*Looker, error) {
	settings, err := newSettings(opts)
	if err == nil {
		err = checkRoot(client, root)
	}
	if err != nil {
		return nil, failure.Wrap("check", root, err)
	}
	return &Looker{root, newRootLooker(client, root, settings)}, nil
}

// Look is Check, with the memory of the looks before. It is for one goroutine at a time.
func (k *Looker) Look(ctx context.Context) (Report, error) {
	l, err := k.looker.lookAtRoot(ctx, time.Now())
	if err != nil {
		return Report{}, failure.Wrap("check", k.root, err)
	}
	return Report{l.sortedFindings(), l.locks, l.jobs, l.queues}, nil
}

func checkRoot(client *framework.Client, root string) error {
	switch {
	case client == nil:
		return errors.New("the client is nil")
	case root == "/":
		return nil
	}
	return framework.ValidatePath(root)
}

// rootLooker looks at the locks, jobs and queues below a root. It remembers holders and the lengths
// of queues, with which later looks compare.
type rootLooker struct {
	settings settings
	locks    lockLooker
	jobs     jobLooker
	queues   queueLooker
}

func newRootLooker(client *framework.Client, root string, s settings) *rootLooker {
	return &rootLooker{
		settings: s,
		locks:    lockLooker{client: client, root: root, settings: s, holders: map[string]knownHold{}},
		jobs:     jobLooker{client: client, failedRuns: s.failedRuns},
		queues:   queueLooker{client: client, settings: s, growth: map[string]queueGrowth{}},
	}
}

// lookAtRoot looks once. at is the time of the look.
func (k *rootLooker) lookAtRoot(ctx context.Context, at time.Time) (*lookResult, error) {
	l := newLookResult(at, k.settings.without)
	schedulers, queues, asked, err := k.findDirectories(ctx, l)
	if err == nil {
		err = k.queues.lookAtQueues(ctx, l, queues)
	}
	if err == nil {
		err = k.jobs.lookAtJobs(ctx, l, schedulers)
	}
	if err == nil {
		err = k.locks.lookAtLocks(ctx, l, queues)
	}
	if err == nil {
		err = k.locks.findDeadlocks(ctx, l, asked)
	}
	return l, err
}

// maxSearched is how many directories a look searches for schedulers and queues.
const maxSearched = 100_000

// findDirectories returns the paths of the schedulers and queues at and below the root, and of the
// locks for which holders of other locks wait. It adds what it could not read to l.
func (k *rootLooker) findDirectories(ctx context.Context,
	l *lookResult) (schedulers, queues, asked []string, err error) {
	layouts := []recipe.Layout{{Recognize: queuelayout.IsQueue, Own: queuelayout.OwnNames},
		{Recognize: joblayout.HasLayout, Own: joblayout.OwnNodes()}, {Recognize: recipe.HasLockRequests}}
	for found, err := range recipe.Find(ctx, k.locks.client, []string{k.locks.root}, maxSearched, layouts...) {
		switch {
		case err != nil:
			err = errors.Join(l.addUnread(ctx, areaJobs, k.locks.root, err),
				l.addUnread(ctx, areaQueues, k.locks.root, err))
			if err != nil {
				return nil, nil, nil, err
			}
		case found.Layout == 0:
			queues = append(queues, found.Path)
		case found.Layout == 1:
			schedulers = append(schedulers, found.Path)
		default:
			if lock, ok := strings.CutSuffix(found.Path, recipe.LockRequestsSuffix); ok {
				asked = append(asked, lock)
			}
		}
	}
	return schedulers, queues, asked, nil
}
