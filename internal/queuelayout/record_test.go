package queuelayout

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// goldenRecords are records of the first release: later ones must read them.
var goldenRecords = map[string]Record{
	`{"v":2,"recipe":"queue","order":"parallel"}`: {Recipe: Recipe, Order: "parallel"},
	`{"v":2,"recipe":"queue","order":"strict"}`:   {Recipe: Recipe, Order: "strict"},
	`{"v":2,"recipe":"queue","order":"strict","capacity":5,"dedup":60000}`: {Recipe: Recipe, Order: "strict",
		Capacity: 5, Dedup: 60000},
	`{"v":2,"recipe":"queue","order":"parallel",` +
		`"retry":{"min":1000,"max":60000,"factor":2,"jitter":0.5}}`: {Recipe: Recipe, Order: "parallel",
		Retry: &StoredRetry{Min: 1000, Max: 60000, Factor: 2, Jitter: 0.5}},
}

func TestRecordsOfThisReleaseAreRead(t *testing.T) {
	for text, want := range goldenRecords {
		got, err := DecodeRecord([]byte(text))
		require.NoError(t, err)
		again, err := got.Encode()
		require.NoError(t, err)
		require.Equal(t, text, string(again))
		got.unknown = nil
		if got.Retry != nil {
			got.Retry.unknown = nil
		}
		require.Equal(t, want, got)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"recipe":"queue","order":"strict"}`))
	f.Add([]byte(`{"v":2,"recipe":"queue"}`))
	f.Add([]byte(`{"v":2,"recipe":"queue","order":"strict","retry":{"min":1,"max":2,"factor":1.5,"jitter":1}}`))
	f.Add([]byte(`{"v":1,"permits":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRecord(data)
		if err != nil {
			require.True(t, errors.Is(err, ErrNotQueue) || errors.Is(err, framework.ErrNewer))
			return
		}
		again, err := r.Encode()
		require.NoError(t, err)
		back, err := DecodeRecord(again)
		require.NoError(t, err)
		require.Equal(t, r.Order, back.Order)
		second, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(second))
	})
}
