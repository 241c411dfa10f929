package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func FuzzDecodeRecord(f *testing.F) {
	text := "value"
	for _, r := range []storedRecord{{ID: "i", By: "a", Note: "n", Text: &text},
		{ID: "i", Bytes: []byte{0xff}, Foreign: 7, Written: time.Unix(1, 0)}} {
		b, err := r.encode()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := decodeRecord(b, framework.Stat{Czxid: 9})
		if r.Err != nil {
			require.True(t, r.Version == 9 && r.Data == nil)
			return
		}
		require.True(t, r.Foreign || r.Version == 9)
	})
}
