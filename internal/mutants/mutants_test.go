package mutants

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var all = flag.Bool("mutants", false, "build and test every mutant, not a sample")

// root is the module's.
const root = "../.."

// mutant is the code without one safeguard.
type mutant struct {
	name      string // unique within its list
	file      string // from the module's root
	old       string // occurs exactly once in the file
	new       string
	pkg       string // of the test, such as "./locks"; by default the file's own
	test      string // a test that must fail; alternatives with "|" between
	redundant string // why no test can notice; such a mutant is listed, and not run
}

// lists are the mutants of each package.
var lists = map[string][]mutant{}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEachMutantIsCaught tests every mutant with -mutants, and without it one of each list: another one each day. "make mutants" runs all;
// LIST=locks runs one list.
func TestEachMutantIsCaught(t *testing.T) {
	today := int(time.Now().Unix() / (24 * 60 * 60))
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			list := run(list)
			if !*all && len(list) > 0 {
				list = list[today%len(list):][:1]
			}
			for _, m := range list {
				t.Run(m.name, func(t *testing.T) { m.requireCaught(t) })
			}
		})
	}
}

// run returns the mutants that a test must notice.
func run(list []mutant) (caught []mutant) {
	for _, m := range list {
		if m.redundant == "" {
			caught = append(caught, m)
		}
	}
	return caught
}

// TestMutantsFitTheCode finds mutants whose safeguard or whose test has moved, without building anything.
func TestMutantsFitTheCode(t *testing.T) {
	for name, list := range lists {
		names := map[string]bool{}
		for _, m := range list {
			require.False(t, names[m.name], "%s: %q is there twice", name, m.name)
			names[m.name] = true
			_, err := m.change().Apply(root)
			require.NoError(t, err, "%s: %s", name, m.name)
			require.NotEqual(t, m.redundant == "", m.test == "", "%s: %s: it needs a test that must fail, or a reason why none can", name, m.name)
			for test := range strings.SplitSeq(m.test, "|") {
				require.True(t, m.redundant != "" || declares(t, m.directory(), strings.TrimSpace(test)), "%s: %s: %s has no test %q", name, m.name, m.directory(), test)
			}
		}
	}
}

// declares reports whether a test of the directory has this name.
func declares(t *testing.T, directory, test string) bool {
	files, err := filepath.Glob(filepath.Join(root, directory, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(source), "func "+test+"(") {
			return true
		}
	}
	return false
}

func (m mutant) change() Change { return Change{File: m.file, Old: m.old, New: m.new} }

// directory is where the test is.
func (m mutant) directory() string {
	if m.pkg != "" {
		return m.pkg
	}
	return "./" + path.Dir(m.file)
}

// requireCaught requires that the test fails, hangs or panics, and that the mutant compiles.
func (m mutant) requireCaught(t *testing.T) {
	overlay, err := m.change().Overlay(root, t.TempDir())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	pattern := "^(" + strings.ReplaceAll(m.test, " ", "") + ")$"
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-count=1", "-timeout=30s", "-run", pattern, m.directory())
	command.Dir = root
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	require.Error(t, err, "nobody notices: %s passes without the safeguard\n%s", m.test, out)
	require.NotContains(t, string(out), "[build failed]", "the mutant does not compile\n%s", out)
	require.NotContains(t, string(out), "no tests to run", "%s", out)
	require.Regexp(t, `--- FAIL: |panic: |fatal error: |DATA RACE`, string(out))
}
