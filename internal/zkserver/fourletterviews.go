package zkserver

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"
)

// javaDate is how Java prints a time.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

const versionLine = "3.8.0-in-memory, built on 2022-02-25 00:00 UTC"

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

// writeWatchesByClient and writeWatchesByPath too cover the watches on data only.
func (s *Server) writeWatchesByClient(w *strings.Builder) {
	for _, c := range s.connsByAge() {
		paths := s.dataWatches.byConn[c]
		if len(paths) == 0 {
			continue
		}
		fmt.Fprintln(w, sessionName(c.session.id))
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	fmt.Fprintln(w)
}

func (s *Server) writeWatchesByPath(w *strings.Builder) {
	for _, path := range slices.Sorted(maps.Keys(s.dataWatches.byPath)) {
		fmt.Fprintln(w, path)
		for _, c := range s.connsByAge() {
			if _, watches := s.dataWatches.byPath[path][c]; watches {
				fmt.Fprintf(w, "\t%s\n", sessionName(c.session.id))
			}
		}
	}
	fmt.Fprintln(w)
}

func (s *Server) writeConnections(w *strings.Builder) {
	for _, c := range s.connsByAge() {
		fmt.Fprintf(w, " /%v[1](queued=0,recved=%d,sent=%d", c.nc.RemoteAddr(), c.received, c.sent)
		if c.session != nil {
			fmt.Fprintf(w, ",sid=0x%x,lop=NA,est=%d,to=%d,lzxid=0x%x,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0",
				c.session.id, c.opened.UnixMilli(), c.session.timeout.Milliseconds(), s.zxid)
		}
		fmt.Fprintln(w, ")")
	}
	fmt.Fprintln(w)
}

// writeDump lists sessions by when they end, ephemeral nodes by session, and connections.
func (s *Server) writeDump(w *strings.Builder) {
	ends := map[time.Time][]*session{}
	owners := 0
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		sess := s.sessions[id]
		ends[sess.expires] = append(ends[sess.expires], sess)
		if len(sess.ephemerals.nodes) > 0 {
			owners++
		}
	}
	fmt.Fprintf(w, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(ends), len(s.sessions))
	for _, end := range slices.SortedFunc(maps.Keys(ends), time.Time.Compare) {
		fmt.Fprintf(w, "%d expire at %s:\n", len(ends[end]), end.Format(javaDate))
		for _, sess := range ends[end] {
			fmt.Fprintf(w, "\t%s\n", sessionName(sess.id))
		}
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", owners)
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		owned := s.sessions[id].snapshot().Ephemerals
		if len(owned) > 0 {
			fmt.Fprintf(w, "%s:\n\t%s\n", sessionName(id), strings.Join(owned, "\n\t"))
		}
	}
	conns := s.connsByAge()
	fmt.Fprintf(w, "Connections dump:\nConnections Sets (%d)/(%[1]d):\n", len(conns))
	for _, c := range conns {
		end, id := c.opened.Add(s.config.HandshakeTimeout), int64(0)
		if c.session != nil {
			end, id = c.session.expires, c.session.id
		}
		fmt.Fprintf(w, "1 expire at %s:\n\tip: /%v sessionId: %s\n", end.Format(javaDate), c.nc.RemoteAddr(), sessionName(id))
	}
}

// writeDirectories tells of data and logs, of which there are none.
func (s *Server) writeDirectories(w *strings.Builder) {
	fmt.Fprintln(w, "datadir_size: 0\nlogdir_size: 0")
}

// writeTraceMask tells the mask that stmk has set. Nothing is traced by it.
func (s *Server) writeTraceMask(w *strings.Builder) { fmt.Fprint(w, s.traceMask) }

// connsByAge is the living connections.
func (s *Server) connsByAge() []*conn {
	conns := slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(conns, func(c *conn) bool { return c.dead })
}

func (s *Server) writeConfig(w *strings.Builder) {
	fmt.Fprintf(w, "clientPort=%d\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n", s.port())
	fmt.Fprintf(w, "tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n",
		s.config.Tick.Milliseconds(), s.config.MaxClientCnxns, s.config.MinSessionTimeout.Milliseconds(), s.config.MaxSessionTimeout.Milliseconds())
}

// port is the lowest TCP port that the server listens on; -1 without one.
func (s *Server) port() int {
	port := -1
	for ln := range s.listeners {
		if a, is := ln.Addr().(*net.TCPAddr); is && (port < 0 || a.Port < port) {
			port = a.Port
		}
	}
	return port
}

func (s *Server) writeEnvironment(w *strings.Builder) {
	fmt.Fprintf(w, "Environment:\nzookeeper.version=%s\njava.version=none: %s\nos.name=%s\nos.arch=%s\n",
		versionLine, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
