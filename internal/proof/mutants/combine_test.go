package mutants

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program has functions of each form that a combined build must call in the place of another.
const program = `package main

import "fmt"

const unit = 1

type box[T any] struct{ v T }

func (b *box[T]) value() T { return b.v }

func (box[T]) kind(_ int, more ...string) string { return fmt.Sprint("box ", more) }

func first[T, U any](t T, _ U) T { return t }

func show(int, string) { fmt.Print("shown ") }

func (b box[T]) both() (x T, err error) { return b.v, nil }

func init() { fmt.Print("init ") }

func main() {
	b := &box[int]{3}
	x, err := b.both()
	show(unit, "")
	fmt.Println(b.value(), b.kind(1, "a", "b"), first[string, int]("f", 1), x, err)
}
`

// TestCombinedMutantsAreSwitched compares a combined build of many mutants with a build of each.
func TestCombinedMutantsAreSwitched(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{"go.mod": "module example.test\n\ngo 1.26\n", "main.go": program} {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
	}
	change := func(old, new string) Change { return Change{File: "main.go", Old: old, New: new} }
	list := []Change{
		change("T { return b.v }", "T { var none T; return none }"),
		change(`fmt.Sprint("box ", more)`, `fmt.Sprint("other ", len(more))`),
		change("return t }", "var none T; return none }"),
		change(`fmt.Print("shown ")`, `fmt.Print("hidden ")`),
		change("return b.v, nil", "x = b.v; return x, fmt.Errorf(\"failed\")"),
		change(`fmt.Print("init ")`, ``),
		change("const unit = 1", "const unit = 2"),
		change("first[T, U any](t T, _ U)", "first[T, U any](t T, more U)"),
		change(`fmt.Print("shown ")`, ``),
	}
	overlay, apart, err := Combine(root, dir, list)
	require.NoError(t, err)
	require.Equal(t, []int{6, 7}, apart, "a constant, a signature")
	run := func(number int, overlay string) string {
		command := exec.Command("go", "run", "-overlay", overlay, ".")
		command.Dir, command.Env = root, append(os.Environ(), fmt.Sprintf("%s=%d", SwitchVariable, number))
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Equal(t, "init shown 3 box [a b] f 3 <nil>\n", run(0, overlay))
	for i, want := range map[int]string{
		0: "init shown 0 box [a b] f 3 <nil>", 1: "init shown 3 other 2 f 3 <nil>",
		2: "init shown 3 box [a b]  3 <nil>", 3: "init hidden 3 box [a b] f 3 <nil>",
		4: "init shown 3 box [a b] f 3 failed", 5: "shown 3 box [a b] f 3 <nil>", 8: "init 3 box [a b] f 3 <nil>",
	} {
		assert.Equal(t, want, strings.TrimSuffix(run(i+1, overlay), "\n"))
	}
	_, _, err = Combine(root, dir, []Change{change("no such text", "")})
	require.ErrorContains(t, err, "occurs 0 times")
	_, _, err = Combine(root, dir, []Change{change("T { return b.v }", "T { return")})
	require.ErrorContains(t, err, "main.go")
}
