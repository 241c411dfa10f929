package waitgraph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzParseRecord reads records that anybody may have written, by a client with a root.
func FuzzParseRecord(f *testing.F) {
	for _, data := range []string{
		`{"v":1,"lock":"/app/a","node":"/app/a/_c_1-lock-0000000000","zxid":3,` +
			`"held":[{"lock":"/app/b","node":"/app/b/n","zxid":4}],"seen":5}`,
		`{"v":1,"lock":"/app","node":"/apple","held":[{"lock":"/x","node":"/y","zxid":1}]}`, `{"v":9,"lock":"/app/a"}`,
		"{}", "null", "", "[]",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord(data, "/app")
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(r.Held), MaxHeld)
		for _, path := range []string{r.Lock, WithRoot("/app", r.Lock)} {
			require.NoError(t, framework.ValidatePath(path))
		}
	})
}

// TestTheTimeOfARecordCanBeEncoded: other clients may have written any time.
func TestTheTimeOfARecordCanBeEncoded(t *testing.T) {
	for _, since := range []string{"0000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"} {
		r, err := parseRecord([]byte(`{"v":1,"lock":"/a","held":[],"since":"`+since+`"}`), "/")
		require.NoError(t, err)
		r.Since = r.Since.UTC()
		require.NotPanics(t, func() { r.encode() })
	}
}
