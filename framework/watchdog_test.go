package framework_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

const (
	victimVariable = "LOCKSTEP_TEST_VICTIM"
	// longTimeout is longer than any test waits: a session that ends earlier was closed.
	longTimeout = time.Hour
	patience    = 5 * time.Minute
)

// victim connects as the environment says, with a watchdog, and ends as its standard input says.
func victim() {
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := framework.Connect(context.Background(), cfg, framework.WithWatchdog(), framework.WithLogger(log))
	if err != nil {
		panic(err)
	}
	go func() {
		for s := range c.FollowState(context.Background()) {
			fmt.Println("state", s.State, s.SessionID)
		}
	}()
	s, err := c.Session(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("session", int64(s.ID()))
	how, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.TrimSpace(how) {
	case "panic":
		panic("as asked for")
	case "exit":
		os.Exit(3)
	case "close":
		began := time.Now()
		_ = c.Close(context.Background())
		fmt.Println("closed", time.Since(began))
	}
}

// suspect is a victim that runs.
type suspect struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
	id    int64
}

// spawn starts a victim and waits until its watchdog is armed.
func spawn(t *testing.T, servers string, env ...string) *suspect {
	t.Helper()
	s := &suspect{t: t, cmd: exec.Command(os.Args[0])}
	s.cmd.Env = append(os.Environ(), victimVariable+"=1", framework.EnvServers+"="+servers,
		framework.EnvSessionTimeout+"="+longTimeout.String(), "GORACE=atexit_sleep_ms=0")
	s.cmd.Env = append(s.cmd.Env, env...)
	var err error
	s.stdin, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	s.lines = bufio.NewReader(out)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	armed := false
	s.until(func(line string) bool {
		if id, ok := strings.CutPrefix(line, "session "); ok {
			s.id, err = strconv.ParseInt(id, 10, 64)
			require.NoError(t, err)
		}
		armed = armed || strings.Contains(line, "watchdog armed")
		return armed && s.id != 0
	})
	return s
}

// until reads lines up to one that is wanted.
func (s *suspect) until(want func(line string) bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		require.NoError(s.t, err)
		if want(strings.TrimSpace(line)) {
			return
		}
	}
}

func (s *suspect) say(how string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.stdin, how)
	require.NoError(s.t, err)
}

// released waits until the server knows no session, for less than the timeout.
func released(t *testing.T, zk *zktest.Server) {
	t.Helper()
	require.Eventually(t, func() bool { return len(zk.Sessions()) == 0 }, patience, time.Millisecond)
}

// withLongTimeout grants sessions the long timeout.
var withLongTimeout = zktest.WithSessionTimeouts(time.Second, longTimeout)

func onTCP(t *testing.T) (*zktest.Server, string) {
	t.Helper()
	zk := zktest.Start(t, withLongTimeout)
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	return zk, addr
}

func TestADeadProcessLeavesNoSession(t *testing.T) {
	for _, how := range []string{"kill", "panic", "exit", "return"} {
		t.Run(how, func(t *testing.T) {
			zk, addr := onTCP(t)
			s := spawn(t, addr)
			if how == "kill" {
				require.NoError(t, s.cmd.Process.Kill())
			} else {
				s.say(how)
			}
			released(t, zk)
		})
	}
}

// TestAClosedClientWithAWatchdogLeavesNoSession: the client closes its session itself. Close
// promises that if a server gets the close within a second, so the test repeats a Close that took
// longer on a slow machine.
func TestAClosedClientWithAWatchdogLeavesNoSession(t *testing.T) {
	for took := time.Duration(math.MaxInt64); took >= time.Second; {
		zk, addr := onTCP(t)
		s := spawn(t, addr)
		s.say("close")
		s.until(func(line string) bool {
			text, ok := strings.CutPrefix(line, "closed ")
			if ok {
				var err error
				took, err = time.ParseDuration(text)
				require.NoError(t, err)
			}
			return ok
		})
		if took < time.Second {
			require.Empty(t, zk.Sessions())
		}
		require.NoError(t, s.cmd.Wait())
	}
}

func TestTheWatchdogFollowsTheSession(t *testing.T) {
	zk, addr := onTCP(t)
	s := spawn(t, addr)
	require.NoError(t, zk.Expire(framework.SessionID(s.id)))
	s.until(func(line string) bool {
		return strings.HasPrefix(line, "state connected") && !strings.HasSuffix(line, fmt.Sprint(s.id))
	})
	require.NoError(t, s.cmd.Process.Kill())
	released(t, zk)
}

func TestTheWatchdogHasCredentialsAndTLS(t *testing.T) {
	ca := newAuthority(t)
	own := ca.sign("client")
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	env := []string{framework.EnvAuth + "=user:secret"}
	for name, file := range map[string]struct {
		variable, kind string
		der            []byte
	}{
		"ca":   {framework.EnvTLSCA, "CERTIFICATE", ca.cert.Raw},
		"cert": {framework.EnvTLSCert, "CERTIFICATE", own.Certificate[0]},
		"key":  {framework.EnvTLSKey, "PRIVATE KEY", key},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der}), 0o600))
		env = append(env, file.variable+"="+path)
	}
	zk := zktest.Start(t, withLongTimeout)
	s := spawn(t, secure(t, zk, ca, ca.sign("server", net.IPv4(127, 0, 0, 1))), env...)
	require.NoError(t, s.cmd.Process.Kill())
	released(t, zk)
}

func TestInvalidWatchdogConfigIsRefused(t *testing.T) {
	good := framework.Config{Servers: []string{"127.0.0.1:1"}}
	secured := good
	secured.TLS = &tls.Config{VerifyConnection: func(tls.ConnectionState) error { return nil }}
	dialer := framework.WithDialer((&net.Dialer{}).DialContext)
	for want, c := range map[string]struct {
		cfg  framework.Config
		opts []framework.Option
	}{
		"another process cannot make the connections of WithDialer": {
			good, []framework.Option{framework.WithWatchdog(), dialer},
		},
		"another process cannot call": {secured,
			[]framework.Option{framework.WithWatchdog()}},
	} {
		_, err := framework.New(c.cfg, c.opts...)
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	defer framework.ForgetWatchdogMain()()
	_, err := framework.New(good, framework.WithWatchdog())
	require.ErrorContains(t, err, "main has not called framework.WatchdogMain")
}

// TestACommandWithoutAWatchdog does nothing, and does not mind.
func TestACommandWithoutAWatchdog(t *testing.T) {
	zk := zktest.Start(t)
	g := session(t, zk.Member(t, "a", config)).GuardCommand()
	g.Started(os.Getpid())
	g.Ended()
}
