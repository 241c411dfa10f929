package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// jobsReader reads the jobs of several schedulers, many nodes in one request.
type jobsReader struct {
	client *framework.Client
	now    func() time.Time
	found  []readScheduler
}

// readScheduler is what was read of one scheduler.
type readScheduler struct {
	nodes   joblayout.Scheduler
	states  []State // of its jobs, by name
	errs    []error // of jobs that cannot be read
	members []presentMember
	err     error // of the members
}

// presentMember is a member and the description that it has stored.
type presentMember struct {
	Member
	member
}

func newJobsReader(client *framework.Client, now func() time.Time, paths ...string) *jobsReader {
	r := &jobsReader{client: client, now: now, found: make([]readScheduler, len(paths))}
	for i, path := range paths {
		r.found[i].nodes = joblayout.Scheduler(path)
	}
	return r
}

// readStates reads the states of all jobs.
func (r *jobsReader) readStates(ctx context.Context) error {
	return r.readBelow(ctx, joblayout.Scheduler.Jobs, func(s *readScheduler, name string, n framework.Node) {
		if errors.Is(n.Err, framework.ErrNoNode) {
			return // it was removed meanwhile
		}
		state, err := storedState(s.nodes, name, n)
		if err == nil {
			s.states = append(s.states, state)
		} else if !errors.Is(err, errUnknownJob) {
			s.errs = append(s.errs, err)
		}
	}, func(s *readScheduler, err error) { s.errs = append(s.errs, failure.Wrap("jobs", string(s.nodes), err)) })
}

// readMembers reads the members and the leaders.
func (r *jobsReader) readMembers(ctx context.Context) error {
	err := r.readBelow(ctx, joblayout.Scheduler.Members, func(s *readScheduler, name string, n framework.Node) {
		if n.Err != nil {
			if !errors.Is(n.Err, framework.ErrNoNode) {
				s.err = n.Err
			}
			return
		}
		described, err := decodeMember(name, n.Data)
		switch {
		case errors.Is(err, framework.ErrBadRecord), // it gets no jobs from others either
			errors.Is(err, framework.ErrNewer):
		case err != nil:
			s.err = err
		default:
			s.members = append(s.members, presentMember{
				Member{ID: described.id, Session: n.Stat.EphemeralOwner, Labels: described.labels,
					Since: n.Stat.Ctime.UTC()}, described,
			})
		}
	}, func(s *readScheduler, err error) { s.err = err })
	if err != nil {
		return err
	}
	var elections []string
	for i := range r.found {
		elections = append(elections, r.found[i].nodes.Election())
	}
	leaders, err := moduleonly.Leaders(ctx, r.client, elections...)
	if err != nil {
		return err
	}
	for i := range r.found {
		s := &r.found[i]
		if leaders[i].Err != nil && !errors.Is(leaders[i].Err, election.ErrNoLeader) {
			s.err = leaders[i].Err
		}
		for m := range s.members {
			s.members[m].Leads = leaders[i].Err == nil && leaders[i].Session == s.members[m].Session
		}
		slices.SortFunc(s.members, func(a, b presentMember) int {
			return strings.Compare(a.ID+"\x00"+a.node, b.ID+"\x00"+b.node)
		})
	}
	return nil
}

// readBelow reads the nodes below a directory of each scheduler, by name, and calls take for each.
// A missing directory has none. It calls refused for a directory that cannot be listed.
func (r *jobsReader) readBelow(ctx context.Context, dir func(joblayout.Scheduler) string,
	take func(s *readScheduler, name string, n framework.Node), refused func(*readScheduler, error)) error {
	dirs := make([]string, len(r.found))
	for i, s := range r.found {
		dirs[i] = dir(s.nodes)
	}
	lists, err := recipe.ListMany(ctx, r.client, dirs)
	if err != nil {
		return err
	}
	var paths []string
	for i, list := range lists {
		if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
			refused(&r.found[i], list.Err)
		}
		slices.Sort(list.Names)
		for _, name := range list.Names {
			paths = append(paths, znode.Join(dirs[i], name))
		}
	}
	read, err := recipe.GetMany(ctx, r.client, paths)
	if err != nil {
		return err
	}
	for i, list := range lists {
		for _, name := range list.Names {
			take(&r.found[i], name, read[0])
			read = read[1:]
		}
	}
	return nil
}
