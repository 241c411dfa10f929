package framework

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// FuzzConfigFromEnv reads an environment: what can be used is used again as the same, and all else
// is refused by name.
func FuzzConfigFromEnv(f *testing.F) {
	f.Add("a:2181,b", "10s", "/app", "me", "user:secret", "")
	f.Add(" , [::1]:1 ,::1", "0.5ms", "/", "", "no colon", "ca.pem")
	f.Add("a:99999,:1,a:b:c", "-1s", "app/", "\x00", ":", "\xff")
	f.Fuzz(func(t *testing.T, servers, timeout, root, identity, auth, ca string) {
		file := filepath.Join(t.TempDir(), "auth")
		require.NoError(t, os.WriteFile(file, []byte(auth), 0o600))
		for name, value := range map[string]string{
			EnvServers: servers, EnvSessionTimeout: timeout, EnvRoot: root, EnvIdentity: identity, EnvAuthFile: file,
			EnvTLSCA: ca,
		} {
			if strings.ContainsRune(value, 0) {
				t.Skip("no environment holds it")
			}
			t.Setenv(name, value)
		}
		c, err := ConfigFromEnv()
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.NotContains(t, err.Error(), "\n\n")
			return
		}
		full := c.WithDefaults()
		require.NoError(t, full.Validate())
		require.Equal(t, full, full.WithDefaults())
		require.Positive(t, full.SessionTimeout)
		require.LessOrEqual(t, full.SessionTimeout, time.Duration(1<<31)*time.Millisecond)
		for _, s := range full.Servers {
			_, _, err := net.SplitHostPort(s)
			require.NoError(t, err)
		}
	})
}

// FuzzServers reads a list of servers, with ports or without: what is accepted reads again as the
// same list.
func FuzzServers(f *testing.F) {
	f.Add("a:2181,b,[::1]:2181,::1")
	f.Add(",,  ,")
	f.Add("a,b:2181/app")
	f.Add("zk://a,b/app/x")
	f.Add("[::1%25lo]:1,[]:1,[a")
	f.Fuzz(func(t *testing.T, list string) {
		servers := splitServers(list)
		require.LessOrEqual(t, len(servers), len(list))
		again := splitServers(strings.Join(servers, ","))
		require.Equal(t, servers, again)
		for _, s := range servers {
			if validServer(s) != nil {
				continue
			}
			full := withPort(s)
			require.NoError(t, validServer(full))
			require.Equal(t, full, withPort(full))
		}
		if servers, root, err := ParseServers(list); err == nil && len(servers) > 0 {
			require.NoError(t, Config{Servers: servers, Root: root}.Validate())
		}
	})
}

// FuzzPath takes paths and roots: what is valid stays valid below a root, and comes back from
// there.
func FuzzPath(f *testing.F) {
	f.Add("/", "/a/b")
	f.Add("/a", "/")
	f.Add("/a/../b", "//")
	f.Add("/\x00", "/é\u0301")
	f.Add("/a", "/a")
	f.Fuzz(func(t *testing.T, root, path string) {
		for _, p := range []string{root, path} {
			if err := ValidatePath(p); err != nil {
				require.ErrorIs(t, err, failure.ErrInvalidPath)
				return
			}
		}
		full := namespace(root).serverPath(path)
		require.NoError(t, ValidatePath(full))
		require.Equal(t, path, namespace(root).clientPath(full))
		if path != "/" {
			require.Equal(t, path, znode.Join(znode.Split(path)))
		}
	})
}

// FuzzNodes reads the answer to many reads: nothing panics, and no more is made room for than the
// bytes hold.
func FuzzNodes(f *testing.F) {
	f.Add(encoded(func(e *wire.Encoder) {
		wire.MultiHeader{Op: wire.OpGetData}.Encode(e)
		e.Buffer([]byte("data"))
		new(wire.Stat).Encode(e)
		wire.MultiHeader{Op: wire.OpError, Err: wire.NoNode}.Encode(e)
		e.Int(int32(wire.NoNode))
		wire.MultiEnd.Encode(e)
	}))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		a := decodeAnswer(link.Reply{Body: b}, dataReads.decodeParts)
		if a.err != nil {
			require.True(t, errors.Is(a.err, wire.ErrMalformed), a.err)
			return
		}
		size := 0
		for _, n := range a.v {
			size += len(n.Data) + 9
		}
		require.LessOrEqual(t, size, len(b))
	})
}
