package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// fence finds out for one writer whether a transaction with a lost reply was applied, by the
// writer's own node, the marker <path>/writers/<uuid>. Each transaction sets the marker at the
// version that the last one left. After a lost reply, fence sets the marker itself at the version
// from before: if that succeeds, the transaction was not applied and cannot be applied any more
// (docs/adr/0022-one-writer-and-its-marker.md).
type fence struct {
	store   *store
	marker  string // its node, or ""
	next    string // a marker whose create may have been applied, with a lost reply; or ""
	version int32  // of the marker
	count   int64  // transactions so far
	session *framework.Session
}

var errMarkerGone = errors.New("the writer's marker is gone")

// isReady reports whether the marker exists, and has a child of this session. The servers remove a
// marker without children.
func (f *fence) isReady(s *framework.Session) bool { return f.marker != "" && f.session == s }

// makeMarkerWithChild makes the marker and its ephemeral child. It returns errMarkerGone if the
// servers have removed the marker.
func (f *fence) makeMarkerWithChild(ctx context.Context, s *framework.Session) error {
	if f.marker == "" {
		if err := f.makeMarker(ctx, s); err != nil {
			return err
		}
	}
	asked := time.Now()
	err := s.Create(ctx, f.childPath(s), nil, framework.Ephemeral)
	if errors.Is(err, framework.ErrNoNode) {
		return errMarkerGone
	}
	if err != nil && !errors.Is(err, framework.ErrNodeExists) {
		return err
	}
	st, missing := s.Exists(ctx, f.childPath(s))
	if missing != nil {
		return missing
	}
	if err == nil || !f.store.clock.Known() { // a child that existed may be older than the question
		f.store.clock.AddStamp(st.Ctime, asked)
	}
	f.session = s
	return nil
}

// makeMarker makes the marker in a transaction that checks the record: a queue that is being
// dropped gets no new markers.
func (f *fence) makeMarker(ctx context.Context, s *framework.Session) error {
	writers := f.store.nodes.WritersDir
	if f.next == "" {
		f.next = znode.Join(writers, uuid.NewString())
	}
	for {
		record := framework.CheckOp(f.store.nodes.Path, f.store.record().Version)
		_, err := s.Multi(ctx, record, framework.CreateOp(f.next, nil, framework.Container))
		var refused *framework.TxError
		switch {
		case err == nil, errors.Is(err, framework.ErrNodeExists): // made before; the reply was lost
			f.marker, f.next, f.version = f.next, "", 0
			return nil
		case !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth):
			return err
		case refused.Index == 1: // the directory of markers is missing
			_, err = s.Multi(ctx, record, framework.CreateOp(writers, nil, framework.Container))
			if err == nil || errors.Is(err, framework.ErrNodeExists) {
				continue
			}
		}
		f.store.stale.Store(true)
		if !recipe.IsConflict(err) {
			return err
		}
		if err := f.store.findOrMake(ctx, s); err != nil {
			return err
		}
	}
}

// markerOp is the operation of the next transaction that sets the marker.
func (f *fence) markerOp() framework.Op {
	return framework.SetOp(f.marker, strconv.AppendInt(nil, f.count+1, 10), f.version)
}

// neverOps are operations that the servers never apply together: they demand two versions of the
// marker.
func (f *fence) neverOps() []framework.Op {
	return []framework.Op{framework.CheckOp(f.marker, 0), framework.CheckOp(f.marker, 1)}
}

// noteApplied counts an applied transaction.
func (f *fence) noteApplied() {
	f.version++
	f.count++
}

// forgetMarker forgets the marker, which the servers have removed.
func (f *fence) forgetMarker() { f.marker = "" }

// wasApplied reports whether the last transaction was applied, after its reply was lost. If not, it
// cannot be applied any more. The error is framework.ErrNoNode if the marker is gone, or says why
// the outcome remains unknown.
func (f *fence) wasApplied(ctx context.Context) (applied bool, err error) {
	err = recipe.OnSession(ctx, f.store.client, func(s *framework.Session) (err error) {
		applied, err = f.setMarker(ctx, s)
		return err
	}, failure.IsTransient)
	if err == nil && applied {
		f.count++
	}
	return applied, err
}

func (f *fence) setMarker(ctx context.Context, s *framework.Session) (applied bool, err error) {
	data := fmt.Appendf(nil, "%d fence", f.count)
	st, err := s.Set(ctx, f.marker, data, f.version)
	if err == nil {
		f.version = st.Version
		return false, nil
	}
	if !errors.Is(err, framework.ErrBadVersion) {
		return false, err
	}
	found, st, err := s.Get(ctx, f.marker) // an earlier try may have set the fence, with a lost reply
	if err != nil {
		return false, err
	}
	f.version = st.Version
	return !bytes.Equal(found, data), nil
}

// removeMarker removes the marker after the last transaction.
func (f *fence) removeMarker() {
	if f.marker == "" || f.session == nil {
		return
	}
	child := framework.DeleteOp(f.childPath(f.session), framework.AnyVersion)
	err := f.writeUntilAnswered(child, framework.DeleteOp(f.marker, framework.AnyVersion))
	if errors.Is(err, framework.ErrNotEmpty) { // a former session has not ended yet; the servers remove the rest then
		_ = f.writeUntilAnswered(child)
	} // else the servers remove both after the session
	f.marker = ""
}

// writeUntilAnswered writes until the servers have answered, or the session has ended.
func (f *fence) writeUntilAnswered(ops ...framework.Op) error {
	ctx, back := f.session.Context(), recipe.NewBackoff(f.store.client)
	for {
		_, err := f.session.Multi(ctx, ops...)
		if !errors.Is(err, framework.ErrSuspended) || back.Pause(ctx) != nil {
			return err
		}
	}
}

// childPath is the marker's child of a session.
func (f *fence) childPath(s *framework.Session) string {
	return znode.Join(f.marker, strconv.FormatInt(s.ID(), 16))
}
