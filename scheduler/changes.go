package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// changeLog is what is stored in <path>/changes: the names of the jobs that somebody has changed last beside
// running them. Each member watches this one node, so that nobody has to ask. It is written in the
// transaction that makes the change; the node's version tells how many there were.
type changeLog struct {
	latest []change // oldest first
	rest   jsonFields
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
func decodeChanges(data []byte) (changeLog, error) {
	var c changeLog
	f, err := openRecord(data, changesVersion)
	if err != nil {
		return changeLog{}, err
	}
	c.rest = f
	if err := f.takeField("changes", &c.latest); err != nil {
		return changeLog{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return c, nil
}

func (c changeLog) encode() ([]byte, error) {
	latest := c.latest
	if latest == nil {
		latest = []change{}
	}
	return c.rest.withFields(map[string]any{"v": changesVersion, "changes": latest})
}

// appended is the changes after one more, which is the write behind a version.
func (c changeLog) appended(job string, version int32) changeLog {
	latest := append(slices.Clone(c.latest), change{version + 1, job})
	if over := len(latest) - maxChanges; over > 0 {
		latest = latest[over:]
	}
	return changeLog{latest, c.rest}
}

// changedSince are the jobs that were changed after a version and until another; all if that cannot be told any more.
func (c changeLog) changedSince(version, now int32) (jobs []string, all bool) {
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
func parseChanges(data []byte) (changeLog, error) {
	c, err := decodeChanges(data)
	if errors.Is(err, ErrBadState) {
		return changeLog{}, nil
	}
	return c, err
}

// readChanges reads the change log and the node's version.
func (s *store) readChanges(ctx context.Context, session *framework.Session) (changeLog, int32, error) {
	for {
		data, st, err := session.Get(ctx, s.nodes.changes())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.nodes.changes(), changeLog{}); err != nil {
				return changeLog{}, 0, err
			}
			continue
		}
		if err != nil {
			return changeLog{}, 0, err
		}
		c, err := parseChanges(data)
		return c, st.Version, framework.Wrap("changes", s.nodes.changes(), err)
	}
}

// announceOp returns the operation that tells the members of changed jobs. The servers refuse it if another change came between.
func (s *store) announceOp(ctx context.Context, session *framework.Session, jobs ...string) (framework.Op, error) {
	c, version, err := s.readChanges(ctx, session)
	if err != nil {
		return framework.Op{}, err
	}
	job := "" // all
	if len(jobs) == 1 {
		job = jobs[0]
	}
	data, err := c.appended(job, version).encode()
	return framework.SetOp(s.nodes.changes(), data, version), err
}

// announce tells the members that jobs have changed; without jobs, that anything may have, such as the members' descriptions.
func (s *store) announce(ctx context.Context, jobs ...string) error {
	return s.onSession(ctx, func(session *framework.Session) error {
		tell, err := s.announceOp(ctx, session, jobs...)
		if err != nil {
			return err
		}
		_, err = session.Multi(ctx, tell)
		return err
	})
}
