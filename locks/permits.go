package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// PermitsError tells that a semaphore's members do not agree on the number of permits, or that one asked
// for more than there are. It wraps ErrPermits.
type PermitsError struct {
	// Path is the semaphore's path.
	Path string
	// Stored is how many permits the semaphore has, Given the number that does not fit.
	Stored, Given int
}

func (e *PermitsError) Error() string {
	return fmt.Sprintf("%v: %s has %d, %d were given", ErrPermits, e.Path, e.Stored, e.Given)
}

// Unwrap returns ErrPermits.
func (e *PermitsError) Unwrap() error { return ErrPermits }

// permits is what a semaphore's members agree on, stored as JSON.
type permits struct {
	// Declared is the number that the members were made with, Permits the one that holds since the last
	// Resize.
	Declared, Permits int

	version int32                      // of the node
	created int64                      // the transaction that created the node: versions begin anew with each node
	fields  map[string]json.RawMessage // all of the record, later versions' ones too
}

const permitsVersion = 1

func parsePermits(data []byte) (p permits, err error) {
	if err := json.Unmarshal(data, &p.fields); err != nil {
		return p, fmt.Errorf("the record of the permits: %w", err)
	}
	var v int
	for name, to := range map[string]*int{"v": &v, "declared": &p.Declared, "permits": &p.Permits} {
		if err := json.Unmarshal(p.fields[name], to); err != nil {
			return p, fmt.Errorf("the record of the permits: %q: %w", name, err)
		}
	}
	switch {
	case v > permitsVersion:
		return p, fmt.Errorf("the record of the permits has version %d, this release knows %d: update it", v, permitsVersion)
	case v < 1 || p.Declared < 1 || p.Permits < 1:
		return p, fmt.Errorf("the record of the permits %q: its numbers must be more than 0", data)
	}
	return p, nil
}

func (p permits) encode() []byte {
	if p.fields == nil {
		p.fields = map[string]json.RawMessage{}
	}
	for name, n := range map[string]int{"v": permitsVersion, "declared": p.Declared, "permits": p.Permits} {
		p.fields[name] = fmt.Append(nil, n)
	}
	data, err := json.Marshal(p.fields)
	if err != nil {
		panic("locks: permits cannot be written: " + err.Error()) // they are valid JSON already
	}
	return data
}

// agreed reads the record, or writes it if there is none, and checks the member's own number.
func (s *Semaphore) agreed(ctx context.Context) (permits, error) {
	for {
		data, st, err := s.client.Get(ctx, s.record)
		switch {
		case err == nil:
			return s.check(data, st)
		case !errors.Is(err, framework.ErrNoNode):
			return permits{}, err
		}
		if err := s.declare(ctx); err != nil {
			return permits{}, err
		}
	}
}

func (s *Semaphore) check(data []byte, st framework.Stat) (permits, error) {
	p, err := parsePermits(data)
	if err == nil && s.permits != p.Declared && s.permits != p.Permits {
		err = &PermitsError{s.path, p.Permits, s.permits}
	}
	p.version, p.created = st.Version, st.Czxid
	return p, err
}

// stands returns nil if the record in which room was found is still the one that there is. st is what a look behind
// the grant has seen, or nil. The transaction has checked the record's version only, and the first version of a
// record that was deleted and declared again is the same.
func (s *Semaphore) stands(ctx context.Context, sess *framework.Session, p permits, st *framework.Stat) error {
	if st == nil {
		seen, err := sess.Exists(ctx, s.record)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		st = &seen
	}
	if st.Czxid != p.created {
		return errRecordReplaced
	}
	return nil
}

// errRecordReplaced says that permits were taken by a record that had been deleted.
var errRecordReplaced = errors.New("the record of the permits was replaced")

// declare writes the first record; somebody else may be faster.
func (s *Semaphore) declare(ctx context.Context) error {
	record := permits{Declared: s.permits, Permits: s.permits}.encode()
	err := s.client.Create(ctx, s.record, record, framework.Persistent)
	switch {
	case errors.Is(err, framework.ErrNodeExists), framework.IsTransient(err):
		return nil // who asks looks again
	case errors.Is(err, framework.ErrNoNode):
		return s.client.MakeDirs(ctx, s.path)
	}
	return err
}

// Resize changes the number of permits, for all members, whatever number they were made with. More
// permits let waiters in at once; with fewer, nobody is let in until so many were given back. Waiters that
// ask for more than there are left fail with ErrPermits.
func (s *Semaphore) Resize(ctx context.Context, n int) error {
	if err := s.valid(n); err != nil {
		return framework.Wrap("resize", s.path, err)
	}
	for {
		p, err := s.agreed(ctx)
		if err != nil {
			return framework.Wrap("resize", s.path, err)
		}
		p.Permits = n
		_, err = s.client.Set(ctx, s.record, p.encode(), p.version)
		s.learn(nil)
		if errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil {
			if now, look := s.agreed(ctx); look == nil && now.Permits == n {
				return nil
			}
		}
		if !errors.Is(err, framework.ErrBadVersion) && !errors.Is(err, framework.ErrNoNode) {
			return framework.Wrap("resize", s.path, err)
		}
	}
}

// Limit is the number of permits that holds now.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	if s.err != nil {
		return 0, framework.Wrap("limit", s.path, s.err)
	}
	p, err := s.agreed(ctx)
	return p.Permits, framework.Wrap("limit", s.path, err)
}
