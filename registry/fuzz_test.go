package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzInstance: any data of a node is an instance that can be written again, or an error.
func FuzzInstance(f *testing.F) {
	for _, data := range []string{"", "null", "{}", `{"address":"a","port":5}`,
		`{"address":"a","port":5,"payload":{"weight":7,"x":1},"enabled":false}`,
		`{"address":"::1","sslPort":5,"payload":"text"}`,
		`{"address":"a","port":5,"payload":{"weight":0.5,"metadata":{"a":"b","n":1},"disabled":false}}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := decodeInstance("service", "id", data)
		if err != nil {
			require.ErrorIs(t, err, framework.ErrBadRecord)
			return
		}
		require.NoError(t, i.checkFields())
		again, err := decodeInstance("service", "id", encodeInstance(i, data))
		require.NoError(t, err)
		if i.Disabled == "" || i.Disabled != "disabled" {
			require.Equal(t, i.Disabled, again.Disabled)
		}
		require.Equal(t, i.HostPort(true), again.HostPort(true))
		require.Equal(t, i.Weight, again.Weight)
		require.Equal(t, i.Metadata, again.Metadata)
	})
}
