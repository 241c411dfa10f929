package architecture

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestFileCyclesAndHiddenMembers(t *testing.T) {
	files, err := loadModule()
	require.NoError(t, err)
	wrong, err := Inside(thisModule, files)
	require.NoError(t, err)
	if len(wrong) > 0 {
		t.Errorf("\n%s", strings.Join(wrong, "\n"))
	}
}

func TestFileCyclesAreFound(t *testing.T) {
	module := fstest.MapFS{
		"locks/a.go": {Data: []byte(
			"package locks\nimport \"context\"\ntype a struct{ b b }\nfunc (a a) do(context.Context) { a.b.run() }\n")},
		"locks/b.go":      {Data: []byte("package locks\ntype b struct{}\nfunc (b) run() { make() }\n")},
		"locks/c.go":      {Data: []byte("package locks\nfunc make() { a{}.do(nil) }\n")},
		"locks/d.go":      {Data: []byte("package locks\nvar d = a{}\n")},
		"locks/d_test.go": {Data: []byte("package locks\nfunc e() { _ = d }\n")},
	}
	p, err := parsePackage(module, "locks")
	require.NoError(t, err)
	require.Equal(t, []string{"a.go", "b.go", "c.go"}, p.largestCycle())
	module["locks/c.go"].Data = []byte("package locks\nfunc make() {}\n")
	p, err = parsePackage(module, "locks")
	require.NoError(t, err)
	require.Len(t, p.largestCycle(), 1)
}

func TestHiddenMembersAreFound(t *testing.T) {
	module := fstest.MapFS{"locks/a.go": {Data: []byte(`package locks
type inner struct{ mu, ctx int }
func (inner) run() {}
func (inner) stop() {}
type outer struct {
	*inner
	ctx int
}
func (outer) run() {}
type other struct{ in inner }
func (other) run() {}
`)}}
	p, err := parsePackage(module, "locks")
	require.NoError(t, err)
	require.Equal(t, []string{"locks: outer.ctx", "locks: outer.run"}, p.hides)
}
