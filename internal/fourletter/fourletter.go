// Package fourletter asks servers about themselves with ZooKeeper's four-letter words: each on a
// connection of its own, without a session and without credentials.
package fourletter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// Asker asks servers. The zero value asks over TCP.
type Asker struct {
	// Dial opens connections, as net.Dialer.DialContext does. TLS is not applied to them.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for connections without Dial.
	TLS *tls.Config
}

// OfClient returns an Asker whose connections are made as those of a client.
func OfClient(client *framework.Client) Asker {
	return Asker{Dial: primitives.DialerOf(client), TLS: client.Config().TLS}
}

// Server is what a server has answered about itself.
type Server struct {
	Mode      string // leader, follower, observer, standalone or read-only; "" if it does not tell
	Version   string
	Latency   string        // of its requests: min/avg/max in milliseconds
	RoundTrip time.Duration // with making the connection
}

const (
	patience  = 3 * time.Second // for an answer
	maxAnswer = 64 << 10
	maxField  = 60 // bytes of a value in an answer
)

// The errors of servers that can be reached. Others say that a server cannot.
var (
	ErrNotServing = errors.New("it answers, but serves no requests")
	ErrHungUp     = errors.New("it accepted the connection, and closed it without an answer")
)

// Ask asks a server, host:port or host:port/address, for its role with the word srvr. A server
// whose configuration forbids the word has no Mode. It waits 3 s at most.
func (a Asker) Ask(ctx context.Context, server string) (Server, error) {
	began := time.Now()
	text, err := a.Send(ctx, server, "srvr")
	if err != nil {
		return Server{}, err
	}
	answered, err := parse(text)
	answered.RoundTrip = time.Since(began)
	return answered, err
}

func parse(text string) (Server, error) {
	if strings.Contains(text, "not currently serving") {
		return Server{}, ErrNotServing
	}
	fields := Fields(text, ": ")
	version, _, _ := strings.Cut(fields["Zookeeper version"], "-") // and a commit
	return Server{Mode: fields["Mode"], Latency: fields["Latency min/avg/max"], Version: version}, nil
}

// Fields returns the names and values in the lines of an answer. It cuts long values.
func Fields(text, separator string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), separator); ok {
			value = strings.TrimSpace(value)
			fields[name] = value[:min(len(value), maxField)]
		}
	}
	return fields
}

// Send sends a four-letter word and returns the answer. It waits 3 s at most. The error is that of
// ctx if it has ended, wraps ErrHungUp, or says why there is no answer.
func (a Asker) Send(ctx context.Context, server, word string) (string, error) {
	asking, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %v", patience))
	defer cancel()
	answer, err := a.exchange(asking, server, word)
	if err != nil && asking.Err() != nil {
		err = context.Cause(asking)
	}
	return answer, err
}

func (a Asker) exchange(ctx context.Context, server, word string) (string, error) {
	name, address, resolved := strings.Cut(server, "/")
	if !resolved {
		address = name
	}
	if !strings.Contains(address, ":") {
		address += ":2181"
	}
	dial := a.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if hasHungUp(err) {
		return "", ErrHungUp
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	talk := conn
	if a.Dial == nil && a.TLS != nil {
		secure := a.TLS.Clone()
		if secure.ServerName == "" {
			if secure.ServerName, _, err = net.SplitHostPort(name); err != nil {
				secure.ServerName = name
			}
		}
		talk = tls.Client(conn, secure)
	}
	if _, err := io.WriteString(talk, word); hasHungUp(err) {
		return "", ErrHungUp
	} else if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(talk, maxAnswer))
	if len(answer) == 0 && (err == nil || hasHungUp(err)) {
		err = ErrHungUp
	}
	return string(answer), err
}

// hasHungUp reports whether an error, also of a dial or of TLS, says that the server has closed the
// connection.
func hasHungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}
