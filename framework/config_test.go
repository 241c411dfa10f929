package framework_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
)

func TestBadConfigIsRefusedByName(t *testing.T) {
	one := []string{"zk:2181"}
	for want, cfg := range map[string]framework.Config{
		"no servers given: set Config.Servers, or LOCKSTEP_SERVERS for ConfigFromEnv": {},
		`server "" has no host`:                         {Servers: []string{""}},
		`server ":2181" has no host`:                    {Servers: []string{":2181"}},
		`server "zk:0": port "0" is not a number`:       {Servers: []string{"zk:0"}},
		`server "zk:99999": port "99999" is not a`:      {Servers: []string{"zk:99999"}},
		`server "zk:http": port "http" is not a number`: {Servers: []string{"zk:http"}},
		`server "a,b" has several addresses`:            {Servers: []string{"a,b"}},
		`server "zk://a" begins with zk://`:             {Servers: []string{"zk://a"}},
		`write "zk:1" and set Root to "/app"`:           {Servers: []string{"zk:1/app"}},
		`give credentials in Config.Auth`:               {Servers: []string{"bob:s3cret@zk"}},
		"SessionTimeout is -1s: it must be positive":    {Servers: one, SessionTimeout: -time.Second},
		"SessionTimeout is 1µs: it must be between 1ms": {Servers: one, SessionTimeout: time.Microsecond},
		"DialTimeout is -1s":                            {Servers: one, DialTimeout: -time.Second},
		"RetryMax 1s is below RetryBase 2s": {Servers: one, RetryBase: 2 * time.Second,
			RetryMax: time.Second},
		`Root: invalid path "x": it must begin with a`: {Servers: one, Root: "x"},
		`Root: invalid path "/x/": empty element`:      {Servers: one, Root: "/x/"},
		"Auth[0] has no scheme":                        {Servers: one, Auth: []framework.Credential{{}}},
	} {
		err := cfg.Validate()
		require.ErrorIs(t, err, framework.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		_, err = framework.Connect(t.Context(), cfg)
		require.ErrorContains(t, err, want, "Connect says so at once")
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	cfg := framework.Config{Servers: []string{"zk"}}
	for _, o := range []framework.Option{framework.WithLogger(nil), framework.WithDialer(nil)} {
		_, err := framework.New(cfg, o)
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, "is nil")
	}
}

func TestDefaults(t *testing.T) {
	cfg := framework.Config{Servers: []string{"zk", "zk2:99", "::1"}}.WithDefaults()
	require.NoError(t, cfg.Validate())
	require.Equal(t, []string{"zk:2181", "zk2:99", "[::1]:2181"}, cfg.Servers)
	require.Equal(t, 30*time.Second, cfg.SessionTimeout)
	require.Equal(t, framework.OpenACL(), cfg.ACL)
	require.NotEmpty(t, cfg.Identity)
	require.Equal(t, "a\uFFFD", framework.Config{Identity: "a\xff"}.WithDefaults().Identity)
	cfg = framework.Config{Servers: cfg.Servers, Auth: []framework.Credential{{Scheme: "digest"}}}.WithDefaults()
	require.Equal(t, framework.CreatorOnlyACL(), cfg.ACL)
	require.Equal(t, framework.CreatorOnlyACL(), cfg.ParentACL)
}

func TestObserverMastersFromTheEnvironment(t *testing.T) {
	for value, want := range map[string]bool{"": false, "true": true, "1": true, "false": false} {
		t.Setenv(framework.EnvObserverMasters, value)
		cfg, err := framework.ConfigFromEnv()
		require.NoError(t, err)
		require.Equal(t, want, cfg.ObserverMasters, value)
	}
	t.Setenv(framework.EnvObserverMasters, "maybe")
	_, err := framework.ConfigFromEnv()
	require.ErrorIs(t, err, framework.ErrInvalid)
	require.ErrorContains(t, err, `LOCKSTEP_OBSERVER_MASTERS is "maybe"`)
}

func TestConnectionStrings(t *testing.T) {
	for list, want := range map[string]struct {
		servers []string
		root    string
	}{
		"":                         {},
		" zk1:2181 , zk2 ":         {[]string{"zk1:2181", "zk2"}, ""},
		"zk1,zk2:99/app/blue":      {[]string{"zk1", "zk2:99"}, "/app/blue"},
		"zk://zk1:2181,zk2/app":    {[]string{"zk1:2181", "zk2"}, "/app"},
		"zookeeper://[::1]:2181/":  {[]string{"[::1]:2181"}, ""},
		"zookeeper://10.0.0.1,zk2": {[]string{"10.0.0.1", "zk2"}, ""},
	} {
		servers, root, err := framework.ParseServers(list)
		require.NoError(t, err, list)
		require.Equal(t, want.servers, servers, list)
		require.Equal(t, want.root, root, list)
		if len(servers) > 0 {
			require.NoError(t, framework.Config{Servers: servers, Root: root}.Validate(), list)
		}
	}
	for list, says := range map[string]string{
		"zk1/app,zk2/app":      `servers "zk1/app,zk2/app"`,
		"zk1/app/":             `servers "zk1/app/"`,
		"/app":                 `servers "/app": there is no address before the path`,
		"http://zk1":           `server "http://zk1" begins with http://`,
		"zk1:2181:2181":        `server "zk1:2181:2181"`,
		"zk1,zk2:x":            `server "zk2:x": port "x" is not a number between 1 and 65535`,
		"zk://bob:s3cret@zk1/": "give credentials in Config.Auth",
	} {
		_, _, err := framework.ParseServers(list)
		require.ErrorIs(t, err, framework.ErrInvalid, list)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestARootIsGivenOnce(t *testing.T) {
	t.Setenv(framework.EnvServers, "zk1/app")
	cfg, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, "/app", cfg.Root)
	t.Setenv(framework.EnvRoot, "/other")
	_, err = framework.ConfigFromEnv()
	require.ErrorContains(t, err, "LOCKSTEP_SERVERS ends in /app, and LOCKSTEP_ROOT is /other: give one of them")
}

// TestAFileWithoutCredentialsIsRefused: without credentials, what a client creates would be open to
// everybody. The other variable does not help: it is not asked.
func TestAFileWithoutCredentialsIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	t.Setenv(framework.EnvAuthFile, file)
	for _, content := range []string{"", " \n", "no colon"} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		for _, auth := range []string{"", "bob:s3cret"} {
			t.Setenv(framework.EnvAuth, auth)
			_, err := framework.ConfigFromEnv()
			require.ErrorIs(t, err, framework.ErrInvalid)
			require.ErrorContains(t, err, "LOCKSTEP_AUTH_FILE: "+file)
		}
	}
	t.Setenv(framework.EnvAuthFile, "")
	cfg, err := framework.ConfigFromEnv()
	require.NoError(t, err)
	require.Len(t, cfg.Auth, 1)
}

func TestAFileOfCredentialsThatAllCanReadIsWarnedOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte("bob:s3cret"), 0o600))
	t.Setenv(framework.EnvServers, "a")
	t.Setenv(framework.EnvAuthFile, file)
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		require.NoError(t, os.Chmod(file, mode))
		cfg, err := framework.ConfigFromEnv()
		require.NoError(t, err)
		var log logtest.Buffer
		_, err = framework.New(cfg, framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		require.Equal(t, warned, strings.Contains(log.String(), "file="+file), "%v", mode)
		require.NotContains(t, log.String(), "s3cret")
	}
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
		framework.EnvSessionTimeout: "soon", framework.EnvAuthFile: "/no/such/file",
		framework.EnvTLSCA: "/no/such/file",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := framework.ConfigFromEnv()
			require.ErrorIs(t, err, framework.ErrInvalid)
			require.ErrorContains(t, err, name)
		})
	}
}
