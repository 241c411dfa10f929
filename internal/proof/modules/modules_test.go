package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// environ is the environment of a user of the modules.
var environ []string

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if environ, err = Environ(root, dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// TestALockBringsFewModules checks what a program outside this repository gets that imports package
// locks and nothing else.
func TestALockBringsFewModules(t *testing.T) {
	const most = 40
	program := newProgram(t, "locks")
	modules := run(t, program, "go", "list", "-m", "all")
	require.LessOrEqual(t, len(strings.Split(modules, "\n")), most, modules)
	require.Contains(t, modules, Path+" "+Version)
	for _, library := range []string{"google.golang.org/grpc", "github.com/prometheus/", "modernc.org/"} {
		require.NotContains(t, modules, library)
	}
	run(t, program, "go", "list", "-deps", ".")
}

// TestTheResolverBringsGRPC checks that a program gets the resolver's module beside the root
// module.
func TestTheResolverBringsGRPC(t *testing.T) {
	program := newProgram(t, "registry/registrygrpc")
	modules := run(t, program, "go", "list", "-m", "all")
	require.Contains(t, modules, "google.golang.org/grpc v")
	require.Contains(t, modules, Path+"/registry/registrygrpc "+Version)
	run(t, program, "go", "list", "-deps", ".")
}

// TestTheCommandIsInstalled installs cmd/lockstep as users do. With -short it only plans that: the
// go command finds all packages, and compiles none.
func TestTheCommandIsInstalled(t *testing.T) {
	dir := t.TempDir()
	if testing.Short() {
		run(t, dir, "go", "install", "-n", Path+"/cmd/lockstep@"+Version)
		return
	}
	run(t, dir, "env", "GOBIN="+dir, "go", "install", Path+"/cmd/lockstep@"+Version)
	require.Contains(t, run(t, dir, filepath.Join(dir, "lockstep"), "version"), Version)
}

// TestEachModuleStandsAlone checks that each go.mod names what its module's packages and tests
// import, and nothing else, without help from the workspace.
func TestEachModuleStandsAlone(t *testing.T) {
	files, err := listFiles(root)
	require.NoError(t, err)
	for _, module := range Dirs {
		t.Run(module, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range files {
				if moduleOf(file) != module {
					continue
				}
				text, err := os.ReadFile(filepath.Join(root, file))
				require.NoError(t, err)
				to := filepath.Join(dir, strings.TrimPrefix(file, module+"/"))
				require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
				require.NoError(t, os.WriteFile(to, text, 0o644))
			}
			before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			require.NoError(t, err)
			run(t, dir, "go", "mod", "tidy")
			after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), `run "make tidy"`)
			run(t, dir, "go", "list", "-deps", "-test", "./...")
		})
	}
}

// TestAllModulesAreListed checks that the places that list the modules list the same.
func TestAllModulesAreListed(t *testing.T) {
	files, err := listFiles(root)
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		if filepath.Base(file) == "go.mod" {
			found = append(found, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	require.ElementsMatch(t, Dirs, found)

	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	workspace, err := os.ReadFile(filepath.Join(root, "go.work"))
	require.NoError(t, err)
	for _, module := range Dirs[1:] {
		require.Contains(t, string(makefile), " ./"+module+"/...")
		require.Contains(t, string(workspace), "\t./"+module+"\n")
		mod, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		require.NoError(t, err)
		require.Contains(t, string(mod), Path+" "+Version+"\n")
	}
}

// newProgram makes a module with a program that imports a package of ours, and returns its
// directory.
func newProgram(t *testing.T, imported string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/program\n\ngo 1.26.0\n",
		"main.go": "package main\n\nimport _ \"" + Path + "/" + imported + "\"\n\nfunc main() {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run(t, dir, "go", "mod", "tidy")
	return dir
}

// run runs a command as a user of the modules does and returns what it prints.
func run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, environ
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s%s", command, out, messages.String())
	return strings.TrimSpace(string(out))
}
