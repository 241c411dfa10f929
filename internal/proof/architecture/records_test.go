package architecture

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestNoExportedTypeIsStored(t *testing.T) {
	found, err := StoredTypes(thisModule)
	require.NoError(t, err)
	require.Empty(t, found, "store a type of its own, and texts of its own (stored.Texts): docs/adr/0146")
}

func TestStoredExportedTypesAreFound(t *testing.T) {
	found, err := StoredTypes(fstest.MapFS{
		"election/a.go": {Data: []byte("package election\ntype Metadata map[string]string")},
		"locks/a.go": {Data: []byte(`package locks
import (
	"` + Module + `/election"
	"` + Module + `/internal/recipe"
)
type State string
type Report struct { Path string }
type record struct {
	State State ` + "`json:\"state\"`" + `
	Left State ` + "`json:\"-\"`" + `
	own State
	Of map[string]election.Metadata
}
type list struct { Reports []*inner ` + "`json:\"reports\"`" + ` }
type inner struct { Report }
type kept struct { Report }
func (k kept) MarshalJSON() ([]byte, error) { return recipe.Unknown(nil).EncodeFields(wire{k.Path}) }
type wire struct { Path string ` + "`json:\"path\"`" + ` }
type all struct { Kept []kept ` + "`json:\"kept\"`" + ` }
type inMemory struct { State State }
func read(data []byte) (r Report, err error) {
	_, err = recipe.Decode(data, 1, &r)
	return r, err
}
`)}})
	require.NoError(t, err)
	require.Equal(t, []string{"locks: Report", "locks: inner.Report: Report", "locks: record.Of: Metadata",
		"locks: record.State: State"}, found)
}
