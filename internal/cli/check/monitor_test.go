//go:build unix

package check

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
)

func TestMonitorsOfRootsAreApart(t *testing.T) {
	paths := map[string]bool{}
	for _, root := range []string{"/", "/a", "/a/b", "/a~b", "/a~/b", "/a/~b", "/~"} {
		paths[monitorPath(root)] = true
		require.NoError(t, framework.ValidatePath(monitorPath(root)))
	}
	require.Len(t, paths, 7)
}

// TestALongEventIsCutBetweenCharacters for the environment of the program.
func TestALongEventIsCutBetweenCharacters(t *testing.T) {
	for shift := range 3 {
		for _, variable := range eventEnv(
			monitor.Event{Finding: monitor.Finding{Text: strings.Repeat("x", shift) + strings.Repeat("€",
				maxEnvValue)}}) {
			_, value, _ := strings.Cut(variable, "=")
			require.True(t, utf8.ValidString(value), variable)
			require.LessOrEqual(t, len(value), maxEnvValue)
		}
	}
}
