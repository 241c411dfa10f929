package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// serverAnswer is a server's answer about itself.
type serverAnswer struct {
	address   string
	mode      string // leader, follower, observer, standalone; "" if unknown
	version   string
	latency   string // min/avg/max in milliseconds
	roundTrip time.Duration
	tick      time.Duration // 0 if unknown
	failures  int           // how often an error has stopped it since its start; 0 if unknown
	err       error
}

const (
	srvrTimeout   = 3 * time.Second
	maxSrvrAnswer = 64 << 10
)

var (
	errNotServing = errors.New("it answers, but serves no requests")
	errHungUp     = errors.New("it accepted the connection, and closed it without an answer")
)

// askServers asks all servers at once.
func askServers(ctx context.Context, cfg framework.Config) []serverAnswer {
	answers := make([]serverAnswer, len(cfg.Servers))
	var asking sync.WaitGroup
	for i, address := range cfg.Servers {
		asking.Go(func() { answers[i] = askServer(ctx, cfg, address) })
	}
	asking.Wait()
	return answers
}

// askServer asks a server for its role with the four-letter word srvr, and for what it tells by conf
// and mntr, which servers do not allow by default.
func askServer(ctx context.Context, cfg framework.Config, address string) serverAnswer {
	a := serverAnswer{address: address}
	if !strings.Contains(address, ":") {
		address += ":2181"
	}
	began := time.Now()
	var text string
	if text, a.err = sendWord(ctx, cfg, address, "srvr"); a.err != nil {
		return a
	}
	a.roundTrip = time.Since(began)
	if strings.Contains(text, "not currently serving") {
		a.err = errNotServing
		return a
	}
	fields := wordFields(text, ": ")
	a.mode, a.latency = fields["Mode"], fields["Latency min/avg/max"]
	a.version, _, _ = strings.Cut(fields["Zookeeper version"], "-") // and a commit
	if text, err := sendWord(ctx, cfg, address, "conf"); err == nil {
		if tick, err := time.ParseDuration(wordFields(text, "=")["tickTime"] + "ms"); err == nil {
			a.tick = tick
		}
	}
	if text, err := sendWord(ctx, cfg, address, "mntr"); err == nil {
		a.failures, _ = strconv.Atoi(wordFields(text, "\t")["zk_unrecoverable_error_count"])
	}
	return a
}

// wordFields returns the names and values in the lines of an answer.
func wordFields(text, separator string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), separator); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// sendWord sends a four-letter word and returns the answer.
func sendWord(ctx context.Context, cfg framework.Config, address, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, srvrTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if hasHungUp(err) {
		return "", errHungUp
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if cfg.TLS != nil {
		secure := cfg.TLS.Clone()
		if secure.ServerName == "" {
			secure.ServerName, _, _ = net.SplitHostPort(address)
		}
		conn = tls.Client(conn, secure)
	}
	if _, err := io.WriteString(conn, word); hasHungUp(err) {
		return "", errHungUp
	} else if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxSrvrAnswer))
	if len(answer) == 0 && (err == nil || hasHungUp(err)) {
		err = errHungUp
	}
	return string(answer), err
}

// hasHungUp reports whether an error, also of a dial, says that the server has closed the connection.
func hasHungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
