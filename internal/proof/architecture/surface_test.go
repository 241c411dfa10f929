package architecture

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestPublicPackagesKeepTheirBudgets(t *testing.T) {
	wrong, err := Surface(thisModule)
	require.NoError(t, err)
	if len(wrong) > 0 {
		t.Errorf("\n%s", strings.Join(wrong, "\n"))
	}
	want := slices.Concat(public, modules, []string{".", "ui", "zktest", "queue/curatorqueue"})
	slices.Sort(want)
	require.Equal(t, want, slices.Sorted(maps.Keys(budget)), "each public package has a budget")
}

// TestTheDecisionHasTheBudgets compares the table of ADR 120 with the budgets.
func TestTheDecisionHasTheBudgets(t *testing.T) {
	text, err := fs.ReadFile(thisModule, "docs/adr/0120-a-budget-of-public-names.md")
	require.NoError(t, err)
	want, sum := map[string]int{}, 0
	for dir, most := range budget {
		want[dir] = most
		sum += most
	}
	want["lockstep"], want["all"] = want["."], sum
	delete(want, ".")
	got := map[string]int{}
	row := regexp.MustCompile("(?m)^\\| `?([a-z/]+)`? \\| ([0-9]+) \\|")
	for _, row := range row.FindAllStringSubmatch(string(text), -1) {
		got[row[1]], err = strconv.Atoi(row[2])
		require.NoError(t, err)
	}
	require.Equal(t, want, got)
}

func TestExportedNamesAndInternalTypesAreFound(t *testing.T) {
	files, _, err := parseFiles(fstest.MapFS{"locks/a.go": {Data: []byte(`package locks
import (
	"example.com/internal/hidden"
	other "example.com/internal/renamed"
	"example.com/shown"
)
type Alias = hidden.Type
type Struct struct { own hidden.Type; Shown shown.Type }
type Fields struct { Own []*hidden.Type }
type Embeds struct { hidden.Type }
type Generic[T other.Type] struct{}
type Interface interface { Do(hidden.Type) }
type none struct{}
func (none) Exported(hidden.Type) {}
func (*Struct) Method() hidden.Type { return hidden.Value }
func (Generic[T]) Returns() (a, b other.Type) { return }
func (Generic[T]) returns() {}
func Func(func(map[string]hidden.Type)) {}
func Fine(shown.Type) error { return hidden.Err }
var Value = hidden.Value
var Declared hidden.Type
const One, two = 1, 2
`)}}, "locks")
	require.NoError(t, err)
	names, internal := surfaceOf(files)
	require.Equal(t, []string{"Alias", "Struct", "Fields", "Embeds", "Generic", "Interface", "Struct.Method",
		"Generic.Returns", "Func", "Fine", "Value", "Declared", "One"}, names)
	require.Equal(t, []string{"Alias", "Fields", "Embeds", "Generic", "Interface", "Struct.Method",
		"Generic.Returns", "Func", "Declared"}, internal)
}

func TestIntegersWithoutStringAreFound(t *testing.T) {
	files, _, err := parseFiles(fstest.MapFS{"locks/a.go": {Data: []byte(`package locks
type Mode int
type Kind uint8
func (k Kind) String() string { return "" }
type Name string
type own int
type Alias = int
`)}}, "locks")
	require.NoError(t, err)
	names, _ := surfaceOf(files)
	require.Equal(t, []string{"Mode"}, integersWithoutString(files, names))
}
