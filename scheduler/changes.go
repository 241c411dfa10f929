package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// changeLog is what is stored in <path>/changes: the names of the jobs that were changed last by something else than
// a run. All members watch this one node. The transaction that makes a change writes it; the node's version tells how many changes there were.
type changeLog struct {
	Latest  []change `json:"changes"` // oldest first
	unknown recipe.Unknown
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
func decodeChanges(data []byte) (c changeLog, err error) {
	c.unknown, err = recipe.Decode(data, changesVersion, &c)
	return c, err
}

func (c changeLog) encode() ([]byte, error) {
	if c.Latest == nil {
		c.Latest = []change{}
	}
	return c.unknown.Encode(changesVersion, c)
}

// appended is the changes after one more, which is the write behind a version.
func (c changeLog) appended(job string, version int32) changeLog {
	latest := append(slices.Clone(c.Latest), change{version + 1, job})
	if over := len(latest) - maxChanges; over > 0 {
		latest = latest[over:]
	}
	return changeLog{latest, c.unknown}
}

// changedSince are the jobs that were changed after a version and until another; all if that cannot be told any more.
func (c changeLog) changedSince(version, now int32) (jobs []string, all bool) {
	next := version + 1
	for _, ch := range c.Latest {
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
