package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/zktest"
)

// FuzzParsePermits reads records that anybody may have written. What is accepted can be used and
// survives being written again, with fields that this release does not know.
func FuzzParsePermits(f *testing.F) {
	for _, data := range []string{
		`{"v":1,"declared":3,"permits":5}`, `{"v":1,"declared":3,"permits":5,"later":{"a":[1,2]}}`,
		`{"v":2,"declared":3,"permits":5}`,
		`{"v":1,"declared":0,"permits":-5}`, `{"v":1,"declared":1e3,"permits":99999999999999999999}`,
		`{"v":null,"declared":null,"permits":null}`,
		`{"V":1,"Declared":3,"Permits":5}`, `{"v":1,"declared":3,"permits":"5"}`, "{}", "[]", "null", "",
		"\x00\x00\x00\x03", "10.0.0.1",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePermitRecord(data)
		if err != nil {
			return
		}
		require.Positive(t, p.Declared)
		require.Positive(t, p.Permits)
		again, err := parsePermitRecord(p.encode())
		require.NoError(t, err)
		require.Equal(t, [2]int{p.Declared, p.Permits}, [2]int{again.Declared, again.Permits})
		require.Len(t, again.unknown, len(p.unknown), "unknown fields survive")
		for name, value := range p.unknown {
			require.JSONEq(t, string(value), string(again.unknown[name]))
		}
		require.Equal(t, p.Permits, waitline.PermitsIn(p.encode()), "Inspect tells the same number")
	})
}

func TestBadPermitRecordIsRefusedByName(t *testing.T) {
	for data, says := range map[string]string{
		"10.0.0.1": "the record of the permits", `{"v":1,"declared":3}`: "must be more than 0",
		`{"v":1,"declared":"3","permits":3}`: "declared",
		`{"v":2,"declared":3,"permits":3}`:   "newer release",
		`{"v":1,"declared":3,"permits":0}`:   "must be more than 0",
	} {
		_, err := parsePermitRecord([]byte(data))
		require.ErrorContains(t, err, says, data)
	}
}

// TestPermitsAreReturnedInTheTimeOfACleanup: the servers do not delete them, and the caller's
// context does not end.
func TestPermitsAreReturnedInTheTimeOfACleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		client := server.Member(t, "a", framework.Config{SessionTimeout: 9 * time.Second}).Client
		s := NewSemaphore(client, "/a", 1)
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		created, err := primitives.Of(session).CreateProtected(t.Context(),
			primitives.ProtectedCreate{Dir: s.leases, Name: leaseName})
		require.NoError(t, err)
		refused := server.Throttle(1000, zktest.Match{Op: zktest.OpDelete})
		began := time.Now()
		err = s.returnPermits(t.Context(), session, created.Nodes, errRecordReplaced)
		require.ErrorIs(t, err, waitline.ErrPlaceLost)
		require.Equal(t, client.Config().CleanupTimeout, time.Since(began))
		refused.Cancel()
	})
}
