// Package joblayout names the nodes of a scheduler, which package scheduler describes.
package joblayout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/znode"
)

const (
	changes     = "changes"
	election    = "election"
	jobs        = "jobs"
	members     = "members"
	removed     = "removed"
	pastPrefix  = "past-"
	claimPrefix = "run-"
)

// OwnNodes returns the names of the nodes that a scheduler keeps in its directory, with those that
// its election keeps beside its own node.
func OwnNodes() []string {
	return []string{changes, election, election + "~term", election + "~waiting", jobs, members, removed}
}

// HasLayout reports whether a directory with these children is a scheduler: it has jobs, and a
// record of changes or members.
func HasLayout(children []string) bool {
	has := func(name string) bool { return slices.Contains(children, name) }
	return has(jobs) && (has(changes) || has(members))
}

// Scheduler is the path of a scheduler. Its methods return paths below it.
type Scheduler string

// SchedulerOf returns the scheduler whose jobs a directory of this path would hold, if that is the
// path of such a directory.
func SchedulerOf(path string) (s Scheduler, ok bool) {
	dir, name := znode.Split(path)
	return Scheduler(dir), name == jobs
}

// Election is the election of the leader.
func (s Scheduler) Election() string { return s.node(election) }

// Members is the directory of the members.
func (s Scheduler) Members() string { return s.node(members) }

// Member is the node of the member with this name.
func (s Scheduler) Member(name string) string { return znode.Join(s.Members(), name) }

// Changes is the record of the latest changes of jobs.
func (s Scheduler) Changes() string { return s.node(changes) }

// Removed is the list of removed jobs.
func (s Scheduler) Removed() string { return s.node(removed) }

// Jobs is the directory of the jobs.
func (s Scheduler) Jobs() string { return s.node(jobs) }

// Job is the node of a job, which has its state.
func (s Scheduler) Job(name string) string { return znode.Join(s.Jobs(), name) }

// Claim is the node that a member keeps while it executes a run of a job.
func (s Scheduler) Claim(job string, run int64) string {
	return znode.Join(s.Job(job), fmt.Sprint(claimPrefix, run))
}

// PastRun is a node of a job's history. Each has one of the latest runs.
func (s Scheduler) PastRun(job string, slot int64) string {
	return znode.Join(s.Job(job), fmt.Sprint(pastPrefix, slot))
}

func (s Scheduler) node(name string) string { return znode.Join(string(s), name) }

// memberOrClaim matches the paths of members and of claims.
var memberOrClaim = regexp.MustCompile(
	`^(.+)/(?:` + members + `/[0-9a-f]{8}-[0-9a-f]+|` + jobs + `/[^/]+/` + claimPrefix + `[0-9]+)$`)

// SchedulerOfNode returns the scheduler of a member or of a claim, if a path is that of one.
func SchedulerOfNode(path string) (s Scheduler, ok bool) {
	found := memberOrClaim.FindStringSubmatch(path)
	if found == nil {
		return "", false
	}
	return Scheduler(found[1]), true
}

// IsPastRun reports whether a child of a job's node has an ended run.
func IsPastRun(name string) bool { return strings.HasPrefix(name, pastPrefix) }

// IsClaim reports whether a child of a job's node is the claim of a run.
func IsClaim(name string) bool { return strings.HasPrefix(name, claimPrefix) }
