package framework_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/zktest"
)

func withAuth(cfg framework.Config, credentials string) framework.Config {
	cfg.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte(credentials)}}
	return cfg
}

// TestAnACLIsRead: as the servers store it to those who may change it, without hashes to those who
// may read the node, and not at all to others. internal/proof/conformance has the servers' side of
// it, on real ones too.
func TestAnACLIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		cfg := config
		cfg.Root = "/team"
		anyone := framework.ACL{Perms: framework.PermRead | framework.PermCreate, Scheme: "world", ID: "anyone"}
		cfg.ACL = append(framework.CreatorOnlyACL(), anyone)
		owner := zk.Member(t, "owner", withAuth(cfg, "ann:secret"))
		require.NoError(t, owner.MakeDirs(ctx, "/closed"))
		require.NoError(t, owner.Create(ctx, "/readable", []byte("x"), framework.Persistent))

		acl, stat, err := owner.ACL(ctx, "/readable")
		require.NoError(t, err)
		require.EqualValues(t, 1, stat.DataLength)
		require.Len(t, acl, 2)
		require.Equal(t, anyone, acl[1])
		require.Equal(t, framework.PermAll, acl[0].Perms)
		require.Regexp(t, `^ann:\S{27}=$`, acl[0].ID)
		require.Equal(t, "digest:ann: all", acl[0].String())
		require.Equal(t, "world:anyone: read, create", acl[1].String())
		require.Equal(t, "world:anyone: none", framework.ACL{Scheme: "world", ID: "anyone"}.String())

		reader := sdkmetric.NewManualReader()
		stranger := zk.Member(t, "stranger", withAuth(cfg, "bob:secret"),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		zk.DropReply(1, zktest.Match{Func: func(r zktest.Request) bool { return r.Op.String() == "getACL" }})
		acl, _, err = stranger.ACL(ctx, "/readable")
		require.NoError(t, err, "it is read again when its answer is lost")
		require.Equal(t, []framework.ACL{{Perms: framework.PermAll, Scheme: "digest", ID: "ann:x"}, anyone}, acl)

		_, _, err = stranger.ACL(ctx, "/closed")
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.EqualError(t, err, "read ACL of /closed: no permission")
		_, _, err = stranger.ACL(ctx, "/none")
		require.ErrorIs(t, err, framework.ErrNoNode)
		_, _, err = stranger.ACL(ctx, "none")
		require.ErrorIs(t, err, framework.ErrInvalid)
		counted := metricstest.Read(t, reader)
		require.EqualValues(t, 1, counted["lockstep.requests getACL answered"])
		require.EqualValues(t, 1, counted["lockstep.requests getACL lost"])
		require.EqualValues(t, 2, counted["lockstep.requests getACL refused"])
	})
}

// TestAnACLIsReplaced, also when the answer is lost; a client that may not do so changes nothing.
func TestAnACLIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		cfg := config
		cfg.ACL = framework.CreatorOnlyACL()
		ann := zk.Member(t, "ann", withAuth(cfg, "ann:secret"))
		bob := zk.Member(t, "bob", withAuth(cfg, "bob:secret"))
		require.NoError(t, ann.Create(ctx, "/a", []byte("x"), framework.Persistent))
		require.ErrorIs(t, bob.SetACL(ctx, "/a", framework.OpenACL()), framework.ErrNoAuth)
		_, _, err := bob.Get(ctx, "/a")
		require.ErrorIs(t, err, framework.ErrNoAuth)

		zk.DropReply(1, zktest.Match{Func: func(r zktest.Request) bool { return r.Op.String() == "setACL" }})
		require.NoError(t, ann.SetACL(ctx, "/a", framework.OpenACL()), "it is sent again")
		data, _, err := bob.Get(ctx, "/a")
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
		require.NoError(t, bob.SetACL(ctx, "/a", framework.CreatorOnlyACL()), "anyone may now")
		_, _, err = ann.Get(ctx, "/a")
		require.ErrorIs(t, err, framework.ErrNoAuth)

		require.ErrorIs(t, bob.SetACL(ctx, "/a", nil), framework.ErrInvalid)
		require.ErrorIs(t, bob.SetACL(ctx, "/a", []framework.ACL{{Perms: 99, Scheme: "no", ID: "x"}}),
			framework.ErrInvalid)
		require.ErrorIs(t, bob.SetACL(ctx, "/none", framework.OpenACL()), framework.ErrNoNode)
		require.ErrorIs(t, bob.SetACL(ctx, "none", framework.OpenACL()), framework.ErrInvalid)
	})
}

// TestSyncOfAClientBringsItsServerUpToDate, also when its connection is cut meanwhile.
func TestSyncOfAClientBringsItsServerUpToDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		a, b := zk.Member(t, "a", config), zk.Member(t, "b", config)
		require.NoError(t, a.Create(ctx, "/a", []byte("old"), framework.Persistent))
		written := "old"
		for _, cut := range []bool{false, true} {
			before := written
			written += "er"
			_, err := zk.Lag(session(t, b).ID())
			require.NoError(t, err)
			_, err = a.Set(ctx, "/a", []byte(written), framework.AnyVersion)
			require.NoError(t, err)
			if cut {
				zk.DropReply(1, zktest.Match{Session: session(t, b).ID()})
			} else {
				data, _, err := b.Get(ctx, "/a")
				require.NoError(t, err)
				require.Equal(t, before, string(data), "its server lags behind")
			}
			require.NoError(t, b.Sync(ctx, "/a"))
			data, _, err := b.Get(ctx, "/a")
			require.NoError(t, err)
			require.Equal(t, written, string(data))
		}
		require.ErrorIs(t, b.Sync(ctx, "a"), framework.ErrInvalid)
	})
}

// TestACredentialIsHiddenInJSONToo: a program may log its whole Config.
func TestACredentialIsHiddenInJSONToo(t *testing.T) {
	c := framework.Credential{Scheme: "digest", Auth: []byte("user:hunter2")}
	cfg := framework.Config{Auth: []framework.Credential{c}}
	coded := base64.StdEncoding.EncodeToString(c.Auth)
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("connecting", "config", cfg, "credential", c, "pointer", &c)
	require.NotContains(t, out.String(), coded)
	b, err := json.Marshal(cfg.Auth)
	require.NoError(t, err)
	require.NotContains(t, string(b), coded)
}
