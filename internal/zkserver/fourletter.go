package zkserver

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

const versionLine = "3.8.0-in-memory, built on 2022-02-25 00:00 UTC"

// fourLetterWords are the commands a connection may begin with instead of a
// handshake. Those without a function are known to the real server and refused
// here, as it refuses what its whitelist does not have.
var fourLetterWords map[string]func(*Server, *strings.Builder)

// Set here, since the functions refer to the server, and it to the map.
func init() {
	fourLetterWords = map[string]func(*Server, *strings.Builder){
		"ruok": func(_ *Server, w *strings.Builder) { fmt.Fprint(w, "imok") },
		"isro": func(_ *Server, w *strings.Builder) { fmt.Fprint(w, "rw") },
		"srvr": (*Server).writeServer,
		"stat": (*Server).writeStat,
		"mntr": (*Server).writeMonitor,
		"wchs": (*Server).writeWatchSummary,
		"cons": (*Server).writeConnections,
		"conf": (*Server).writeConfig,
		"envi": (*Server).writeEnvironment,
		"srst": (*Server).resetServer,
		"crst": (*Server).resetConnections,
		"dirs": nil, "dump": nil, "gtmk": nil, "hash": nil, "stmk": nil, "wchc": nil, "wchp": nil,
	}
}

// fourLetter answers a four-letter word and closes the connection.
func (s *Server) fourLetter(c *conn, word string) {
	if !s.enter(c) {
		return
	}
	defer s.mu.Unlock()
	s.countReceived(c)
	var out strings.Builder
	if write := fourLetterWords[word]; write != nil {
		write(s, &out)
	} else {
		fmt.Fprintf(&out, "%s is not executed because it is not in the whitelist.\n", word)
	}
	s.send(c, []byte(out.String()), 0)
	s.finish(c)
}

func (s *Server) resetServer(w *strings.Builder) {
	s.received, s.sent = 0, 0
	fmt.Fprintln(w, "Server stats reset.")
}

func (s *Server) resetConnections(w *strings.Builder) {
	for c := range s.conns {
		c.received, c.sent = 0, 0
	}
	fmt.Fprintln(w, "Connection stats reset.")
}

func (s *Server) writeServer(w *strings.Builder) {
	fmt.Fprintf(w, "Zookeeper version: %s\n", versionLine)
	s.writeStatistics(w)
}

func (s *Server) writeStat(w *strings.Builder) {
	fmt.Fprintf(w, "Zookeeper version: %s\nClients:\n", versionLine)
	for _, c := range s.connsByAge() {
		fmt.Fprintf(w, " /%v[1](queued=0,recved=%d,sent=%d)\n", c.nc.RemoteAddr(), c.received, c.sent)
	}
	fmt.Fprintln(w)
	s.writeStatistics(w)
}

func (s *Server) writeStatistics(w *strings.Builder) {
	fmt.Fprintf(w, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		s.received, s.sent, s.alive, s.zxid, s.nodeCount())
}

// nodeCount counts the root twice, as the real server does.
func (s *Server) nodeCount() int { return len(s.tree.nodes) + 1 }

func (s *Server) writeMonitor(w *strings.Builder) {
	for _, line := range []struct {
		key   string
		value any
	}{
		{"version", versionLine},
		{"server_state", "standalone"},
		{"ephemerals_count", s.tree.ephemerals},
		{"num_alive_connections", s.alive},
		{"avg_latency", "0.0"},
		{"min_latency", 0},
		{"max_latency", 0},
		{"outstanding_requests", 0},
		{"znode_count", s.nodeCount()},
		{"global_sessions", len(s.sessions)},
		{"packets_sent", s.sent},
		{"packets_received", s.received},
		{"watch_count", s.dataWatches.total + s.childWatches.total},
		{"approximate_data_size", s.tree.dataBytes},
		{"uptime", time.Since(s.started).Milliseconds()},
	} {
		fmt.Fprintf(w, "zk_%s\t%v\n", line.key, line.value)
	}
}

// writeWatchSummary covers the watches on data only, as the real server's.
func (s *Server) writeWatchSummary(w *strings.Builder) {
	fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n",
		len(s.dataWatches.byConn), len(s.dataWatches.byPath), s.dataWatches.total)
}

func (s *Server) writeConnections(w *strings.Builder) {
	for _, c := range s.connsByAge() {
		fmt.Fprintf(w, " /%v[1](queued=0,recved=%d,sent=%d", c.nc.RemoteAddr(), c.received, c.sent)
		if c.session != nil {
			fmt.Fprintf(w, ",sid=0x%x,to=%d", c.session.id, c.session.timeout.Milliseconds())
		}
		fmt.Fprintln(w, ")")
	}
	fmt.Fprintln(w)
}

// connsByAge is the living connections.
func (s *Server) connsByAge() []*conn {
	conns := slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(conns, func(c *conn) bool { return c.dead })
}

func (s *Server) writeConfig(w *strings.Builder) {
	fmt.Fprintf(w, "tickTime=%d\nmaxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n",
		s.config.Tick.Milliseconds(), s.config.MinSessionTimeout.Milliseconds(), s.config.MaxSessionTimeout.Milliseconds())
}

func (s *Server) writeEnvironment(w *strings.Builder) {
	fmt.Fprintf(w, "Environment:\nzookeeper.version=%s\nos.name=%s\nos.arch=%s\n", versionLine, runtime.GOOS, runtime.GOARCH)
}
