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
)

// ready makes the queue and the marker where they are missing.
func (w *writer) ready(ctx context.Context, s *framework.Session) error {
	if err := w.q.find(ctx, s); err != nil {
		return err
	}
	for w.marker == "" || w.lively != s {
		if w.marker == "" {
			if err := w.makeMarker(ctx, s); err != nil {
				return err
			}
		}
		asked := time.Now()
		err := s.Create(ctx, w.child(s), nil, framework.Ephemeral)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			w.forget()
			if err := w.q.find(ctx, s); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, framework.ErrNodeExists):
			return err
		default:
			st, there := s.Exists(ctx, w.child(s))
			if there != nil {
				return there
			}
			if err == nil || w.q.clock.unset() { // one that was there may be older than the question
				w.q.clock.hear(st.Ctime, asked)
			}
			w.lively = s
		}
	}
	return nil
}

// makeMarker makes the marker of a queue that is as it was found, and is not being dropped.
func (w *writer) makeMarker(ctx context.Context, s *framework.Session) error {
	if w.nextMarker == "" {
		w.nextMarker = framework.Join(w.q.below(writersDir), uuid.NewString())
	}
	for {
		record := framework.CheckOp(w.q.path, w.q.stored().version)
		_, err := s.Multi(ctx, record, framework.CreateOp(w.nextMarker, nil, framework.Container))
		var refused *framework.TxError
		switch {
		case err == nil, errors.Is(err, framework.ErrNodeExists): // a lost reply's
			w.marker, w.nextMarker, w.version = w.nextMarker, "", 0
			return nil
		case !errors.As(err, &refused) || errors.Is(err, framework.ErrNoAuth):
			return err
		case refused.Index == 1: // there are no markers
			_, err = s.Multi(ctx, record, framework.CreateOp(w.q.below(writersDir), nil, framework.Container))
			if err == nil || errors.Is(err, framework.ErrNodeExists) {
				continue
			}
		}
		w.q.stale.Store(true)
		if !refusedByOthers(err) {
			return err
		}
		if err := w.q.find(ctx, s); err != nil {
			return err
		}
	}
}

// forget forgets the marker, which the servers have reaped, or which went with the queue; and all else that is known of that.
func (w *writer) forget() {
	w.marker, w.room, w.ids = "", room{}, ids{}
	clear(w.tails)
	clear(w.seconds)
	w.q.stale.Store(true)
}

// mark is what the next transaction writes into the marker.
func (w *writer) mark() []byte { return strconv.AppendInt(nil, w.count+1, 10) }

// settle finds out whether a transaction was applied whose reply was lost, by a fence: it writes the marker at the
// version from before. If that is possible the transaction can never be applied any more.
func (w *writer) settle(ctx context.Context, parts []*part, lost error) ([]*part, error) {
	back := w.q.client.Retries()
	w.room.known = false
	for {
		s, err := w.q.client.Session(ctx)
		if err == nil {
			var applied bool
			if applied, err = w.fence(ctx, s); err == nil && applied {
				w.count++
				w.end(parts, nil)
				return nil, nil
			}
		}
		switch {
		case err == nil:
			return w.sending(parts, false), nil
		case errors.Is(err, framework.ErrNoNode):
			w.forget()
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, lost))
			return nil, nil
		case ctx.Err() != nil || !framework.IsTransient(err):
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, err))
			return nil, nil
		}
		if err := back.Pause(ctx); err != nil {
			w.end(parts, fmt.Errorf("%w: %w", ErrUnknown, err))
			return nil, nil
		}
	}
}

// fence makes sure that the last transaction was applied or never will be.
func (w *writer) fence(ctx context.Context, s *framework.Session) (applied bool, err error) {
	fence := fmt.Appendf(nil, "%d fence", w.count)
	st, err := s.Set(ctx, w.marker, fence, w.version)
	if err == nil {
		w.version = st.Version
		return false, nil
	}
	if !errors.Is(err, framework.ErrBadVersion) {
		return false, err
	}
	data, st, err := s.Get(ctx, w.marker) // the fence of a session that was lost may stand there, too
	if err != nil {
		return false, err
	}
	w.version = st.Version
	return !bytes.Equal(data, fence), nil
}

// leave removes the marker; nothing is written any more.
func (w *writer) leave() {
	if w.marker == "" || w.lively == nil {
		return
	}
	if w.room.own.path != "" {
		w.room.giveBack(w.lively, w.q)
	}
	own := framework.DeleteOp(w.child(w.lively), framework.AnyVersion)
	err := w.last(own, framework.DeleteOp(w.marker, framework.AnyVersion))
	if errors.Is(err, framework.ErrNotEmpty) { // the servers have not ended a former session yet, and remove the rest then
		_ = w.last(own)
	} // else the servers remove both after the session
	w.marker = ""
}

// last writes until the servers have answered, or the session has ended. What was done is not there any more.
func (w *writer) last(ops ...framework.Op) error {
	ctx, back := w.lively.Context(), w.q.client.Retries()
	for {
		_, err := w.lively.Multi(ctx, ops...)
		if !errors.Is(err, framework.ErrSuspended) || back.Pause(ctx) != nil {
			return err
		}
	}
}

// child is the marker's child of a session.
func (w *writer) child(s *framework.Session) string {
	return framework.Join(w.marker, strconv.FormatInt(s.ID(), 16))
}
