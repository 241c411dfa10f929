package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

func TestWrapNamesOperationAndPath(t *testing.T) {
	require.NoError(t, failure.Wrap("lock", "/a", nil))
	err := failure.Wrap("lead", "/a", failure.Wrap("acquire", "/a", failure.Wrap("list", "/a", framework.ErrNoAuth)))
	require.EqualError(t, err, "lead /a: no permission")
	require.ErrorIs(t, err, framework.ErrNoAuth)
	err = failure.Wrap("lead", "/a", failure.Wrap("get", "/a/b", framework.ErrNoNode))
	require.EqualError(t, err, "lead /a: get /a/b: no node")
	err = failure.Wrap("lead", "/a", fmt.Errorf("half way: %w", failure.Wrap("get", "/a", framework.ErrNoNode)))
	require.EqualError(t, err, "lead /a: half way: get /a: no node")
}

func TestEndedTellsErrorAndCause(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, failure.Ended(ctx), context.Canceled)
	require.ErrorIs(t, failure.Ended(ctx), why)
	ours, stop := context.WithCancelCause(t.Context())
	stop(failure.Wrap("get", "/x", framework.ErrNoNode))
	require.NotErrorIs(t, failure.Ended(ours), framework.ErrNoNode, "no server has answered this to the call")
	require.ErrorContains(t, failure.Ended(ours), "get /x: no node")
	plain, end := context.WithCancel(t.Context())
	end()
	require.EqualError(t, failure.Ended(plain), "context canceled")
}

func TestEndedHidesErrorsOfOtherCalls(t *testing.T) {
	refused := &framework.TxError{Op: "check", Path: "/x", Err: framework.ErrBadVersion}
	for _, cause := range []error{refused, &framework.OpError{Op: "get", Path: "/x", Err: refused},
		&framework.ConnectError{Err: refused}, framework.ServerError{Err: refused}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := failure.Ended(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, cause.Error())
		require.NotErrorAs(t, err, new(*framework.TxError))
		require.NotErrorAs(t, err, new(*framework.OpError))
		require.NotErrorAs(t, err, new(*framework.ConnectError))
		require.NotErrorAs(t, err, new(framework.ServerError))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("no file: %w", &fs.PathError{Op: "open", Path: "f", Err: fs.ErrNotExist}))
	require.ErrorAs(t, failure.Ended(ctx), new(*fs.PathError))
	require.ErrorIs(t, failure.Ended(ctx), fs.ErrNotExist)
}

func TestLoopEndsWithoutErrorWhenLeftOrCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, failure.LoopEnd(ctx, "follow", "/n", fmt.Errorf("on a session: %w", failure.ErrLoopLeft)))
	refused := errors.New("refused")
	require.ErrorIs(t, failure.LoopEnd(ctx, "follow", "/n", refused), refused)
	require.ErrorContains(t, failure.LoopEnd(ctx, "follow", "/n", refused), "follow /n")
	cancel()
	require.NoError(t, failure.LoopEnd(ctx, "follow", "/n", refused))
}

func TestJoinedErrorsAreSplit(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	both := fmt.Errorf("both: %w, %w", a, b) // one error, with two causes
	require.Equal(t, []error{a}, failure.SplitJoined(a))
	require.Equal(t, []error{a, b, both, c}, failure.SplitJoined(errors.Join(errors.Join(a, b), both, errors.Join(c))))
}
