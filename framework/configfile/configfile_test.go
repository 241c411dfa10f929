package configfile_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/configfile"
	"github.com/lockstep-go/lockstep/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write writes files into a directory and returns the name of the first.
func write(t testing.TB, content string, others ...string) string {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "lockstep.yaml")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	for i := 0; i < len(others); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, others[i]), []byte(others[i+1]), 0o600))
	}
	return name
}

const inYAML = `# of the shop
client:
  servers: [zk1:2181, zk2]
  root: /shop
  identity: "😀\\"
  sessionTimeout: 20s
  dialTimeout: 2s
  retryBase: 100ms
  retryMax: 10s
  followSpread: 3s
  cleanupTimeout: 4s
  maxEphemeralBytes: 1000
  observerMasters: true
  alwaysAwake: true
  auth:
    - file: secret
    - {scheme: own, env: SHOP_TOKEN}
monitor:
  interval: 1m
  beginAfter: 3
  deadLetters: 0
  longHold: 1h
  growthItems: 7
  without: [many waiters]
`

const inJSON = `{
	"client": {
		"servers": ["zk1:2181", "zk2"], "root": "\/shop", "identity": "\ud83d\ude00\\", "sessionTimeout": "20s",
		"dialTimeout": "2s", "retryBase": "100ms", "retryMax": "10s", "followSpread": "3s", "cleanupTimeout": "4s",
		"maxEphemeralBytes": 1000, "observerMasters": true, "alwaysAwake": true,
		"auth": [{"file": "secret"}, {"scheme": "own", "env": "SHOP_TOKEN"}]
	},
	"monitor": {
		"interval": "1m", "beginAfter": 3, "deadLetters": 0, "longHold": "1h", "growthItems": 7,
		"without": ["many waiters"]
	}
}
`

func TestYAMLAndJSON(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "token")
	for _, content := range []string{inYAML, inJSON} {
		file, err := configfile.Load(write(t, content, "secret", "shop:screws\n"))
		require.NoError(t, err)
		require.Equal(t, framework.Config{
			Servers: []string{"zk1:2181", "zk2"}, Root: "/shop", Identity: `😀\`, SessionTimeout: 20 * time.Second,
			DialTimeout: 2 * time.Second, RetryBase: 100 * time.Millisecond, RetryMax: 10 * time.Second,
			FollowSpread: 3 * time.Second, CleanupTimeout: 4 * time.Second, MaxEphemeralBytes: 1000,
			ObserverMasters: true, AlwaysAwake: true,
			Auth: []framework.Credential{
				{Scheme: "digest", Auth: []byte("shop:screws")}, {Scheme: "own", Auth: []byte("token")},
			},
		}, file.Client)
		minute, hour, zero, three, seven := time.Minute, time.Hour, 0, 3, 7
		require.Equal(t, configfile.Monitor{Interval: &minute, BeginAfter: &three, DeadLetters: &zero, LongHold: &hour,
			GrowthItems: &seven, Without: []string{string(monitor.ProblemWaiters)}}, file.Monitor)
		client, err := framework.New(file.Client)
		require.NoError(t, err)
		m := monitor.New(client, "/monitor", "/", monitor.WithSettings(monitor.Settings(file.Monitor)))
		require.NoError(t, m.Validate())
	}
}

func TestTheEnvironmentWins(t *testing.T) {
	name := write(t, "client: {servers: [zk1], root: /shop, sessionTimeout: 20s, auth: [{file: secret}]}",
		"secret", "a:b")
	t.Setenv(framework.EnvServers, "zk9:2181/test")
	t.Setenv(framework.EnvAuth, "c:d")
	file, err := configfile.Load(name)
	require.NoError(t, err)
	require.Equal(t, framework.Config{
		Servers: []string{"zk9:2181"}, Root: "/test", SessionTimeout: 20 * time.Second,
		Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("c:d")}},
	}, file.Client)

	t.Setenv(framework.EnvServers, "zk9:2181")
	file, err = configfile.Load(name)
	require.NoError(t, err)
	require.Equal(t, "/shop", file.Client.Root)

	file, err = configfile.Load(write(t, ""))
	require.NoError(t, err)
	require.Equal(t, []string{"zk9:2181"}, file.Client.Servers)
}

// TestBadFiles: each error names the file, what is wrong and, where there is one, the line.
func TestBadFiles(t *testing.T) {
	for content, says := range map[string]string{
		"":                               "no servers given",
		"client: {servers: [zk1]}\nx: 1": `line 2: unknown key "x"`,
		"client:\n  servers: [a]\n  sesion: 3s\n  rot: /a\n": `line 3: unknown key "sesion"; line 4: unknown key "rot"`,
		"monitor:\n  interval: 5\n":                          "line 2: got a int `5`, want a duration such as 20s",
		"client:\n  sessionTimeout: soon\n":                  "line 2: got a str `soon`, want a duration such as 20s",
		"client:\n  servers: zk1:2181\n":                     "line 2: got a str `zk1:2181`, want a list of texts",
		"client: zk1":                                        "line 1: got a str `zk1`, want keys with values",
		"client:\n  root: /a\n  root: /b\n":                  `line 3: mapping key "root" already defined at line 2`,
		"client: {servers: [zk1]}\n---\nmonitor: {}\n":       "want one document",
		"client: [":                    "line 1: did not find expected node content",
		"client: {servers: ['zk1:x']}": `port "x" is not a number`,
		"client: {servers: [zk1], sessionTimeout: -1s}":  "SessionTimeout is -1s",
		"client: {servers: [zk1], auth: [{}]}":           "client.auth[0]: give file or env, where the secret is",
		"client: {servers: [zk1], auth: [{file: none}]}": "client.auth[0]: ",
		"client: {servers: [zk1], auth: [{env: NONE}]}":  "client.auth[0]: environment variable NONE: want user:password",
		"client: {servers: [zk1], tls: {ca: none}}":      "client.tls: ",
		"client:\n  auth: shop:screws\n":                 "line 2: got a str, want a list of credentials",
		"client:\n  auth: [shop:screws]\n":               "line 2: got a str, want a list of credentials",
	} {
		name := write(t, content)
		_, err := configfile.Load(name)
		require.ErrorIs(t, err, framework.ErrInvalid, content)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "screws")
		require.NotContains(t, err.Error(), "configfile.")
	}
	_, err := configfile.Load("/none/lockstep.yaml")
	require.ErrorIs(t, err, framework.ErrInvalid)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAReadableSecretIsWarnedOf names its file.
func TestAReadableSecretIsWarnedOf(t *testing.T) {
	name := write(t, "client: {servers: [zk1], auth: [{file: secret}]}", "secret", "shop:screws")
	secret := filepath.Join(filepath.Dir(name), "secret")
	require.NoError(t, os.Chmod(secret, 0o644))
	file, err := configfile.Load(name)
	require.NoError(t, err)
	var log bytes.Buffer
	_, err = framework.New(file.Client, framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	require.Contains(t, log.String(), "everybody on this machine can read the credentials")
	require.Contains(t, log.String(), secret)
	require.NotContains(t, log.String(), "screws")
}

// FuzzLoad: a file of any content is read or refused, without a panic.
func FuzzLoad(f *testing.F) {
	for _, content := range []string{inYAML, inJSON, "", "client: [", "a: &a [*a]", "client: {<<: {root: /a}}"} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := configfile.Load(write(t, string(content))); err != nil {
			require.ErrorIs(t, err, framework.ErrInvalid)
		}
	})
}
