package ensemble

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeTB records how a test ended.
type fakeTB struct{ failed, skipped string }

func (*fakeTB) Helper()                     {}
func (*fakeTB) Cleanup(func())              {}
func (f *fakeTB) Errorf(s string, a ...any) { f.failed += fmt.Sprintf(s, a...) }
func (f *fakeTB) Fatalf(s string, a ...any) { f.Errorf(s, a...); runtime.Goexit() }
func (f *fakeTB) Skipf(s string, a ...any)  { f.skipped = fmt.Sprintf(s, a...); runtime.Goexit() }
func (f *fakeTB) run(body func(TB)) (ok bool) { // on a goroutine that Fatalf may end
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(f)
		ok = true
	}()
	<-done
	return ok
}

func TestSharedGivesTheServersOfTheEnvironment(t *testing.T) {
	t.Setenv(ServersVariable, "a:1,b:2")
	require.Equal(t, []string{"a:1", "b:2"}, Shared(t))
}

func TestSharedSkipsAndFailsInCI(t *testing.T) {
	t.Setenv(ServersVariable, "")
	t.Setenv("CI", "")
	var f fakeTB
	require.False(t, f.run(func(tb TB) { Shared(tb) }))
	require.Equal(t, "real ensemble left out: LOCKSTEP_TEST_SERVERS is not set (run make test)", f.skipped)

	t.Setenv("CI", "true")
	f = fakeTB{}
	require.False(t, f.run(func(tb TB) { Shared(tb) }))
	require.Contains(t, f.failed, "LOCKSTEP_TEST_SERVERS is not set")
	require.Empty(t, f.skipped)
}

func TestPrivateSkipsAndFailsInCIWithoutJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	t.Setenv("CI", "")
	var f fakeTB
	require.False(t, f.run(func(tb TB) { Private(tb, Config{}) }))
	require.Contains(t, f.skipped, "real ensemble left out: ensemble: ZooKeeper is not installed")

	t.Setenv("CI", "true")
	f = fakeTB{}
	require.False(t, f.run(func(tb TB) { Private(tb, Config{}) }))
	require.Contains(t, f.failed, "apt-get install default-jre-headless")
	require.Empty(t, f.skipped)
}

func TestPrivateFailsOnABadConfig(t *testing.T) {
	var f fakeTB
	require.False(t, f.run(func(tb TB) { Private(tb, Config{Servers: 99}) }))
	require.Contains(t, f.failed, "Servers is 99")
}
