package zkserver

import (
	"crypto/sha1"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func TestIPv4AddressesParseAsInJava(t *testing.T) {
	for expr, covered := range map[string]bool{
		"127.0.0.1": true, "127.0.0.01": true, "+127.-0.000.1": true, "127.9.9.9/8": true, "1.2.3.4/0": true,
		"127.0.0.1/+032": true,
		"127.0.0.2":      false, "127.0.0.0/32": false,
	} {
		require.True(t, validIPRange(expr), expr)
		require.Equal(t, covered, inIPRange("127.0.0.1", expr), expr)
	}
	for _, expr := range []string{
		"", "127", "127.0.0", "127.0.0.", "127.0.0.1.1", "127.0.0.256", "127.0.0.-1", "127.0.0.1 ", "127.0.0.0x1",
		"::1", "::ffff:127.0.0.1",
		"127.0.0.1/", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/8/8", "/8",
	} {
		require.False(t, validIPRange(expr), expr)
		require.False(t, inIPRange("127.0.0.1", expr), expr)
	}
}

// TestDigestsOfNonASCIIUsersMatch: the server gets the user of an ACL entry as a string, and that
// of an authentication as bytes. Both must give the same identity.
func TestDigestsOfNonASCIIUsersMatch(t *testing.T) {
	for _, user := range []string{"alice", "\u00e4", "\U0001f600"} {
		inBubble(t, func(t *testing.T, _ *Server, st *testClients) {
			a := st.joinClient("a")
			a.mustCall(wire.OpAuth, authRequest("digest", user+":secret"))
			sum := sha1.Sum([]byte(user + ":secret"))
			own := aclEntry(wire.PermAll, "digest", user+":"+base64.StdEncoding.EncodeToString(sum[:]))
			a.mustCall(wire.OpCreate, &wire.CreateRequest{Path: "/own", ACL: []wire.ACL{own}})
			a.mustCall(wire.OpGetData, readRequest("/own"))
		})
	}
}
