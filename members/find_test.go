package members_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/members"
)

// TestFind finds groups with members and groups with only a cordon, and takes neither a barrier nor
// a node with data for a group.
func TestFind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.peer("a")
		a.join("a")
		cordoned := members.New(a.Client, "/groups/cordoned")
		require.NoError(t, cordoned.Cordon(t.Context(), "b", members.WithAbsentMember()))
		double, err := barrier.NewDoubleBarrier(a.Client, "/groups/barrier", 1).Enter(t.Context())
		require.NoError(t, err)
		defer double.Leave(t.Context())
		require.NoError(t, a.MakeDirs(t.Context(), "/groups/data/_cordon_x"))
		_, err = a.Client.Set(t.Context(), "/groups/data", []byte("x"), framework.AnyVersion)
		require.NoError(t, err)
		find := func(root string) (found []string) {
			for path, err := range members.Find(t.Context(), a.Client, root) {
				require.NoError(t, err)
				found = append(found, path)
			}
			return found
		}
		require.Equal(t, []string{"/groups/cordoned", path}, find("/"))
		require.Equal(t, []string{path}, find(path))
		require.Empty(t, find("/none"))
	})
}
