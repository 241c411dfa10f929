package watchdog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzStat parses /proc/PID/stat, in which the name of the process may have any bytes.
func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"))
	f.Add([]byte("1 (a) R) (\n) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"))
	f.Add([]byte("1 (sh) S 1 x"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		state, _, _, err := parseStat(b)
		if err != nil {
			require.ErrorIs(t, err, errStat)
			return
		}
		require.NotZero(t, state)
	})
}
