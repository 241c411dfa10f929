package architecture

import (
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var thisModule = os.DirFS("../../..")

// loadModule parses the files once, for all tests.
var loadModule = sync.OnceValues(func() ([]File, error) { return Load(thisModule) })

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModuleFollowsTheRules(t *testing.T) {
	files, err := loadModule()
	require.NoError(t, err)
	require.Greater(t, len(files), 50, "the module's root was not found")
	for name, rule := range map[string]func([]File) []string{"arrows": Arrows, "libraries": Libraries, "norms": Norms} {
		t.Run(name, func(t *testing.T) {
			if wrong := rule(files); len(wrong) > 0 {
				t.Errorf("\n%s", strings.Join(wrong, "\n"))
			}
		})
	}
}

// moduleOf returns the files of a module that has one file.
func moduleOf(t *testing.T, path, body string) []File {
	t.Helper()
	files, err := Load(fstest.MapFS{path: {Data: []byte("package p\n" + body)}})
	require.NoError(t, err)
	return files
}

func imports(packages ...string) string {
	var b strings.Builder
	for _, p := range packages {
		b.WriteString("import _ \"" + p + "\"\n")
	}
	return b.String()
}

func TestArrows(t *testing.T) {
	for _, c := range []struct {
		path, imported, says string
	}{
		{"locks/mutex.go", Module + "/framework", ""},
		{"locks/mutex.go", Module + "/election", "locks/mutex.go: locks may not import election"},
		{"framework/client.go", Module + "/internal/wire", ""},
		{"framework/client.go", Module + "/locks", "framework may not import locks"},
		{"framework/client.go", Module + "/zktest", "framework may not import zktest"},
		{"scheduler/job.go", Module + "/locks", "scheduler may not import locks"},
		{"queue/queue.go", Module + "/internal/zkserver", "queue may not import internal/zkserver"},
		{"queue/queue.go", Module + "/internal/proof/ensemble", "queue may not import internal/proof/ensemble"},
		{"queue/queue_test.go", Module + "/internal/proof/ensemble", ""},
		{"zktest/server.go", Module + "/internal/zkserver", ""},
		{"zktest/server.go", Module + "/locks", "zktest may not import locks"},
		{"internal/wire/frame.go", Module + "/internal/link", "internal/wire may not import internal/link"},
		{"internal/wire/frame.go", Module, "internal/wire may not import ."},
		{"internal/zkserver/server.go", Module + "/internal/wire", ""},
		{"examples/leader/main.go", Module + "/scheduler", ""},
		{"examples/leader/main.go", Module + "/zktest", ""},
		{"examples/leader/main.go", Module + "/examples/help", ""},
		{"examples/leader/main.go", Module + "/internal/zkserver", "examples may not import internal/zkserver"},
		{"internal/cli/dev/dev.go", Module + "/zktest", ""},
		{"cmd/other/main.go", Module + "/zktest", "cmd may not import zktest"},
		{"internal/proof/ensemble/cmd/with/main.go", Module + "/internal/proof/ensemble", ""},
		{"newpackage/a.go", "fmt", "newpackage/a.go: package newpackage has no entry in arrows"},
		{"locks/mutex.go", Module + "/newpackage", "locks may not import newpackage"},
		{"locks/mutex.go", "github.com/lockstep-go/lockstepping", ""},
	} {
		wantWrong(t, Arrows(moduleOf(t, c.path, imports(c.imported))), c.says, c.path, c.imported)
	}
}

func TestLibraries(t *testing.T) {
	for _, c := range []struct {
		path, imported, says string
	}{
		{"framework/zookeeper.go", "github.com/go-zookeeper/zk", ""},
		{"framework/session.go", "github.com/go-zookeeper/zk",
			"framework/session.go: only framework/zookeeper.go may import github.com/go-zookeeper/zk"},
		{"locks/zookeeper.go", "github.com/go-zookeeper/zk", "only framework/zookeeper.go may"},
		{"locks/mutex_test.go", "github.com/go-zookeeper/zk", ""},
		{"bench/single.go", "github.com/go-zookeeper/zk", ""},
		{"election/electionfx/module.go", "go.uber.org/fx", ""},
		{"locks/module.go", "go.uber.org/fx", "only the packages of fx modules may"},
		{"registry/registrygrpc/resolver.go", "google.golang.org/grpc/resolver", ""},
		{"registry/pool.go", "google.golang.org/grpc", "only registry/registrygrpc may"},
		{"locks/mutex.go", "go.uber.org/fx/fxevent", "only the packages of fx modules may"},
		{"election/electionfx/module.go", "github.com/go-zookeeper/zk", "only framework/zookeeper.go may"},
		{"locks/telemetry.go", "go.opentelemetry.io/otel/trace", ""},
		{"locks/mutex.go", "go.opentelemetry.io/otel/trace", "only files named telemetry.go may"},
		{"locks/telemetry.go", "go.opentelemetry.io/otel/sdk/trace", "only tests, examples and commands may"},
		{"cmd/lockstep/main.go", "go.opentelemetry.io/otel/sdk/trace", ""},
		{"locks/mutex.go", "testing", "locks/mutex.go: package testing belongs in tests"},
		{"zktest/tb.go", "testing", "belongs in tests"},
		{"locks/mutex_test.go", "testing", ""},
		{"internal/proof/conformance/target.go", "testing", ""},
	} {
		wantWrong(t, Libraries(moduleOf(t, c.path, imports(c.imported))), c.says, c.path, c.imported)
	}
}

func TestNorms(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("// x\n", n) }
	function := func(n int) string { return "func f() {\n" + lines(n-2) + "}\n" }
	method := func(n int) string { return "func (t T) m() {\n" + lines(n-2) + "}\n" }
	for _, c := range []struct {
		path, body, says string
	}{
		{"locks/a.go", lines(599), ""},
		{"locks/a.go", lines(600), "locks/a.go: 601 lines, at most 600"},
		{"locks/a_test.go", lines(1000), ""},
		{"locks/a.go", function(80), ""},
		{"locks/a.go", function(81), "locks/a.go: f has 81 lines, at most 80"},
		{"locks/a.go", lines(10) + method(81), "m has 81 lines"},
		{"locks/a_test.go", function(200), ""},
	} {
		wantWrong(t, Norms(moduleOf(t, c.path, c.body)), c.says, c.path)
	}
}

func wantWrong(t *testing.T, wrong []string, says string, about ...string) {
	t.Helper()
	if says == "" {
		require.Empty(t, wrong, about)
		return
	}
	require.Len(t, wrong, 1, about)
	require.Contains(t, wrong[0], says)
}

func TestLoadSkipsWhatIsNoPartOfTheModule(t *testing.T) {
	source := &fstest.MapFile{Data: []byte("package p\n")}
	files, err := Load(fstest.MapFS{
		"a/a.go": source, "a/testdata/b.go": source, ".hidden/c.go": source, "_d/d.go": source, "vendor/e/e.go": source,
		"a/f.txt": source, "bin/site/g.go": source,
	})
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, "a/a.go", files[0].Path)

	_, err = Load(fstest.MapFS{"a.go": {Data: []byte("no Go")}})
	require.ErrorContains(t, err, "a.go")
}

func TestWideLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", MostColumns)
	for body, wide := range map[string]bool{
		"var a = 1\n":                                           false,
		"var " + long[8:] + " int\n":                            false,
		"var " + long[7:] + " int\n":                            true,
		"func f() {\n\tvar " + long[12:] + " int\n}\n":          false,
		"func f() {\n\tvar " + long[11:] + " int\n}\n":          true,
		"// " + long + "\n":                                     true,
		"// " + long[:MostCommentColumns-3] + "\n":              false,
		"// " + long[:MostCommentColumns-2] + "\n":              true,
		"//\t<path>/" + long + "\n":                             false,
		"var a = `" + long + "\n" + long + "`\n":                false,
		"var a = \"" + long + "\"\n":                            false,
		"var a, " + long + " = \"x\", 1\n":                      true,
		"// Output:\n// " + long + "\n":                         false,
		"// Output:\n// x\n\n// " + long + "\n":                 true,
		"var a = []int{" + strings.Repeat("1, ", 50) + "}\n":    true,
		"var " + long + " int //nolint:unused // as a test\n":   false,
		"var a = 1 // " + strings.Repeat("word ", 30) + "end\n": true,
	} {
		wrong := Norms(moduleOf(t, "locks/a.go", body))
		require.Equal(t, wide, len(wrong) > 0, "%s: %v", body, wrong)
	}
}
