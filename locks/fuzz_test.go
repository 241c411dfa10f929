package locks

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPermitsIn reads a semaphore's record for a report, where anything may stand, by newer releases too. What the semaphore itself
// can read must be shown as the same.
func FuzzPermitsIn(f *testing.F) {
	f.Add([]byte(`{"v":1,"permits":3}`))
	f.Add([]byte(`{"v":9,"permits":-3,"more":[1]}`))
	f.Add([]byte(`{"permits":1e99}`))
	f.Add(revokeMark)
	f.Add(bytes.Repeat([]byte("["), 10_000))
	f.Fuzz(func(t *testing.T, data []byte) {
		shown := permitsIn(data)
		require.GreaterOrEqual(t, shown, 0)
		if p, err := parsePermitRecord(data); err == nil && len(p.unknown) == 0 {
			require.Equal(t, p.Permits, shown)
		}
	})
}
