package ids

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSequence: any data of a node is a sequence that can be written again, or an error.
func FuzzSequence(f *testing.F) {
	for _, data := range []string{"", "null", "{}", `{"v":1,"kind":"sequence","next":5}`,
		`{"v":1,"kind":"sequence","next":-5}`, `{"v":1,"kind":"sequence","next":5,"x":[1]}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseSequence("/p", data)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, r.Next, int64(0))
		again, err := parseSequence("/p", r.encode())
		require.NoError(t, err)
		require.Equal(t, r.Next, again.Next)
	})
}

// FuzzSlot: any data of a node is a slot that can be written again, or an error.
func FuzzSlot(f *testing.F) {
	for _, data := range []string{"", "null", "{}", `{"v":1,"kind":"slot","until":5}`,
		`{"v":1,"kind":"slot","until":-5}`, `{"v":1,"kind":"slot","until":5,"x":[1]}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseSlot("/p", data)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, r.Until, int64(0))
		again, err := parseSlot("/p", r.encode())
		require.NoError(t, err)
		require.Equal(t, r.Until, again.Until)
	})
}
