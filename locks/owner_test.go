package locks

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"v":1,"owner":"a","host":"h","pid":1,"since":"2026-01-01T00:00:00Z","later":true}`))
	f.Add([]byte("192.0.2.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := parseOwner(data); ok {
			require.GreaterOrEqual(t, o.Version, 1)
		}
	})
}
