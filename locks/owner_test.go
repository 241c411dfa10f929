package locks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"v":1,"owner":"a","host":"h","pid":1,"since":"2026-01-01T00:00:00Z","later":true}`))
	f.Add([]byte("192.0.2.1"))
	f.Add([]byte(" {\"V\":1,\"revoked\":false}\n"))
	f.Add([]byte("__REVOKE__"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := parseOwner(data); ok {
			require.GreaterOrEqual(t, o.Version, 1)
			revoked, ok := parseOwner(withRevocation(data))
			o.Revoked = true
			require.True(t, ok)
			require.Equal(t, o, revoked)
			require.Equal(t, withRevocation(data), withRevocation(withRevocation(data)))
		}
		require.True(t, isRevoked(withRevocation(data)))
	})
}
