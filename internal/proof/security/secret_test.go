package security

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// requireNoSecret fails if a text contains a secret, plain or encoded.
func requireNoSecret(t *testing.T, text, where string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		for _, form := range []string{
			s, hex.EncodeToString([]byte(s)), fmt.Sprintf("%q", s), fmt.Sprint([]byte(s)),
			fmt.Sprintf("%#v", []byte(s)),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)),
		} {
			if i := strings.Index(text, form); i >= 0 {
				require.Fail(t, "a secret is shown", "%s: ...%s", where, text[max(0, i-200):i+len(form)])
			}
		}
	}
}

// withUser returns the secrets of the credentials. Together with the user, the password has another
// encoding.
func withUser() []string { return []string{secret, user + ":" + secret} }

// logTwice logs everything to b twice: as text and as JSON.
func logTwice(b *logtest.Buffer) framework.Option {
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	return framework.WithLogger(
		slog.New(slog.NewMultiHandler(slog.NewTextHandler(b, all), slog.NewJSONHandler(b, all))))
}

// passwordRecorder notes the session passwords that servers send.
type passwordRecorder struct {
	mu        sync.Mutex
	passwords []string
}

func (r *passwordRecorder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: conn, record: r.record}, nil
}

func (r *passwordRecorder) record(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Trim(password, "\x00") != "" { // else the session is over
		r.passwords = append(r.passwords, password)
	}
}

// recordedConn reports the password in the connect response: 16 bytes, after the lengths, the
// protocol version, the timeout and the session id.
type recordedConn struct {
	net.Conn
	head   []byte
	record func(string)
}

const passwordAt, passwordEnd = 24, 40

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if len(c.head) < passwordEnd {
		c.head = append(c.head, p[:n]...)
		if len(c.head) >= passwordEnd {
			c.record(string(c.head[passwordAt:passwordEnd]))
		}
	}
	return n, err
}

func inMemory(t *testing.T) (zk *zktest.Server, address string) {
	t.Helper()
	zk = zktest.Start(t)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	return zk, address
}

// TestNoSecretInLogsAndTelemetry uses the recipes of recipeUses, also with lost connections and
// sessions, and checks all logs and telemetry.
func TestNoSecretInLogsAndTelemetry(t *testing.T) {
	zk, address := inMemory(t)
	cfg := framework.Config{Servers: []string{address}, SessionTimeout: 10 * time.Second, Auth: credentials,
		Root: "/root"}
	var logged logtest.Buffer
	var spy passwordRecorder
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	opts := []framework.Option{
		logTwice(&logged), framework.WithDialer(spy.dial),
		framework.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans))),
		framework.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
	}
	t.Run("use", func(t *testing.T) {
		client := connect(t, cfg, opts...)
		useAllRecipes(t, client)
		fmt.Fprintln(&logged, client.Config(), fmt.Sprintf("%+v %#v", client.Config(), client.Config()))
		for _, node := range zk.Tree("/") {
			fmt.Fprintf(&logged, "%s %q\n", node.Path, node.Data)
		}
		lease, err := locks.NewMutex(client, "/lost").Lock(t.Context())
		require.NoError(t, err)
		session, err := client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, zk.Expire(session.ID()))
		<-lease.Context().Done()
		fmt.Fprintln(&logged, lease.Err(), context.Cause(lease.Context()))
		_, err = locks.NewMutex(client, "/lost").Lock(t.Context()) // in the next session
		require.NoError(t, err)
	})
	for _, span := range spans.Ended() {
		fmt.Fprintf(&logged, "%+v\n", tracetest.SpanStubFromReadOnlySpan(span))
	}
	var metrics metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &metrics))
	fmt.Fprintf(&logged, "%+v\n", metrics)

	require.Contains(t, logged.String(), "session lost", "the log is heard")
	require.NotEmpty(t, spans.Ended())
	require.GreaterOrEqual(t, len(spy.passwords), 2, "of both sessions")
	requireNoSecret(t, logged.String(), "the library's output", append(spy.passwords, withUser()...)...)
}

// TestNoSecretInErrors lets credentials be refused in every way, and checks the errors.
func TestNoSecretInErrors(t *testing.T) {
	_, address := inMemory(t)
	var logged logtest.Buffer
	for name, spoil := range map[string]func(*framework.Config){
		"a scheme that no server knows": func(c *framework.Config) { c.Auth[0].Scheme = "bogus" },
		"no scheme":                     func(c *framework.Config) { c.Auth[0].Scheme = "" },
		"no server":                     func(c *framework.Config) { c.Servers = []string{"127.0.0.1:1"} },
		"no user":                       func(c *framework.Config) { c.Auth[0].Auth = []byte(secret) },
	} {
		cfg := framework.Config{
			Servers: []string{address}, SessionTimeout: 10 * time.Second,
			Auth: []framework.Credential{{Scheme: "digest", Auth: credentials[0].Auth}},
		}
		spoil(&cfg)
		limit := patience
		if strings.HasPrefix(name, "no server") {
			limit = time.Second // the client tries again until then
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		c, err := framework.Connect(ctx, cfg, logTwice(&logged))
		if err == nil {
			err = c.Create(ctx, "/node", nil, framework.Persistent)
			require.NoError(t, c.Close(t.Context()))
		}
		cancel()
		fmt.Fprintf(&logged, "%s: %v %+v %#v\n", name, err, err, err)
	}
	for _, auth := range []string{secret, ""} { // neither is user:password
		t.Setenv(framework.EnvAuth, auth)
		t.Setenv(framework.EnvAuthFile, map[bool]string{true: "no-such-file"}[auth == ""])
		_, err := framework.ConfigFromEnv()
		require.Error(t, err)
		fmt.Fprintln(&logged, err)
	}
	require.Contains(t, logged.String(), framework.ErrAuthFailed.Error())
	requireNoSecret(t, logged.String(), "errors", withUser()...)
}
