package workflow

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRecords: anyone may write below a ledger.
func FuzzRecords(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", `{"v":1}`, `{"v":2,"kind":"ledger"}`, `{"v":1,"kind":"ledger","id":"x"}`,
		`{"v":1,"result":null,"token":7,"attempts":1,"ms":5,"by":"x"}`, `{"v":1,"result":{"a":[1]},"token":-1}`, `{"v":1,"result":"\u202e"}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		known := func(err error) {
			require.True(t, errors.Is(err, ErrBadRecord) || errors.Is(err, ErrNewerRecord) || errors.Is(err, ErrForeign), "%v", err)
		}
		header, err := parseLedger("/a", data)
		if err != nil {
			known(err)
		} else {
			again, err := encodeRecord(header)
			require.NoError(t, err)
			same, err := parseLedger("/a", again)
			require.NoError(t, err)
			require.Equal(t, header, same)
		}
		step, err := parseStep("/a/step-a", data)
		if err != nil {
			known(err)
			return
		}
		again, err := encodeRecord(step)
		require.NoError(t, err)
		same, err := parseStep("/a/step-a", again)
		require.NoError(t, err)
		require.JSONEq(t, string(step.Result), string(same.Result))
		require.Equal(t, step.Token, same.Token)
	})
}
