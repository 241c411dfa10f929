package architecture

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestNothingOfTheUsersIsCalledUnderALock(t *testing.T) {
	files, err := loadModule()
	require.NoError(t, err)
	wrong, err := Locked(thisModule, files)
	require.NoError(t, err)
	if len(wrong) > 0 {
		t.Errorf("\n%s", strings.Join(wrong, "\n"))
	}
}

func TestCallsUnderALockAreFound(t *testing.T) {
	for _, c := range []struct {
		body  string
		lines []int
	}{
		{"func (a A) f() { a.mu.Lock(); a.log.Info(\"\"); a.mu.Unlock() }", []int{2}},
		{"func (a A) f() { a.mu.Lock(); a.mu.Unlock(); a.log.Info(\"\") }", nil},
		{"func (a A) f() {\n\ta.mu.RLock(); defer a.mu.RUnlock()\n\tif a.b {\n\t\ta.c.Logger().Warn(\"\")\n\t}\n}",
			[]int{5}},
		{"func (a A) f() { a.mu.Lock(); if a.b { a.mu.Unlock(); a.log.Info(\"\"); return }; a.mu.Unlock() }", nil},
		{"func (a A) f() { a.mu.Lock(); go a.g(); a.mu.Unlock() }\nfunc (a A) g() { a.log.Info(\"\") }", nil},
		{"func (a A) f() { a.mu.Lock(); a.g(); a.mu.Unlock() }\nfunc (a A) g() { h(a) }\nfunc h(a A) { a.onWait(1) }",
			[]int{2}},
		{"// Guarded by mu.\nfunc (a A) f() { a.n.Add(ctx, 1) }", []int{3}},
		{"func (a A) f() { a.mu.Lock(); a.n.Add(1); a.mu.Unlock() }", nil},
		{"func (a A) f() { g(func() { a.mu.Lock(); defer a.mu.Unlock(); h(func() { a.n.Add(ctx, 1) }) }) }", nil},
		{"func (a A) f() { g(func() { h(func() { a.mu.Lock(); defer a.mu.Unlock(); a.n.Add(ctx, 1) }) }) }", []int{2}},
	} {
		module := fstest.MapFS{"locks/a.go": {Data: []byte("package locks; type A struct{}\n" + c.body)}}
		files, err := Load(module)
		require.NoError(t, err)
		wrong, err := Locked(module, files)
		require.NoError(t, err)
		require.Len(t, wrong, len(c.lines), c.body)
		for i, line := range c.lines {
			require.Contains(t, wrong[i], fmt.Sprintf("locks/a.go:%d: ", line), c.body)
		}
	}
}
