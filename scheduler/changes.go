package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// changeLog is the record in <path>/changes: the names of the jobs that were changed last, other
// than by a run. All members watch this one node. The transaction that makes a change also writes
// this record, so the node's version counts the changes.
type changeLog struct {
	Latest  []change `json:"changes"` // oldest first
	unknown recipe.Unknown
}

// change is one change. It was made by the write that gave the node this version.
type change struct {
	Version int32  `json:"n"`
	Job     string `json:"job,omitempty"` // "" stands for all jobs and the members' descriptions
}

const (
	changesVersion = 1
	maxChanges     = 32
)

// decodeChanges reads the stored changes. Its error wraps framework.ErrNewer or
// framework.ErrBadRecord.
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

// withChange returns the log with one more change. version is the node's version before the write.
func (c changeLog) withChange(job string, version int32) changeLog {
	latest := append(slices.Clone(c.Latest), change{version + 1, job})
	if over := len(latest) - maxChanges; over > 0 {
		latest = latest[over:]
	}
	return changeLog{latest, c.unknown}
}

// changedSince returns the jobs that were changed after one version and until another. all is true
// if the record does not reach back that far.
func (c changeLog) changedSince(version, now int32) (jobs []string, all bool) {
	for _, ch := range c.Latest {
		if ch.Version <= version {
			continue
		}
		if ch.Job == "" {
			return nil, true
		}
		jobs = append(jobs, ch.Job)
	}
	return jobs, len(jobs) != int(now-version)
}

// parseChanges is decodeChanges, but returns an empty log for a corrupt record. Members then take
// all jobs for changed.
func parseChanges(data []byte) (changeLog, error) {
	c, err := decodeChanges(data)
	if errors.Is(err, framework.ErrBadRecord) {
		return changeLog{}, nil
	}
	return c, err
}

// readChanges reads the change log and the node's version.
func (s *store) readChanges(ctx context.Context, session *framework.Session) (changeLog, int32, error) {
	for {
		data, stat, err := session.Get(ctx, s.nodes.Changes())
		if errors.Is(err, framework.ErrNoNode) {
			if err := s.createRecord(ctx, session, s.nodes.Changes(), changeLog{}); err != nil {
				return changeLog{}, 0, err
			}
			continue
		}
		if err != nil {
			return changeLog{}, 0, err
		}
		c, err := parseChanges(data)
		return c, stat.Version, failure.Wrap("changes", s.nodes.Changes(), err)
	}
}

// announceOp returns the operation that announces changed jobs to the members. The servers refuse
// it if another change came between.
func (s *store) announceOp(ctx context.Context, session *framework.Session, jobs ...string) (framework.Op, error) {
	c, version, err := s.readChanges(ctx, session)
	if err != nil {
		return framework.Op{}, err
	}
	job := "" // all
	if len(jobs) == 1 {
		job = jobs[0]
	}
	data, err := c.withChange(job, version).encode()
	return framework.SetOp(s.nodes.Changes(), data, version), err
}

// announceChanges announces changed jobs to the members. Without jobs, it announces that anything
// may have changed, such as the members' descriptions.
func (s *store) announceChanges(ctx context.Context, jobs ...string) error {
	return s.onSession(ctx, func(session *framework.Session) error {
		announce, err := s.announceOp(ctx, session, jobs...)
		if err != nil {
			return err
		}
		_, err = session.Multi(ctx, announce)
		return err
	})
}
