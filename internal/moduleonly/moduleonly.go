// Package moduleonly has operations of public packages that only other packages of this module
// call, such as the command line. The package that implements one sets it when it is initialized:
// so the caller imports that package, too. A value of a type that this package cannot name,
// because the implementing package imports it, is of type any.
package moduleonly

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// Leader is the leader of one of several elections.
type Leader struct {
	// Candidate is an election.Candidate.
	Candidate any
	// Session is the id of the leader's session.
	Session framework.SessionID
	// Err is why there is none: it wraps election.ErrNoLeader while no candidate leads.
	Err error
}

var (
	// Leaders returns the leaders of the elections at some paths, in the order of the paths, each
	// as election.Election.Leader does. It reads them together: about three requests for 1,000
	// elections. It knows LeaderLatch's layout only: for another layout Leader.Err wraps
	// framework.ErrForeign. When it returns an error, it has no results.
	Leaders func(ctx context.Context, client *framework.Client, paths ...string) ([]Leader, error)

	// CheckElectionOptions returns the error of the first wrong one of options, an
	// []election.Option, or nil. It needs no client.
	CheckElectionOptions func(options any) error

	// InspectSteps is workflow.Workflows.Inspect without Report.Taken, for a caller that inspects
	// many runs: to find the claim of one run, Inspect reads the claims of all runs of its kind.
	// workflows is a *workflow.Workflows, and report a workflow.Report.
	InspectSteps func(ctx context.Context, workflows any, id string) (report any, err error)

	// HasWorkflows reports whether a directory with these children is one of Workflows.
	HasWorkflows func(children []string) bool

	// InspectSchedulers reads the jobs of the schedulers at some paths together, about 10 requests
	// for 1,000 schedulers of one job, and returns them as a []scheduler.Report. An error that
	// concerns one scheduler or job comes beside the other jobs' reports, joined with the others.
	InspectSchedulers func(ctx context.Context, client *framework.Client, paths []string) (reports any, err error)

	// RunsOfJobs returns the latest runs of the jobs of reports, a []scheduler.Report, as a
	// [][]scheduler.RunRecord: each as scheduler.Scheduler.Runs does, in the order of the reports,
	// and read together. Of jobs whose runs cannot be read it returns the errors, joined, beside
	// the others' runs.
	RunsOfJobs func(ctx context.Context, client *framework.Client, reports any) (runs any, err error)

	// ScanLocksAgain is monitor.Scanner.Scan for the locks at and below some paths: it reads only
	// these, and returns a monitor.Report with what the latest scan has seen of the rest. scanner
	// is a *monitor.Scanner that has scanned.
	ScanLocksAgain func(ctx context.Context, scanner any, paths []string) (report any, err error)

	// MonitorProblems are the names of all problems that a monitor can find, in the order of
	// reports. Nobody changes them.
	MonitorProblems []string
)
