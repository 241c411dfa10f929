package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimesAndAges: each has one spelling.
func TestTimesAndAges(t *testing.T) {
	now := time.Date(2026, 11, 26, 17, 4, 5, 0, time.Local)
	for ago, want := range map[time.Duration]string{
		-time.Minute: "just now", 999 * time.Millisecond: "just now", 7*time.Second + 936*time.Millisecond: "7s ago",
		366 * time.Second:             "6m06s ago",
		26*time.Hour + 59*time.Minute: "1d02h ago",
	} {
		require.Equal(t, want, FormatSince(now.Add(-ago), now))
	}
	require.Empty(t, FormatSince(time.Time{}, now))
	require.Empty(t, FormatTime(time.Time{}))
	require.Equal(t, "2026-11-26 17:04:05", FormatTime(now))
}
