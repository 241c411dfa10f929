package framework_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func TestWrapNamesWhatWasAskedFor(t *testing.T) {
	require.NoError(t, framework.Wrap("lock", "/a", nil))
	err := framework.Wrap("lead", "/a", framework.Wrap("acquire", "/a", framework.Wrap("list", "/a", framework.ErrNoAuth)))
	require.EqualError(t, err, "lead /a: no permission")
	require.ErrorIs(t, err, framework.ErrNoAuth)
	err = framework.Wrap("lead", "/a", framework.Wrap("get", "/a/b", framework.ErrNoNode))
	require.EqualError(t, err, "lead /a: get /a/b: no node")
	err = framework.Wrap("lead", "/a", fmt.Errorf("half way: %w", framework.Wrap("get", "/a", framework.ErrNoNode)))
	require.EqualError(t, err, "lead /a: half way: get /a: no node")
}

func TestEndedTellsErrorAndCause(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, framework.Ended(ctx), context.Canceled)
	require.ErrorIs(t, framework.Ended(ctx), why)
	ours, stop := context.WithCancelCause(t.Context())
	stop(framework.Wrap("get", "/x", framework.ErrNoNode))
	require.NotErrorIs(t, framework.Ended(ours), framework.ErrNoNode, "no server has said so here")
	require.ErrorContains(t, framework.Ended(ours), "get /x: no node")
	plain, end := context.WithCancel(t.Context())
	end()
	require.EqualError(t, framework.Ended(plain), "context canceled")
}
