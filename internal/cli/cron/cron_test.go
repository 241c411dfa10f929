//go:build unix

package cron

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACommandIsDescribedWithoutItsArguments: their hash is too short to confirm a guess, and
// another for each job.
func TestACommandIsDescribedWithoutItsArguments(t *testing.T) {
	one := describeCommand("report", []string{"./report.sh", "--password", "secret"})
	require.Regexp(t, `^\./report\.sh #[0-9a-f]{4}$`, one)
	require.Equal(t, one, describeCommand("report", []string{"./report.sh", "--password", "secret"}))
	require.NotEqual(t, one, describeCommand("report", []string{"./report.sh", "--password", "secreT"}))
	require.NotEqual(t, one, describeCommand("another", []string{"./report.sh", "--password", "secret"}))
}
