package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// permitLimit is the number of permits of one semaphore, which its members agree on in a record.
type permitLimit struct {
	client   *framework.Client
	path     string // the semaphore's
	node     string // of the record
	declared int    // the number that this member was made with

	mu    sync.Mutex
	known *permitRecord // as it was last read, or nil
}

// cachedRecord returns the last known record, and reads again if n is more than that allows. It
// refuses n if there are fewer permits. A grant checks the record's version again.
func (l *permitLimit) cachedRecord(ctx context.Context, n int) (permitRecord, error) {
	l.mu.Lock()
	known := l.known
	l.mu.Unlock()
	if known != nil && n <= known.Permits {
		return *known, nil
	}
	return l.readFitting(ctx, n)
}

// readFitting reads the record again. Before it refuses this member's number, or n, it brings the
// server up to date: the server may lag behind a change of the number.
func (l *permitLimit) readFitting(ctx context.Context, n int) (permitRecord, error) {
	for synced := false; ; synced = true {
		p, err := l.rereadRecord(ctx)
		if err == nil {
			err = l.checkFits(p, n)
		}
		if synced || !errors.Is(err, errStoredPermits) {
			return p, err
		}
		if err := l.client.Sync(ctx, l.node); err != nil {
			return permitRecord{}, err
		}
	}
}

// isKnown reports whether the record has been read.
func (l *permitLimit) isKnown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known != nil
}

// rememberRecord keeps the record; nil forgets the last one.
func (l *permitLimit) rememberRecord(p *permitRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = p
}

// rereadRecord reads and remembers the record.
func (l *permitLimit) rereadRecord(ctx context.Context) (permitRecord, error) {
	p, err := l.readRecord(ctx)
	if err == nil {
		l.rememberRecord(&p)
	}
	return p, err
}

// readRecord reads the record, creates a missing one, and checks it against this member's number.
func (l *permitLimit) readRecord(ctx context.Context) (permitRecord, error) {
	for {
		data, stat, err := l.client.Get(ctx, l.node)
		switch {
		case err == nil:
			return l.parseRecord(data, stat)
		case !errors.Is(err, framework.ErrNoNode):
			return permitRecord{}, err
		}
		record := permitRecord{Declared: l.declared, Permits: l.declared}.encode()
		err = l.client.Create(ctx, l.node, record, framework.Persistent)
		switch {
		case err == nil, errors.Is(err, framework.ErrNodeExists), failure.IsTransient(err): // read what is there now
		case errors.Is(err, framework.ErrNoNode):
			if err := l.client.MakeDirs(ctx, l.path); err != nil {
				return permitRecord{}, err
			}
		default:
			return permitRecord{}, err
		}
	}
}

func (l *permitLimit) parseRecord(data []byte, stat framework.Stat) (permitRecord, error) {
	p, err := parsePermitRecord(data)
	if err == nil && l.declared != p.Declared && l.declared != p.Permits {
		err = &MismatchError{Path: l.path, Stored: p.Permits, Given: l.declared}
	}
	p.version, p.created = stat.Version, stat.Czxid
	return p, err
}

func (l *permitLimit) checkFits(p permitRecord, n int) error {
	if n > p.Permits {
		return &MismatchError{Path: l.path, Stored: p.Permits, Given: n, Requested: true}
	}
	return nil
}

// watchRecord reads and watches the record. It refuses n if there are fewer permits.
func (l *permitLimit) watchRecord(ctx context.Context, s *framework.Session,
	n int) (permitRecord, *framework.Watch, error) {
	for {
		data, stat, w, err := s.WatchData(ctx, l.node)
		if errors.Is(err, framework.ErrNoNode) { // another client has deleted it
			l.rememberRecord(nil)
			if _, err := l.cachedRecord(ctx, n); err != nil {
				return permitRecord{}, nil, err
			}
			continue
		}
		if err != nil {
			return permitRecord{}, nil, err
		}
		p, err := l.parseRecord(data, stat)
		if err == nil {
			l.rememberRecord(&p)
			err = l.checkFits(p, n)
		}
		if err != nil {
			w.Stop()
			return permitRecord{}, nil, err
		}
		return p, w, nil
	}
}

// setPermits changes the number of permits for all members. If another member changes it at the
// same time, the other number may be the one that stays. The record must permit this member's
// number at the first read. Later it may not: this call, or another one at the same time, has set a
// number since.
func (l *permitLimit) setPermits(ctx context.Context, n int) error {
	accepted := int64(0) // the transaction that created the record that permitted this member's number
	for {
		p, err := l.readFitting(ctx, 0)
		if err != nil && !(errors.Is(err, errStoredPermits) && p.created == accepted) {
			return err
		}
		accepted = p.created
		changed := p
		changed.Permits = n
		_, err = l.client.Set(ctx, l.node, changed.encode(), p.version)
		l.rememberRecord(nil)
		switch {
		case errors.Is(err, framework.ErrOutcomeUnknown) && ctx.Err() == nil:
			now, failed := l.readRecord(ctx)
			if failed != nil && !errors.Is(failed, errStoredPermits) {
				return fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, failed)
			}
			if now.created != p.created || now.version != p.version {
				// this number was set, or another one by another member: it is as if this one had
				// been set just before
				return nil
			}
		case !errors.Is(err, framework.ErrBadVersion) && !errors.Is(err, framework.ErrNoNode):
			return err
		}
	}
}

// errRecordReplaced says that permits were granted by a record that another client had deleted.
var errRecordReplaced = errors.New("the record of the permits was replaced")

// checkNotReplaced fails with errRecordReplaced if another record has taken the place of p. czxid
// is the record's from behind the grant, or 0. The grant's transaction has checked only the
// version, and a record that was deleted and created again begins with the same version.
func (l *permitLimit) checkNotReplaced(ctx context.Context, s *framework.Session, p permitRecord, czxid int64) error {
	if czxid == 0 {
		seen, err := s.Exists(ctx, l.node)
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		czxid = seen.Czxid
	}
	if czxid != p.created {
		return errRecordReplaced
	}
	return nil
}

// permitRecord is the number of permits that a semaphore's members agree on, stored as JSON.
type permitRecord struct {
	// Declared is the number that the members were made with, Permits the number since the last
	// SetLimit.
	Declared int `json:"declared"`
	Permits  int `json:"permits"`

	version int32          // of the node
	created int64          // the transaction that created the node: versions begin anew with each node
	unknown recipe.Unknown // fields of later releases
}

const permitRecordVersion = 1

func parsePermitRecord(data []byte) (p permitRecord, err error) {
	p.unknown, err = recipe.Decode(data, permitRecordVersion, &p)
	if err == nil && (p.Declared < 1 || p.Permits < 1) {
		err = fmt.Errorf("%w: its numbers must be more than 0: %q", framework.ErrBadRecord, data)
	}
	if err != nil {
		return p, fmt.Errorf("the record of the permits: %w", err)
	}
	return p, nil
}

func (p permitRecord) encode() []byte {
	data, err := p.unknown.Encode(permitRecordVersion, p)
	if err != nil {
		panic("locks: permits cannot be encoded: " + err.Error()) // they are numbers and valid JSON
	}
	return data
}
