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

// playWords asks each four-letter word, and of those that tell what differs from server to server only how they begin.
func playWords(s *scribe) {
	for _, word := range []string{"ruok", "isro", "srst", "crst", "gtmk", "nope", "RUOK"} {
		s.say(word, s.ask(word))
	}
	for _, word := range []string{"srvr", "stat", "conf", "cons", "dump", "dirs", "envi", "mntr", "wchc", "wchp", "wchs"} {
		s.say(word, strings.Join(beginning.FindStringSubmatch(s.ask(word)), "|"))
	}
}

// beginning is a word's first line up to the first number.
var beginning = regexp.MustCompile(`^[^\n0-9]*`)

func (s *scribe) ask(bytes string) string {
	s.t.Helper()
	v := s.voice("word")
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

func (s *scribe) say(word, answer string) {
	s.log = append(s.log, shortened(fmt.Sprintf("%s: %q", word, answer)))
}

func playWatchWords(s *scribe) {
	a, b := s.open("a"), s.open("b")
	a.create("/watchwords", "", 0)
	a.create("/watchwords/e", "", wire.FlagEphemeral)
	a.watchData("/watchwords")
	b.watchExists("/watchwords")
	b.watchChildren("/watchwords")
	for _, word := range []string{"wchs", "wchc", "wchp"} {
		s.unordered(func() { // the real server's order is that of a hash table
			for line := range strings.Lines(s.named(s.ask(word))) {
				s.say(word, line)
			}
		})
	}
	_, ephemerals, _ := strings.Cut(s.named(s.ask("dump")), "ephemeral nodes dump:\n")
	ephemerals, _, _ = strings.Cut(ephemerals, "Connections dump:")
	s.say("dump", ephemerals)
	for _, word := range []string{"cons", "stat"} {
		s.say(word, fmt.Sprint(strings.Count(s.ask(word), "queued=0,recved=")))
	}
	s.say("conf", strings.Join(settingNames.FindAllString(s.ask("conf"), -1), ""))
}

// settingNames are the names of settings before their values.
var settingNames = regexp.MustCompile(`(?m)^\w+=`)

// named puts the names of sessions for their ids.
func (s *scribe) named(text string) string {
	for id, name := range s.names {
		text = strings.ReplaceAll(text, fmt.Sprintf("0x%x", id), name)
	}
	return text
}

func playTraceMask(s *scribe) {
	s.say("gtmk", s.ask("gtmk"))
	s.say("stmk", s.ask("stmk\x00\x00\x00\x00\x00\x00\x01\x00"))
	s.say("gtmk", s.ask("gtmk"))
	s.say("stmk", s.ask("stmk\xff\xff\xff\xff\xff\xff\xff\xff and more"))
	s.say("gtmk", s.ask("gtmk"))
	s.say("stmk", s.ask("stmk\x00\x00\x00\x00\x00\x00\x01\x32"))
	s.say("gtmk", s.ask("gtmk"))
}
