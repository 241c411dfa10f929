package architecture

import (
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoRecipeLinksFxOrTheTelemetrySDK checks that applications without fx and the telemetry SDK do
// not link these.
func TestNoRecipeLinksFxOrTheTelemetrySDK(t *testing.T) {
	for _, recipe := range public {
		linked := linkedPackages(t, recipe)
		require.Contains(t, linked, Module+"/"+recipe, recipe)
		for _, name := range linked {
			for _, library := range []string{"go.uber.org/fx", "go.uber.org/dig", "go.opentelemetry.io/otel/sdk",
				"go.opentelemetry.io/otel/exporters", "google.golang.org/grpc", "go.yaml.in"} {
				require.False(t, within(name, library), "%s links %s", recipe, name)
			}
		}
	}
	require.Contains(t, linkedPackages(t, "election/electionfx"), "go.uber.org/fx", "this test sees what is linked")
}

// TestAServiceLinksNoRecipe checks that a program which runs a service links only the recipes that
// it imports.
func TestAServiceLinksNoRecipe(t *testing.T) {
	own := 0
	for _, name := range linkedPackages(t, "") {
		if dir, ok := inModule(name); ok {
			own++
			require.True(t, dir == "." || dir == "framework" || strings.HasPrefix(dir, "internal/"), dir)
		}
		require.False(t, within(name, "go.uber.org"), name)
	}
	require.Greater(t, own, 10)
	require.LessOrEqual(t, own, 19, "root, framework and the helpers below internal that framework uses")
}

// linkedPackages returns the packages that a program with this package links.
func linkedPackages(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", path.Join(Module, dir)).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
