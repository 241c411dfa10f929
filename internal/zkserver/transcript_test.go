package zkserver

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// The transcript has the answers of Apache ZooKeeper 3.8.0 to the scenes,
// standalone with tickTime=500, -Dzookeeper.extendedTypesEnabled=true and
// -Dznode.container.checkIntervalMs=2000. To record it again:
//
//	go test ./internal/zkserver -run TestTranscript -record 127.0.0.1:2181
var record = flag.String("record", "", "address of a real server whose answers to record")

const transcriptFile = "testdata/zookeeper-3.8.0.golden"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testClients are the clients of one server in a test or a scene, and the log of the frames that
// they have got.
type testClients struct {
	t           *testing.T
	root        string
	dial        func() net.Conn
	readTimeout time.Duration
	opened      []net.Conn
	names       map[int64]string
	base        int64
	lines       []string
}

func (st *testClients) client(name string) *rawClient { return &rawClient{st: st, name: name} }

// joinClient makes a client with a session.
func (st *testClients) joinClient(name string) *rawClient {
	r := st.client(name)
	require.True(st.t, r.open(wire.ConnectRequest{Timeout: 10000}))
	return r
}

func (st *testClients) owner(session int64) string {
	if name, known := st.names[session]; known {
		return name
	}
	if session == 0 {
		return "none"
	}
	return "somebody"
}

func (st *testClients) relative(zxid int64) string {
	if zxid <= 0 {
		return fmt.Sprint(zxid)
	}
	return fmt.Sprintf("%+d", zxid-st.base)
}

// playTranscript runs a scene in a subtree of its own and returns the log of its clients.
func playTranscript(t *testing.T, sc scene, dial func() net.Conn) []string {
	st := &testClients{t: t, root: "/" + sc.name, dial: dial, readTimeout: 3 * time.Second, names: map[int64]string{}}
	defer func() {
		for _, nc := range st.opened {
			_ = nc.Close()
		}
	}()
	setup := st.joinClient("setup")
	setup.do(wire.OpCreate, &wire.CreateRequest{Path: st.root, ACL: openACL})
	st.base = setup.zxid
	st.lines = nil
	sc.run(st)
	received := st.lines
	setup.deleteSubtree(st.root)
	setup.quit()
	return received
}

// deleteSubtree deletes a subtree, without its nodes that this client may not delete.
func (r *rawClient) deleteSubtree(path string) {
	r.send(wire.OpGetChildren, &wire.WatchRequest{Path: path})
	frame, err := r.frame()
	require.NoError(r.st.t, err)
	d := wire.NewDecoder(frame)
	var head wire.ReplyHeader
	head.Decode(&d)
	for _, child := range d.Strings() {
		r.deleteSubtree(path + "/" + child)
	}
	r.do(wire.OpDelete, &wire.NumberRequest{Path: path, Number: wire.AnyVersion})
}

func TestTranscript(t *testing.T) {
	if *record != "" {
		recordTranscript(t)
		return
	}
	golden := readTranscript(t)
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, Config{Tick: 500 * time.Millisecond, ContainerInterval: 2 * time.Second,
					ExtendedTypes: true})
				received := playTranscript(t, sc, func() net.Conn { return pipeTo(t, s) })
				require.Equal(t, strings.Join(golden[sc.name], "\n"), strings.Join(received, "\n"))
			})
		})
	}
}

func startServer(t *testing.T, config Config) *Server {
	s, err := New(config)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// pipeTo connects to the server without a network.
func pipeTo(t *testing.T, s *Server) net.Conn {
	client, server := net.Pipe()
	require.NoError(t, s.ServeConn(server))
	return client
}

func recordTranscript(t *testing.T) {
	var out strings.Builder
	for _, sc := range scenes {
		received := playTranscript(t, sc, func() net.Conn {
			nc, err := net.Dial("tcp", *record)
			require.NoError(t, err)
			return nc
		})
		fmt.Fprintf(&out, "# %s\n%s\n", sc.name, strings.Join(received, "\n"))
	}
	require.NoError(t, os.WriteFile(transcriptFile, []byte(out.String()), 0o644))
}

func readTranscript(t *testing.T) map[string][]string {
	b, err := os.ReadFile(transcriptFile)
	require.NoError(t, err)
	golden := map[string][]string{}
	name := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if title, found := strings.CutPrefix(line, "# "); found {
			name = title
			continue
		}
		golden[name] = append(golden[name], line)
	}
	return golden
}
