package architecture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoRecipeLinksFxOrTheTelemetrySDK: an application that does not use them does not have to carry them.
func TestNoRecipeLinksFxOrTheTelemetrySDK(t *testing.T) {
	for _, recipe := range public {
		linked := links(t, recipe)
		require.Contains(t, linked, Module+"/framework", recipe)
		for _, name := range linked {
			for _, library := range []string{"go.uber.org", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "google.golang.org/grpc"} {
				require.False(t, within(name, library), "%s links %s", recipe, name)
			}
		}
	}
	require.Contains(t, links(t, "locks/locksfx"), "go.uber.org/fx", "this test sees what is linked")
}

// links are the packages that a package consists of.
func links(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", Module+"/"+dir).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
