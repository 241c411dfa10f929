package framework

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestANodeThatIsTooLargeForAnAnswerHasItsOwnError beside others, which are read.
func TestANodeThatIsTooLargeForAnAnswerHasItsOwnError(t *testing.T) {
	var all bulkReads
	all.init(nil)
	call := all.begin(wire.OpGetData)
	paths := []string{"/a", "/b", "/c"}
	require.Equal(t, 3, call.nodes(paths))
	tooLarge := outcome[[]Node]{err: ErrTooLarge}
	_, err := dataReads.handleAnswer(call, 3, tooLarge)
	require.ErrorIs(t, err, errTooManyNodes)
	require.Equal(t, 1, call.nodes(paths))
	nodes, err := dataReads.handleAnswer(call, 1, tooLarge)
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	require.ErrorIs(t, nodes[0].Err, ErrTooLarge)
	require.Equal(t, 1, call.nodes(paths[1:]))
	nodes, err = dataReads.handleAnswer(call, 1, outcome[[]Node]{v: []Node{{}}})
	require.NoError(t, err)
	require.Equal(t, []Node{{}}, nodes)
	require.Equal(t, 1, call.nodes(paths[2:]))
	require.Equal(t, 3, call.nodes(paths))
}

// TestLargeNodesAreRememberedAndForgotten is of what the first request of a call expects.
func TestLargeNodesAreRememberedAndForgotten(t *testing.T) {
	var all bulkReads
	all.init(nil)
	paths := make([]string, 2*bulkNodes)
	require.Equal(t, bulkFirstNodes, all.begin(wire.OpGetData).nodes(paths))
	for range 4 {
		all.begin(wire.OpGetData).learn(100)
	}
	require.Equal(t, bulkNodes, all.begin(wire.OpGetData).nodes(paths))
	all.begin(wire.OpGetData).learn(bulkAnswer / 10)
	require.Equal(t, 10, all.begin(wire.OpGetData).nodes(paths))
	for range 10 {
		all.begin(wire.OpGetData).learn(100)
	}
	require.Less(t, all.begin(wire.OpGetData).nodes(paths), 20, "remembered")
	for range 1000 {
		all.begin(wire.OpGetData).learn(100)
	}
	require.Equal(t, bulkNodes, all.begin(wire.OpGetData).nodes(paths), "forgotten")
	call := all.begin(wire.OpGetData)
	_, err := dataReads.handleAnswer(call, bulkNodes, outcome[[]Node]{err: ErrSuspended, lost: true})
	require.ErrorIs(t, err, ErrSuspended)
	require.Equal(t, 1, call.nodes(paths), "after a loss")
	require.Equal(t, bulkFirstNodes, all.begin(wire.OpGetData).nodes(paths))
}
