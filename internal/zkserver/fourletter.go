package zkserver

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// fourLetterCommands answers the four-letter words, commands that a client may send as the first
// bytes of a connection instead of a handshake. The server's mutex guards it.
type fourLetterCommands struct {
	config      Config
	db          *database
	connections *connections
	port        func() int // returns the lowest TCP port on which the server listens, or -1
	traceMask   int64
}

// anyWord in a whitelist allows all words. alwaysAllowedWord is allowed without being in the
// whitelist, as on the real server, whose scripts need it.
const anyWord, alwaysAllowedWord = "*", "srvr"

// setTraceMask is the only word with an argument, of eight bytes.
const setTraceMask = "stmk"

// fourLetterWords are the commands and the functions that write their answers.
var fourLetterWords = map[string]func(*fourLetterCommands, *strings.Builder){
	"ruok": func(_ *fourLetterCommands, w *strings.Builder) { fmt.Fprint(w, "imok") },
	"isro": func(_ *fourLetterCommands, w *strings.Builder) { fmt.Fprint(w, "rw") },
	"srvr": (*fourLetterCommands).writeServer,
	"stat": (*fourLetterCommands).writeStat,
	"mntr": (*fourLetterCommands).writeMonitor,
	"wchs": (*fourLetterCommands).writeWatchSummary,
	"wchc": (*fourLetterCommands).writeWatchesByClient,
	"wchp": (*fourLetterCommands).writeWatchesByPath,
	"cons": (*fourLetterCommands).writeConnections,
	"conf": (*fourLetterCommands).writeConfig,
	"envi": (*fourLetterCommands).writeEnvironment,
	"dump": (*fourLetterCommands).writeDump,
	"dirs": (*fourLetterCommands).writeDirectories,
	// the real server lists digests of its tree; this one has none
	"hash":       func(*fourLetterCommands, *strings.Builder) {},
	"srst":       (*fourLetterCommands).resetServer,
	"crst":       (*fourLetterCommands).resetConnections,
	"gtmk":       (*fourLetterCommands).writeTraceMask,
	setTraceMask: (*fourLetterCommands).writeTraceMask,
}

// checkWhitelist returns an error that names the first unknown word.
func checkWhitelist(words []string) error {
	for _, word := range words {
		if _, known := fourLetterWords[word]; !known && word != anyWord {
			return fmt.Errorf("zkserver: FourLetterWords has %q, which is not a four-letter word of the server", word)
		}
	}
	return nil
}

// runCommand returns the answer to an allowed word. mask is the argument of setTraceMask.
func (f *fourLetterCommands) runCommand(word string, mask int64) string {
	var out strings.Builder
	if f.db.failure != nil && word != "ruok" {
		fmt.Fprintln(&out, "This ZooKeeper instance is not currently serving requests")
		return out.String()
	}
	if word == setTraceMask {
		f.traceMask = mask
	}
	fourLetterWords[word](f, &out)
	return out.String()
}

// allowsWord reports whether the configuration allows the word.
func (f *fourLetterCommands) allowsWord(word string) bool {
	list := f.config.FourLetterWords
	return list == nil || word == alwaysAllowedWord || slices.Contains(list, word) || slices.Contains(list, anyWord)
}

func (f *fourLetterCommands) resetServer(w *strings.Builder) {
	f.connections.packetsReceived, f.connections.packetsSent = 0, 0
	fmt.Fprintln(w, "Server stats reset.")
}

func (f *fourLetterCommands) resetConnections(w *strings.Builder) {
	for c := range f.connections.open {
		c.packetsReceived, c.packetsSent = 0, 0
	}
	fmt.Fprintln(w, "Connection stats reset.")
}

// javaDate is the format in which Java prints a time.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

const versionLine = "3.8.0-in-memory, built on 2022-02-25 00:00 UTC"

func (f *fourLetterCommands) writeServer(w *strings.Builder) {
	fmt.Fprintf(w, "Zookeeper version: %s\n", versionLine)
	f.writeStatistics(w)
}

func (f *fourLetterCommands) writeStat(w *strings.Builder) {
	fmt.Fprintf(w, "Zookeeper version: %s\nClients:\n", versionLine)
	for _, c := range f.connections.byAge() {
		fmt.Fprintf(w, " /%v[1](queued=0,recved=%d,sent=%d)\n", c.nc.RemoteAddr(), c.packetsReceived, c.packetsSent)
	}
	fmt.Fprintln(w)
	f.writeStatistics(w)
}

func (f *fourLetterCommands) writeStatistics(w *strings.Builder) {
	fmt.Fprintf(w, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: "+
		"0x%x\nMode: standalone\nNode count: %d\n",
		f.connections.packetsReceived, f.connections.packetsSent, f.connections.attached, f.db.zxid, f.nodeCount())
}

// nodeCount counts the root twice, as the real server does.
func (f *fourLetterCommands) nodeCount() int { return len(f.db.tree.nodes) + 1 }

// writeMonitor writes the lines with which the real server begins, in its order, except for the
// sizes of answers. What this server does not do counts as 0. The real server has some 460 further
// lines, of its counters and of Java.
func (f *fourLetterCommands) writeMonitor(w *strings.Builder) {
	openFiles, maxFiles := processFiles()
	for _, line := range []struct {
		key   string
		value any
	}{
		{"version", versionLine},
		{"server_state", "standalone"},
		{"ephemerals_count", f.db.tree.countEphemerals()},
		{"num_alive_connections", f.connections.attached},
		{"avg_latency", "0.0"},
		{"outstanding_requests", 0},
		{"znode_count", f.nodeCount()},
		{"global_sessions", len(f.db.sessions.byID)},
		{"non_mtls_remote_conn_count", 0},
		{"packets_sent", f.connections.packetsSent},
		{"packets_received", f.connections.packetsReceived},
		{"connection_drop_probability", "0.0"},
		{"watch_count", f.db.countWatches()},
		{"auth_failed_count", 0},
		{"min_latency", 0},
		{"max_file_descriptor_count", maxFiles},
		{"approximate_data_size", f.db.tree.dataBytes},
		{"open_file_descriptor_count", openFiles},
		{"local_sessions", 0},
		{"uptime", time.Since(f.db.sessions.started).Milliseconds()},
		{"max_latency", 0},
		{"outstanding_tls_handshake", 0},
		{"non_mtls_local_conn_count", 0},
	} {
		fmt.Fprintf(w, "zk_%s\t%v\n", line.key, line.value)
	}
}

// processFiles returns how many files the process has open, and how many it may have. What the
// system does not tell is -1, as on the real server.
func processFiles() (open, limit int) {
	open, limit = -1, -1
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		open = len(files)
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if files, is := strings.CutPrefix(line, "Max open files"); is {
			_, _ = fmt.Sscan(files, &limit)
		}
	}
	return open, limit
}

// writeWatchSummary counts the watches on data only, as the real server does.
func (f *fourLetterCommands) writeWatchSummary(w *strings.Builder) {
	fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n",
		len(f.db.dataWatches.byWatcher), len(f.db.dataWatches.byPath), f.db.dataWatches.total)
}

// writeWatchesByClient and writeWatchesByPath list the watches on data only, too.
func (f *fourLetterCommands) writeWatchesByClient(w *strings.Builder) {
	for _, c := range f.connections.byAge() {
		paths := f.db.dataWatches.byWatcher[c]
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

func (f *fourLetterCommands) writeWatchesByPath(w *strings.Builder) {
	for _, path := range slices.Sorted(maps.Keys(f.db.dataWatches.byPath)) {
		fmt.Fprintln(w, path)
		for _, c := range f.connections.byAge() {
			if _, watches := f.db.dataWatches.byPath[path][c]; watches {
				fmt.Fprintf(w, "\t%s\n", sessionName(c.session.id))
			}
		}
	}
	fmt.Fprintln(w)
}

func (f *fourLetterCommands) writeConnections(w *strings.Builder) {
	for _, c := range f.connections.byAge() {
		fmt.Fprintf(w, " /%v[1](queued=0,recved=%d,sent=%d", c.nc.RemoteAddr(), c.packetsReceived, c.packetsSent)
		if c.session != nil {
			fmt.Fprintf(w, ",sid=0x%x,lop=NA,est=%d,to=%d,lzxid=0x%x,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0",
				c.session.id, c.opened.UnixMilli(), c.session.timeout.Milliseconds(), f.db.zxid)
		}
		fmt.Fprintln(w, ")")
	}
	fmt.Fprintln(w)
}

// writeDump lists the sessions by their expiry, the ephemeral nodes by session, and the
// connections.
func (f *fourLetterCommands) writeDump(w *strings.Builder) {
	ends := map[time.Time][]*session{}
	owners := 0
	for _, id := range slices.Sorted(maps.Keys(f.db.sessions.byID)) {
		sess := f.db.sessions.byID[id]
		ends[sess.expires] = append(ends[sess.expires], sess)
		if len(f.db.tree.ephemeralsOf(id)) > 0 {
			owners++
		}
	}
	fmt.Fprintf(w, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(ends), len(f.db.sessions.byID))
	for _, end := range slices.SortedFunc(maps.Keys(ends), time.Time.Compare) {
		fmt.Fprintf(w, "%d expire at %s:\n", len(ends[end]), end.Format(javaDate))
		for _, sess := range ends[end] {
			fmt.Fprintf(w, "\t%s\n", sessionName(sess.id))
		}
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", owners)
	for _, id := range slices.Sorted(maps.Keys(f.db.sessions.byID)) {
		owned := f.db.tree.ephemeralPaths(id)
		if len(owned) > 0 {
			fmt.Fprintf(w, "%s:\n\t%s\n", sessionName(id), strings.Join(owned, "\n\t"))
		}
	}
	conns := f.connections.byAge()
	fmt.Fprintf(w, "Connections dump:\nConnections Sets (%d)/(%[1]d):\n", len(conns))
	for _, c := range conns {
		end, id := c.opened.Add(f.config.HandshakeTimeout), int64(0)
		if c.session != nil {
			end, id = c.session.expires, c.session.id
		}
		fmt.Fprintf(w, "1 expire at %s:\n\tip: /%v sessionId: %s\n", end.Format(javaDate), c.nc.RemoteAddr(),
			sessionName(id))
	}
}

// writeDirectories writes the sizes of the directories for data and logs, which this server does
// not have.
func (f *fourLetterCommands) writeDirectories(w *strings.Builder) {
	fmt.Fprintln(w, "datadir_size: 0\nlogdir_size: 0")
}

// writeTraceMask writes the trace mask. The mask has no effect.
func (f *fourLetterCommands) writeTraceMask(w *strings.Builder) { fmt.Fprint(w, f.traceMask) }

func (f *fourLetterCommands) writeConfig(w *strings.Builder) {
	fmt.Fprintf(w, "clientPort=%d\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n",
		f.port())
	fmt.Fprintf(w, "tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n",
		f.config.Tick.Milliseconds(), f.config.MaxClientCnxns, f.config.MinSessionTimeout.Milliseconds(),
		f.config.MaxSessionTimeout.Milliseconds())
}

func (f *fourLetterCommands) writeEnvironment(w *strings.Builder) {
	fmt.Fprintf(w, "Environment:\nzookeeper.version=%s\njava.version=none: %s\nos.name=%s\nos.arch=%s\n",
		versionLine, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
