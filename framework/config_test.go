package framework_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func TestBadConfigIsRefusedByName(t *testing.T) {
	one := []string{"zk:2181"}
	for want, cfg := range map[string]framework.Config{
		"no servers given":                              {},
		`server "" is not host:port`:                    {Servers: []string{""}},
		`server ":2181" is not host:port`:               {Servers: []string{":2181"}},
		`server "zk:0" is not host:port`:                {Servers: []string{"zk:0"}},
		`server "zk:http" is not host:port`:             {Servers: []string{"zk:http"}},
		"SessionTimeout is -1s: it must be positive":    {Servers: one, SessionTimeout: -time.Second},
		"SessionTimeout is 1µs: it must be between 1ms": {Servers: one, SessionTimeout: time.Microsecond},
		"DialTimeout is -1s":                            {Servers: one, DialTimeout: -time.Second},
		"RetryMax 1s is below RetryBase 2s":             {Servers: one, RetryBase: 2 * time.Second, RetryMax: time.Second},
		`Root: invalid path "x": it must begin with a`:  {Servers: one, Root: "x"},
		`Root: invalid path "/x/": empty element`:       {Servers: one, Root: "/x/"},
		"Auth[0] has no scheme":                         {Servers: one, Auth: []framework.Credential{{}}},
	} {
		err := cfg.Validate()
		require.ErrorIs(t, err, framework.ErrInvalidConfig, want)
		require.ErrorContains(t, err, want)
		_, err = framework.Connect(t.Context(), cfg)
		require.ErrorContains(t, err, want, "Connect says so at once")
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	cfg := framework.Config{Servers: []string{"zk"}}
	for _, o := range []framework.Option{framework.WithLogger(nil), framework.WithDialer(nil), framework.WithClock(nil)} {
		_, err := framework.New(cfg, o)
		require.ErrorIs(t, err, framework.ErrInvalidConfig)
		require.ErrorContains(t, err, "is nil")
	}
}

func TestDefaults(t *testing.T) {
	cfg := framework.Config{Servers: []string{"zk", "zk2:99", "::1"}}.WithDefaults()
	require.NoError(t, cfg.Validate())
	require.Equal(t, []string{"zk:2181", "zk2:99", "[::1]:2181"}, cfg.Servers)
	require.Equal(t, 10*time.Second, cfg.SessionTimeout)
	require.Equal(t, framework.Open(), cfg.ACL)
	require.NotEmpty(t, cfg.Identity)
	cfg = framework.Config{Servers: cfg.Servers, Auth: []framework.Credential{{Scheme: "digest"}}}.WithDefaults()
	require.Equal(t, framework.CreatorOnly(), cfg.ACL)
	require.Equal(t, framework.CreatorOnly(), cfg.ParentACL)
}

func TestConfigFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte("bob:s3cret\n"), 0o600))
	t.Setenv(framework.EnvServers, " a:1, b ,,")
	t.Setenv(framework.EnvSessionTimeout, "30s")
	t.Setenv(framework.EnvRoot, "/x")
	t.Setenv(framework.EnvAuthFile, file)
	cfg, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b"}, cfg.Servers)
	require.Equal(t, 30*time.Second, cfg.SessionTimeout)
	require.Equal(t, "bob:s3cret", string(cfg.Auth[0].Auth))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), "s3cret")

	for name, value := range map[string]string{
		framework.EnvSessionTimeout: "soon", framework.EnvAuthFile: "/no/such/file", framework.EnvTLSCA: "/no/such/file",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := framework.ConfigFromEnv()
			require.ErrorIs(t, err, framework.ErrInvalidConfig)
			require.ErrorContains(t, err, name)
		})
	}
}
