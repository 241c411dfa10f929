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

// Report is the outcome of one scan.
type Report struct {
	// Findings are the problems that the scan has seen, in the order of Problems and then of paths.
	Findings []Finding
	// Locks are the locks, elections and claims that the scan has seen, Jobs the jobs, Queues the
	// queues and Runs the runs of workflows, without their steps. What could not be read is not
	// among them: it is a finding.
	Locks  []locks.Report
	Jobs   []scheduler.Report
	Queues []queue.Report
	Runs   []workflow.Report
}

// Check scans once the locks, jobs, queues and workflows at and below root, which may be "/". It
// changes no node. It does not find long holds and growing queues, which take several scans. A path
// that it cannot read is a finding (ProblemUnread). It measures ages by this machine's clock. It
// ignores the options that concern several scans or events.
//
// The error is that of ctx, or wraps framework.ErrInvalid, framework.ErrClosed,
// framework.ErrAuthFailed, or a transient error such as framework.ErrOverloaded: call Check again
// then.
func Check(ctx context.Context, client *framework.Client, root string, opts ...Option) (Report, error) {
	k, err := NewScanner(client, root, opts...)
	if err != nil {
		return Report{}, err
	}
	return k.Scan(ctx)
}

// Scanner scans again and again, and remembers what it has seen, so that it also finds what takes
// several scans: long holds and growing queues. It is for programs that show the present state. A
// Monitor also reports events, and works once in a cluster.
type Scanner struct {
	root    string
	scanner *rootScanner
	latest  *scanResult // or nil
}

// NewScanner returns a Scanner for the locks, jobs, queues and workflows at and below root, which
// may be "/". The error wraps framework.ErrInvalid.
func NewScanner(client *framework.Client, root string, opts ...Option) (*Scanner, error) {
	settings, err := newSettings(opts)
	if err == nil {
		err = checkRoot(client, root)
	}
	if err != nil {
		return nil, failure.Wrap("check", root, err)
	}
	return &Scanner{root: root, scanner: newRootScanner(client, root, settings)}, nil
}

// Scan is Check, with the memory of the scans before. It is for one goroutine at a time.
func (k *Scanner) Scan(ctx context.Context) (Report, error) {
	l, err := k.scanner.scanRoot(ctx, time.Now())
	if err != nil {
		return Report{}, failure.Wrap("check", k.root, err)
	}
	return k.reportOf(l), nil
}

// reportOf remembers a scan for scanAgain, and returns its report, which belongs to the caller.
func (k *Scanner) reportOf(l *scanResult) Report {
	k.latest = l
	return Report{l.sortedFindings(), slices.Clone(l.survey.Locks), slices.Clone(l.survey.Jobs),
		slices.Clone(l.survey.Queues), slices.Clone(l.survey.Runs)}
}

func init() {
	moduleonly.ScanLocksAgain = func(ctx context.Context, scanner any, paths []string) (any, error) {
		return scanner.(*Scanner).scanAgain(ctx, paths)
	}
}

// scanAgain reads the locks at and below some paths, and judges all locks.
func (k *Scanner) scanAgain(ctx context.Context, paths []string) (Report, error) {
	seen := *k.latest.survey
	seen.Locks = slices.DeleteFunc(slices.Clone(seen.Locks), func(r locks.Report) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			return r.Path == path || strings.HasPrefix(r.Path, path+"/")
		})
	})
	for _, path := range paths {
		for r, err := range locks.List(ctx, k.scanner.client, path) {
			if err != nil {
				return Report{}, failure.Wrap("check", path, err)
			}
			seen.Locks = append(seen.Locks, r)
		}
	}
	slices.SortFunc(seen.Locks, func(a, b locks.Report) int { return compareInWalk(a.Path, b.Path) })
	seen.Locks = slices.CompactFunc(seen.Locks, func(a, b locks.Report) bool { return a.Path == b.Path })
	l := newScanResult(time.Now(), k.latest.without, &seen)
	l.unread = k.latest.unread
	for key, f := range k.latest.findings {
		if areaOf(f.Problem) != survey.Locks {
			l.findings[key] = f
		}
	}
	k.scanner.locks.judgeLocks(l)
	if err := findDeadlocks(ctx, k.scanner.client, l, k.root); err != nil {
		return Report{}, failure.Wrap("check", k.root, err)
	}
	return k.reportOf(l), nil
}

// compareInWalk orders paths as a walk visits them: a node before those below it, and these before
// its next sibling.
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

// rootScanner scans the locks, jobs, queues and workflows below a root. It remembers holders and
// the lengths of queues, with which later scans compare.
type rootScanner struct {
	client   *framework.Client
	root     string
	settings settings
	locks    lockScanner
	queues   queueScanner
}

func newRootScanner(client *framework.Client, root string, s settings) *rootScanner {
	return &rootScanner{client: client, root: root, settings: s,
		locks:  lockScanner{settings: s, holders: map[string]knownHold{}},
		queues: queueScanner{settings: s, growth: map[string]queueGrowth{}}}
}

// scanRoot scans once. at is the time of the scan.
func (k *rootScanner) scanRoot(ctx context.Context, at time.Time) (*scanResult, error) {
	seen, err := survey.Read(ctx, k.client, k.root, survey.Locks|survey.Jobs|survey.Queues|survey.Runs, nil)
	l := newScanResult(at, k.settings.without, seen)
	if err != nil {
		return l, err
	}
	for _, u := range seen.Unread {
		l.addUnread(u.Part, u.Path, u.Err)
	}
	k.queues.judgeQueues(l)
	judgeRuns(l, k.settings)
	if err := judgeJobs(ctx, k.client, l, k.settings.jobFailures); err != nil {
		return l, err
	}
	k.locks.judgeLocks(l) // last: there may be more of them than a scan has findings
	return l, findDeadlocks(ctx, k.client, l, k.root)
}
