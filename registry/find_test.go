package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/registry"
)

// TestFind finds the directories of instances, each once, and no other nodes.
func TestFind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for _, at := range [][3]string{{"/services", "billing", "1"}, {"/services", "billing", "2"},
			{"/x", "mail", "a"}} {
			r, err := registry.New(m.Client, at[0]).Register(t.Context(), registry.Instance{Service: at[1], ID: at[2],
				Address: "host", Port: 80})
			require.NoError(t, err)
			defer r.Close(t.Context())
		}
		require.NoError(t, m.MakeDirs(t.Context(), "/services/none/other"))
		find := func(root string) (found []string) {
			for path, err := range registry.Find(t.Context(), m.Client, root) {
				require.NoError(t, err)
				found = append(found, path)
			}
			return found
		}
		require.Equal(t, []string{"/services/billing", "/x/mail"}, find("/"))
		require.Equal(t, []string{"/services/billing"}, find("/services/billing"))
	})
}
