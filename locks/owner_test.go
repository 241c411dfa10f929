package locks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"v":1,"owner":"a","host":"h","pid":1,"since":"2026-01-01T00:00:00Z","later":true}`))
	f.Add([]byte("192.0.2.1"))
	f.Add([]byte(" {\"V\":1,\"revoked\":false}\n"))
	f.Add([]byte("__REVOKE__"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := parseOwner(data); ok {
			require.GreaterOrEqual(t, o.Version, 1)
			revoked, ok := parseOwner(withRevocation(data))
			o.Revoked = true
			require.True(t, ok)
			require.Equal(t, o, revoked)
			require.Equal(t, withRevocation(data), withRevocation(withRevocation(data)))
		}
		require.True(t, isRevoked(withRevocation(data)))
	})
}

// TestTheTimeOfAnOwnerCanBeEncoded: other clients may have written any time.
func TestTheTimeOfAnOwnerCanBeEncoded(t *testing.T) {
	for _, since := range []string{"0000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"} {
		e := entryOf("/a/n", MutexLock, []byte(`{"v":1,"owner":"a","since":"`+since+`"}`), framework.Stat{})
		e.Since = e.Since.UTC()
		_, err := json.Marshal(e)
		require.NoError(t, err, since)
	}
}

// TestAnOwnerIsStoredAsText: JSON would change other bytes, and readers would see another identity
// than the client has.
func TestAnOwnerIsStoredAsText(t *testing.T) {
	client, err := framework.New(framework.Config{Servers: []string{"127.0.0.1:1"}, Identity: "a\xff"})
	require.NoError(t, err)
	o, ok := parseOwner(encodeOwner(t.Context(), client))
	require.True(t, ok)
	require.Equal(t, client.Config().Identity, o.Identity)
	require.NoError(t, client.Close(t.Context()))
}
