package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// connectPatience bounds the wait for each session. The tests of servers that do not answer shorten
// it.
var connectPatience = 15 * time.Second

// open connects one client, with the common options and more.
func open(s settings, more ...framework.Option) (*framework.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	opts := []framework.Option{framework.WithLogger(slog.New(slog.DiscardHandler))}
	if s.sent != nil {
		opts = append(opts, s.sent.dialer())
	}
	c, err := framework.Connect(ctx, framework.Config{Servers: s.servers, SessionTimeout: s.session},
		append(opts, more...)...)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: start the servers, or name others with -zk", err) // it lists the servers
	}
	return c, err
}

func openAll(s settings, n int) ([]*framework.Client, error) {
	clients := make([]*framework.Client, n)
	for i := range clients {
		var err error
		if clients[i], err = open(s); err != nil {
			closeAll(clients[:i]...)
			return nil, err
		}
	}
	return clients, nil
}

func closeAll(clients ...*framework.Client) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { _ = c.Close(context.Background()) })
	}
	wg.Wait()
}

var received = regexp.MustCompile(`zk_packets_received\t(\d+)`)

// requests returns how many packets the servers have received. ok is false if a server does not
// report it (mntr must be in its 4lw.commands.whitelist).
func requests(s settings) (total int, ok bool) {
	for _, server := range s.servers {
		n, err := packets(server)
		if err != nil {
			return 0, false
		}
		total += n
	}
	return total, true
}

func packets(server string) (int, error) {
	text, err := askServer(server, "mntr")
	if err != nil {
		return 0, err
	}
	m := received.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s does not answer mntr", server)
	}
	return strconv.Atoi(string(m[1]))
}

// askServer sends a four-letter word and returns the answer.
func askServer(server, word string) ([]byte, error) {
	c, err := net.DialTimeout("tcp", server, time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(connectPatience)); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte(word)); err != nil {
		return nil, err
	}
	return io.ReadAll(c)
}

// settle waits until the servers receive little more than pings.
func settle(s settings) {
	for range 20 {
		before, ok := requests(s)
		time.Sleep(500 * time.Millisecond)
		after, _ := requests(s)
		if !ok || after-before <= 8 {
			return
		}
	}
}
