//go:build unix

package cli

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func TestAccessIsJudgedByWhatIsPresented(t *testing.T) {
	const all, some = framework.PermAll, framework.PermRead | framework.PermCreate
	hash := "ann:Z2ZdEO1ERJ0hzNcY0r1RZcuWKPs="
	for name, c := range map[string]struct {
		auth     string
		entry    framework.ACL
		own      framework.Perms
		possible framework.Perms
	}{
		"everybody": {"", framework.ACL{Perms: some, Scheme: "world", ID: "anyone"}, some,
			0},
		"by address": {"", framework.ACL{Perms: all, Scheme: "ip", ID: "10.0.0.0/8"}, 0,
			all},
		"its digest": {"ann:secret",
			framework.ACL{Perms: all, Scheme: "digest", ID: digestID("ann:secret")}, all, 0},
		"a user with another password": {"ann:secret", framework.ACL{Perms: all, Scheme: "digest", ID: hash},
			0, 0},
		"a digest that is not shown": {"ann:secret",
			framework.ACL{Perms: some, Scheme: "digest", ID: "ann:x"}, 0, some},
		"one that would be shown to its owner": {"ann:secret",
			framework.ACL{Perms: all, Scheme: "digest", ID: "ann:x"}, 0, 0},
		"another user": {"ann:secret",
			framework.ACL{Perms: all, Scheme: "digest", ID: "bob:x"}, 0, 0},
		"no credentials": {"", framework.ACL{Perms: all, Scheme: "digest", ID: "ann:x"}, 0, 0},
		"a certificate, where there is none": {"ann:secret",
			framework.ACL{Perms: all, Scheme: "x509", ID: "CN=ann"}, 0, 0},
		"a scheme that this client does not have": {"ann:secret", framework.ACL{Perms: all, Scheme: "sasl", ID: "ann"},
			0, 0},
	} {
		var cfg framework.Config
		if c.auth != "" {
			cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte(c.auth)}}
		}
		a := judgeAccess(cfg, "/", []framework.ACL{c.entry})
		require.Equal(t, c.own, a.own, name)
		require.Equal(t, c.possible, a.possible, name)
		require.Equal(t, c.own|c.possible == 0, len(a.others) == 1, name)
		require.Equal(t, all&^(c.own|c.possible), a.Lacks(all), name)
	}
	x509 := framework.ACL{Perms: all, Scheme: "x509", ID: "CN=ann"}
	require.Equal(t, all, judgeAccess(framework.Config{TLS: &tls.Config{Certificates: make([]tls.Certificate, 1)}}, "/",
		[]framework.ACL{x509}).possible)
	custom := framework.ACL{Perms: some, Scheme: "custom", ID: "x"}
	require.Equal(t, some, judgeAccess(
		framework.Config{Auth: []framework.Credential{{Scheme: "custom", Auth: []byte("x")}}}, "/",
		[]framework.ACL{custom}).possible)
}
