package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/locks"
)

// TestALateGuardedWriteIsRefusedByTheServers: the condition of this process is asked before the
// release, and the transaction is sent when the next holder has written already.
func TestALateGuardedWriteIsRefusedByTheServers(t *testing.T) {
	for name, guards := range map[string]func(l *locks.Lease) []framework.Op{
		"guard":  func(l *locks.Lease) []framework.Op { return []framework.Op{l.Guard()} },
		"guards": (*locks.Lease).Guards,
	} {
		t.Run(name, func(t *testing.T) {
			eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
				a, b := w.member("a"), w.member("b")
				lateWriteIsRefused(t, a.Client, b.Client, kind.make(a.Client), kind.make(b.Client), guards)
			})
			in(t, func(t *testing.T, w *world) { // turns of one slice
				a, b := w.member("a"), w.member("b")
				m := locks.NewMutex(a.Client, path, locks.WithLocalHandoff(time.Hour), locks.WithReentry())
				lateWriteIsRefused(t, a.Client, b.Client, m, m, guards)
			})
			in(t, func(t *testing.T, w *world) { // the guard of a nested lease, or of several, is that of the turn
				a, b := w.member("a"), w.member("b")
				m := locks.NewMutex(a.Client, path, locks.WithLocalHandoff(time.Hour), locks.WithReentry())
				several := locks.NewMultiLock(m)
				lateWriteIsRefused(t, a.Client, b.Client, several, m, func(l *locks.Lease) []framework.Op {
					return guards(held(t, l.Context(), m))
				})
			})
		})
	}
}

// lateWriteIsRefused requires that a's guarded write fails which is stopped between its last
// condition and its request, while a releases and next is granted.
func lateWriteIsRefused(t *testing.T, a, b *framework.Client, locker, next locks.Locker,
	guards func(l *locks.Lease) []framework.Op) {
	t.Helper()
	require.NoError(t, a.Create(t.Context(), "/data", nil, framework.Persistent))
	former := held(t, t.Context(), locker)
	asker := newAsker(t)
	asker.ask("next", next.Lock)
	require.Empty(t, asker.now())
	asked := 0
	stopped := primitives.When(framework.SetOp("/data", []byte("late"), framework.AnyVersion), func() error {
		if asked++; asked == 1 { // Client.Multi asks once more before it sends
			return nil
		}
		released(t, former)
		require.Equal(t, []string{"next"}, asker.now())
		_, err := b.Set(t.Context(), "/data", []byte("next"), framework.AnyVersion)
		return err
	})
	_, err := a.Multi(t.Context(), append(guards(former), stopped)...)
	require.Equal(t, 2, asked)
	require.ErrorIs(t, err, framework.ErrNoNode)
	data, _, err := b.Get(t.Context(), "/data")
	require.NoError(t, err)
	require.Equal(t, "next", string(data))
	require.NoError(t, asker.lease("next").Err())
	_, err = b.Multi(t.Context(),
		append(guards(asker.lease("next")), framework.SetOp("/data", nil, framework.AnyVersion))...)
	require.NoError(t, err, "the next holder's guard stands")
	asker.release("next")
}
