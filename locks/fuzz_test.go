package locks

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/waitline"
)

// FuzzPermitsIn reads a semaphore's record for a report, where anything may stand, by newer
// releases too. What the semaphore itself can read must be shown as the same.
func FuzzPermitsIn(f *testing.F) {
	f.Add([]byte(`{"v":1,"permits":3}`))
	f.Add([]byte(`{"v":9,"permits":-3,"more":[1]}`))
	f.Add([]byte(`{"permits":1e99}`))
	f.Add(revokeMark)
	f.Add(bytes.Repeat([]byte("["), 10_000))
	f.Fuzz(func(t *testing.T, data []byte) {
		shown := waitline.PermitsIn(data)
		require.GreaterOrEqual(t, shown, 0)
		if p, err := parsePermitRecord(data); err == nil && len(p.unknown) == 0 {
			require.Equal(t, p.Permits, shown)
		}
	})
}

// FuzzHeldLocks reads what a process is told that others hold.
func FuzzHeldLocks(f *testing.F) {
	for _, text := range []string{`[{"lock":"/a","node":"/a/_c_1-lock-0000000000","zxid":3}]`, "[]", "null", "", "[{}]",
		`[{"lock":"/a","node":"/a","zxid":9223372036854775807}]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ctx, err := WithHeldLocks(t.Context(), text)
		if err != nil {
			return
		}
		again, err := WithHeldLocks(t.Context(), HeldLocks(ctx))
		require.NoError(t, err)
		require.Equal(t, HeldLocks(ctx), HeldLocks(again))
	})
}
