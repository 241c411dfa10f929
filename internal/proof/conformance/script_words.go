package conformance

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// talkWords sends each four-letter word. If the answer differs from server to server, only its
// beginning is compared.
func talkWords(s *transcript) {
	for _, word := range []string{"ruok", "isro", "srst", "crst", "gtmk", "nope", "RUOK"} {
		s.recordAnswer(word, s.fourLetterWord(word))
	}
	for _, word := range []string{"srvr", "stat", "conf", "cons", "dump", "dirs", "envi", "mntr", "wchc",
		"wchp", "wchs"} {
		s.recordAnswer(word, strings.Join(beginning.FindStringSubmatch(s.fourLetterWord(word)), "|"))
	}
}

// beginning matches the first line of an answer up to the first digit.
var beginning = regexp.MustCompile(`^[^\n0-9]*`)

func (s *transcript) fourLetterWord(bytes string) string {
	s.t.Helper()
	v := s.newConnection("word")
	if err := v.writeRaw([]byte(bytes)); err != nil {
		return end(err)
	}
	require.NoError(s.t, v.conn.SetReadDeadline(time.Now().Add(patience)))
	answer, err := io.ReadAll(v.in)
	if err != nil || len(answer) == 0 { // a server that closes at once may do so before or after the word arrives
		return end(err)
	}
	return string(answer)
}

func (s *transcript) recordAnswer(word, answer string) {
	s.log = append(s.log, shortened(fmt.Sprintf("%s: %q", word, answer)))
}

func talkWatchWords(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/watchwords", "", 0)
	a.create("/watchwords/e", "", wire.FlagEphemeral)
	a.watchData("/watchwords")
	b.watchExists("/watchwords")
	b.watchChildren("/watchwords")
	for _, word := range []string{"wchs", "wchc", "wchp"} {
		s.unordered(func() { // the real server's order is that of a hash table
			for line := range strings.Lines(s.nameSessions(s.fourLetterWord(word))) {
				s.recordAnswer(word, line)
			}
		})
	}
	_, ephemerals, _ := strings.Cut(s.nameSessions(s.fourLetterWord("dump")), "ephemeral nodes dump:\n")
	ephemerals, _, _ = strings.Cut(ephemerals, "Connections dump:")
	s.recordAnswer("dump", ephemerals)
	for _, word := range []string{"cons", "stat"} {
		s.recordAnswer(word, fmt.Sprint(strings.Count(s.fourLetterWord(word), "queued=0,recved=")))
	}
	s.recordAnswer("conf", strings.Join(settingNames.FindAllString(s.fourLetterWord("conf"), -1), ""))
	for _, name := range monitored {
		s.recordAnswer("mntr", fmt.Sprint(name, strings.Contains(s.fourLetterWord("mntr"), "zk_"+name+"\t")))
	}
}

// monitored are the lines of mntr that tools read from a standalone server.
var monitored = []string{
	"version", "server_state", "ephemerals_count", "num_alive_connections", "avg_latency", "outstanding_requests",
	"znode_count",
	"global_sessions", "non_mtls_remote_conn_count", "packets_sent", "packets_received", "connection_drop_probability",
	"watch_count",
	"auth_failed_count", "min_latency", "max_file_descriptor_count", "approximate_data_size",
	"open_file_descriptor_count",
	"local_sessions", "uptime", "max_latency", "outstanding_tls_handshake", "non_mtls_local_conn_count",
}

// settingNames matches the names of settings before their values.
var settingNames = regexp.MustCompile(`(?m)^\w+=`)

// nameSessions replaces the ids of sessions by their names.
func (s *transcript) nameSessions(text string) string {
	for id, name := range s.names {
		text = strings.ReplaceAll(text, fmt.Sprintf("0x%x", id), name)
	}
	return text
}

func talkTraceMask(s *transcript) {
	s.recordAnswer("gtmk", s.fourLetterWord("gtmk"))
	s.recordAnswer("stmk", s.fourLetterWord("stmk"))
	s.recordAnswer("stmk", s.fourLetterWord("stmk\x00\x00\x00"))
	s.recordAnswer("stmk", s.fourLetterWord("stmk\x00\x00\x00\x00\x00\x00\x01\x00"))
	s.recordAnswer("gtmk", s.fourLetterWord("gtmk"))
	s.recordAnswer("stmk", s.fourLetterWord("stmk\xff\xff\xff\xff\xff\xff\xff\xff and more"))
	s.recordAnswer("gtmk", s.fourLetterWord("gtmk"))
	s.recordAnswer("stmk", s.fourLetterWord("stmk\x00\x00\x00\x00\x00\x00\x01\x32"))
	s.recordAnswer("gtmk", s.fourLetterWord("gtmk"))
}
