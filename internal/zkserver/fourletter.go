package zkserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// fourLetterWords are the commands a connection may begin with instead of a
// handshake.
var fourLetterWords map[string]func(*Server, *strings.Builder)

// everyWord in a whitelist stands for all words; srvr needs no whitelist, as the real server's scripts depend on it.
const everyWord, freeWord = "*", "srvr"

// setTraceMask is the one word with an argument, of eight bytes.
const setTraceMask = "stmk"

// Set here, since the functions refer to the server, and it to the map.
func init() {
	fourLetterWords = map[string]func(*Server, *strings.Builder){
		"ruok":       func(_ *Server, w *strings.Builder) { fmt.Fprint(w, "imok") },
		"isro":       func(_ *Server, w *strings.Builder) { fmt.Fprint(w, "rw") },
		"srvr":       (*Server).writeServer,
		"stat":       (*Server).writeStat,
		"mntr":       (*Server).writeMonitor,
		"wchs":       (*Server).writeWatchSummary,
		"wchc":       (*Server).writeWatchesByClient,
		"wchp":       (*Server).writeWatchesByPath,
		"cons":       (*Server).writeConnections,
		"conf":       (*Server).writeConfig,
		"envi":       (*Server).writeEnvironment,
		"dump":       (*Server).writeDump,
		"dirs":       (*Server).writeDirectories,
		"hash":       func(*Server, *strings.Builder) {}, // the real one tells digests of its tree, which this one has not
		"srst":       (*Server).resetServer,
		"crst":       (*Server).resetConnections,
		"gtmk":       (*Server).writeTraceMask,
		setTraceMask: (*Server).writeTraceMask,
	}
}

// fourLetter answers a four-letter word and closes the connection.
func (s *Server) fourLetter(c *conn, word string, in *bufio.Reader) {
	enabled := s.answers(word)
	var mask [len(setTraceMask) + 8]byte
	if word == setTraceMask && enabled {
		if _, err := io.ReadFull(in, mask[:]); err != nil {
			return
		}
	}
	if !s.enter(c) {
		return
	}
	defer s.mu.Unlock()
	s.countReceived(c)
	var out strings.Builder
	switch {
	case !enabled:
		fmt.Fprintf(&out, "%s is not executed because it is not in the whitelist.\n", word)
	case s.failure != nil && word != "ruok":
		fmt.Fprintln(&out, "This ZooKeeper instance is not currently serving requests")
	default:
		if word == setTraceMask {
			s.traceMask = int64(binary.BigEndian.Uint64(mask[len(setTraceMask):]))
		}
		fourLetterWords[word](s, &out)
	}
	s.send(c, []byte(out.String()), 0)
	s.finish(c)
}

// answers reports whether the whitelist has the word.
func (s *Server) answers(word string) bool {
	list := s.config.FourLetterWords
	return list == nil || word == freeWord || slices.Contains(list, word) || slices.Contains(list, everyWord)
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
