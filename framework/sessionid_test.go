package framework_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzSessionID reads what reports print, and anything else.
func FuzzSessionID(f *testing.F) {
	for _, text := range []string{"0x0", "0x100000abc", "0xffffffffffffffff", "-1", "0b1", "1_000", "0x",
		"session", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, again framework.SessionID
		if s.UnmarshalText(text) != nil {
			return
		}
		printed, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(printed, &again))
		require.Equal(t, s, again)
	})
}
