package ensemble

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const fourLetterPatience = 2 * time.Second

// FourLetter sends a four-letter word such as "srvr" to the server at addr and
// returns its answer. It waits at most two seconds, so it returns an error if the
// server is frozen.
func FourLetter(addr, word string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, fourLetterPatience)
	if err != nil {
		return "", fmt.Errorf("ensemble: %s: %w", word, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(fourLetterPatience)); err != nil {
		return "", fmt.Errorf("ensemble: %s: %w", word, err)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("ensemble: %s: %w", word, err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("ensemble: %s: %w", word, err)
	}
	return string(answer), nil
}

// Mode returns the mode of the server at addr: "leader", "follower", "observer" or
// "standalone", and "" if it does not serve.
func Mode(addr string) string {
	answer, err := FourLetter(addr, "srvr")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}

// Counter returns one number of the "mntr" report of the server at addr, such as
// "zk_packets_received".
func Counter(addr, name string) (int64, error) {
	answer, err := FourLetter(addr, "mntr")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if key == name {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("ensemble: mntr of %s has no %s", addr, name)
}

// Total returns the sum of a counter over several servers.
func Total(addrs []string, name string) (int64, error) {
	var sum int64
	for _, addr := range addrs {
		n, err := Counter(addr, name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
