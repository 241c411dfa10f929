package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
)

// TestFind finds values that were set, also deleted ones, and no other nodes.
func TestFind(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		for _, path := range []string{"/x/one", "/x/one/below", "/y"} {
			require.NoError(t, config.New(m.Client, path, codec.Text()).Set(t.Context(), "v"))
		}
		require.NoError(t, m.MakeDirs(t.Context(), "/z/v-1"))
		require.NoError(t, m.Client.Delete(t.Context(), "/y", -1))
		find := func(root string) (found []string) {
			for path, err := range config.Find(t.Context(), m.Client, root) {
				require.NoError(t, err)
				found = append(found, path)
			}
			return found
		}
		require.Equal(t, []string{"/x/one/below", "/x/one", "/y"}, find("/"))
		require.Equal(t, []string{"/x/one/below", "/x/one"}, find("/x"))
	})
}
