package architecture

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestWhatOnlyTellsIsAValue(t *testing.T) {
	found, err := PointersToReports(thisModule)
	require.NoError(t, err)
	require.Equal(t, []string{
		"election: Election.Follow", // yields nil while nobody leads
	}, found, "return a value (docs/adr/0147), unless nil says something")
}

func TestPointersToReportsAreFound(t *testing.T) {
	found, err := PointersToReports(fstest.MapFS{"locks/a.go": {Data: []byte(`package locks
import "iter"
type Report struct{ Path string }
func (Report) MarshalJSON() ([]byte, error) { return nil, nil }
type Lease struct{}
func (*Lease) Release() {}
type Held struct{ *Lease }
type none struct{}
func Inspect() (*Report, error) { return nil, nil }
func List() iter.Seq2[*Report, error] { return nil }
func All() []*Report { return nil }
func Fine() (Report, error) { return Report{}, nil }
func Lock() *Lease { return nil }
func Hold() *Held { return nil }
func Visitor() func(*Report) { return nil }
func Take(*Report) {}
func inspect() *Report { return nil }
func (none) Inspect() *Report { return nil }
func (*Lease) Inspect() *Report { return nil }
`)}})
	require.NoError(t, err)
	require.Equal(t, []string{"locks: Inspect", "locks: List", "locks: All", "locks: Lease.Inspect"}, found)
}
