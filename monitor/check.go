package monitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// Report is the outcome of one look.
type Report struct {
	// Findings are the problems that the look has seen, in the order of Problems and then of paths.
	Findings []Finding
	// Locks are the locks, elections and claims that the look has seen, Jobs the jobs, Queues the
	// queues and Runs the runs of workflows, without their steps. What could not be read is not among
	// them: it is a finding.
	Locks  []*locks.Report
	Jobs   []scheduler.JobReport
	Queues []queue.Report
	Runs   []workflow.Info
}

// Check looks once at the locks, jobs, queues and workflows at and below root, which may be "/". It changes no
// node. It does not find long holds and growing queues, which take several looks. A path that it
// cannot read is a finding (ProblemUnread). It measures ages by this machine's clock. It ignores
// the options that concern several looks or events.
//
// The error is that of ctx, or wraps framework.ErrInvalid, framework.ErrClosed,
// framework.ErrAuthFailed, or a transient error such as framework.ErrOverloaded: call Check again
// then.
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
	latest *lookResult // or nil
}

// NewLooker returns a Looker for the locks, jobs, queues and workflows at and below root, which may
// be "/". The error wraps framework.ErrInvalid.
func NewLooker(client *framework.Client, root string, opts ...Option) (*Looker, error) {
	settings, err := newSettings(opts)
	if err == nil {
		err = checkRoot(client, root)
	}
	if err != nil {
		return nil, failure.Wrap("check", root, err)
	}
	return &Looker{root: root, looker: newRootLooker(client, root, settings)}, nil
}

// Look is Check, with the memory of the looks before. It is for one goroutine at a time.
func (k *Looker) Look(ctx context.Context) (Report, error) {
	l, err := k.looker.lookAtRoot(ctx, time.Now())
	if err != nil {
		return Report{}, failure.Wrap("check", k.root, err)
	}
	return k.reportOf(l), nil
}

// reportOf remembers a look for lookAgain, and returns its report, which belongs to the caller.
func (k *Looker) reportOf(l *lookResult) Report {
	k.latest = l
	return Report{l.sortedFindings(), slices.Clone(l.survey.Locks), slices.Clone(l.survey.Jobs),
		slices.Clone(l.survey.Queues), slices.Clone(l.survey.Runs)}
}

func init() {
	moduleonly.LookAgainAtLocks = func(ctx context.Context, looker any, paths []string) (any, error) {
		return looker.(*Looker).lookAgain(ctx, paths)
	}
}

// lookAgain reads the locks at and below some paths, and judges all locks.
func (k *Looker) lookAgain(ctx context.Context, paths []string) (Report, error) {
	seen := *k.latest.survey
	seen.Locks = slices.DeleteFunc(slices.Clone(seen.Locks), func(r *locks.Report) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			return r.Path == path || strings.HasPrefix(r.Path, path+"/")
		})
	})
	for _, path := range paths {
		for r, err := range locks.List(ctx, k.looker.client, path) {
			if err != nil {
				return Report{}, failure.Wrap("check", path, err)
			}
			seen.Locks = append(seen.Locks, r)
		}
	}
	slices.SortFunc(seen.Locks, func(a, b *locks.Report) int { return compareInWalk(a.Path, b.Path) })
	seen.Locks = slices.CompactFunc(seen.Locks, func(a, b *locks.Report) bool { return a.Path == b.Path })
	l := newLookResult(time.Now(), k.latest.without, &seen)
	l.unread = k.latest.unread
	for key, f := range k.latest.findings {
		if areaOf(f.Problem) != survey.Locks {
			l.findings[key] = f
		}
	}
	k.looker.locks.judgeLocks(l)
	if err := findDeadlocks(ctx, k.looker.client, l, k.root); err != nil {
		return Report{}, failure.Wrap("check", k.root, err)
	}
	return k.reportOf(l), nil
}

// compareInWalk orders paths as a walk visits them: a node before those below it, and these before its
// next sibling.
func compareInWalk(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
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

// rootLooker looks at the locks, jobs, queues and workflows below a root. It remembers holders and
// the lengths of queues, with which later looks compare.
type rootLooker struct {
	client   *framework.Client
	root     string
	settings settings
	locks    lockLooker
	queues   queueLooker
}

func newRootLooker(client *framework.Client, root string, s settings) *rootLooker {
	return &rootLooker{client: client, root: root, settings: s,
		locks:  lockLooker{settings: s, holders: map[string]knownHold{}},
		queues: queueLooker{settings: s, growth: map[string]queueGrowth{}}}
}

// lookAtRoot looks once. at is the time of the look.
func (k *rootLooker) lookAtRoot(ctx context.Context, at time.Time) (*lookResult, error) {
	seen, err := survey.Read(ctx, k.client, k.root, survey.Locks|survey.Jobs|survey.Queues|survey.Runs, nil)
	l := newLookResult(at, k.settings.without, seen)
	if err != nil {
		return l, err
	}
	for _, u := range seen.Unread {
		l.addUnread(u.Part, u.Path, u.Err)
	}
	k.queues.judgeQueues(l)
	judgeRuns(l, k.settings)
	if err := judgeJobs(ctx, k.client, l, k.settings.failedRuns); err != nil {
		return l, err
	}
	k.locks.judgeLocks(l) // last: there may be more of them than a look has findings
	return l, findDeadlocks(ctx, k.client, l, k.root)
}
