package queuelayout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeIn(f *testing.F) {
	f.Add([]byte("12"))
	f.Add([]byte("12 line"))
	f.Add([]byte("-1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, line, err := DecodeIn(data)
		if err == nil {
			again, stillLine, err := DecodeIn(EncodeIn(in, line))
			require.NoError(t, err)
			require.Equal(t, in, again)
			require.Equal(t, line, stillLine)
		}
		if n, err := DecodePlaces(data); err == nil {
			require.GreaterOrEqual(t, n, 0)
		}
	})
}
