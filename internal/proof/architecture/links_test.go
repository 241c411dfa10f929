package architecture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoRecipeLinksFxOrTheTelemetrySDK checks that applications without fx and the telemetry SDK do
// not link these.
func TestNoRecipeLinksFxOrTheTelemetrySDK(t *testing.T) {
	for _, recipe := range public {
		linked := linkedPackages(t, recipe)
		require.Contains(t, linked, Module+"/framework", recipe)
		for _, name := range linked {
			for _, library := range []string{"go.uber.org", "go.opentelemetry.io/otel/sdk",
				"go.opentelemetry.io/otel/exporters", "google.golang.org/grpc"} {
				require.False(t, within(name, library), "%s links %s", recipe, name)
			}
		}
	}
	require.Contains(t, linkedPackages(t, "election/electionfx"), "go.uber.org/fx", "this test sees what is linked")
}

// linkedPackages returns the packages that a program with this package links.
func linkedPackages(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", Module+"/"+dir).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
