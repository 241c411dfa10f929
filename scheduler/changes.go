package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// changes is what is stored in <path>/changes: the names of the jobs that somebody has changed last beside
// running them. Each member watches this one node, so that nobody has to ask. It is written in the
// transaction that makes the change; the node's version tells how many there were.
type changes struct {
	latest []change // oldest first
	rest   fields
}

// change is one change. It was made by the write that gave the node this version.
type change struct {
	Version int32  `json:"n"`
	Job     string `json:"job,omitempty"` // "" is all of them, and the members' own descriptions
}

const (
	changesVersion = 1
	maxChanges     = 32
)

// decodeChanges reads the stored changes. Its error wraps ErrNewerState or ErrBadState.
func decodeChanges(data []byte) (changes, error) {
	var c changes
	f, err := openRecord(data, changesVersion)
	if err != nil {
		return changes{}, err
	}
	c.rest = f
	if err := f.take("changes", &c.latest); err != nil {
		return changes{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return c, nil
}

func (c changes) encode() ([]byte, error) {
	latest := c.latest
	if latest == nil {
		latest = []change{}
	}
	return c.rest.with(map[string]any{"v": changesVersion, "changes": latest})
}

// with is the changes after one more, which is the write behind a version.
func (c changes) with(job string, version int32) changes {
	latest := append(slices.Clone(c.latest), change{version + 1, job})
	if over := len(latest) - maxChanges; over > 0 {
		latest = latest[over:]
	}
	return changes{latest, c.rest}
}

// since are the jobs that were changed after a version and until another; all if that cannot be told any more.
func (c changes) since(version, now int32) (jobs []string, all bool) {
	next := version + 1
	for _, ch := range c.latest {
		if ch.Version <= version {
			continue
		}
		if ch.Version != next || ch.Job == "" {
			return nil, true
		}
		jobs = append(jobs, ch.Job)
		next++
	}
	return jobs, next != now+1
}

// parseChanges is decodeChanges, but begins anew with what cannot be read: it means that anything may have
// changed.
func parseChanges(data []byte) (changes, error) {
	c, err := decodeChanges(data)
	if errors.Is(err, ErrBadState) {
		return changes{}, nil
	}
	return c, err
}

// readChanges reads the changes and the node's version.
func (s *Scheduler) readChanges(ctx context.Context, session *framework.Session) (changes, int32, error) {
	for {
		data, st, err := session.Get(ctx, s.changes())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.changes(), changes{}); err != nil {
				return changes{}, 0, err
			}
			continue
		}
		if err != nil {
			return changes{}, 0, err
		}
		c, err := parseChanges(data)
		return c, st.Version, framework.Wrap("changes", s.changes(), err)
	}
}

// createRecord creates one of the records that are there once for all jobs.
func (s *Scheduler) createRecord(ctx context.Context, session *framework.Session, node string, r interface{ encode() ([]byte, error) }) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, s.path); err != nil {
		return err
	}
	err = session.CreateIfMissing(ctx, node, data, framework.Persistent)
	if errors.Is(err, framework.ErrNoNode) {
		return nil // the directory was deleted: look again
	}
	return err
}

// subject is what is announced of jobs that were changed at once: one of them, or all there are.
func subject(jobs []string) string {
	if len(jobs) == 1 {
		return jobs[0]
	}
	return ""
}

// announce is the operation that tells the members of a change, and is refused if there was another meanwhile.
func (s *Scheduler) announce(ctx context.Context, session *framework.Session, job string) (framework.Op, error) {
	c, version, err := s.readChanges(ctx, session)
	if err != nil {
		return framework.Op{}, err
	}
	data, err := c.with(job, version).encode()
	return framework.SetOp(s.changes(), data, version), err
}
