package registry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInstancesThatAreEjectedWhileOneIsPicked: a pool draws two instances to compare them. Other
// goroutines end calls meanwhile, so either draw may find none that is not ejected.
func TestInstancesThatAreEjectedWhileOneIsPicked(t *testing.T) {
	l := newList(time.Now(), []Instance{{ID: "busy", Weight: 1}, {ID: "idle", Weight: 1}}, nil)
	busy, idle, now := l.all["busy"], l.all["idle"], monotonicNow()
	busy.calls.Store(1)
	require.Same(t, idle, cheaper(busy, idle, now))
	require.Same(t, idle, cheaper(idle, busy, now))
	require.Same(t, busy, cheaper(busy, nil, now))
	require.Same(t, busy, cheaper(nil, busy, now))
	require.Nil(t, cheaper(nil, nil, now))
}
