// Command night shows the web page of a night on which several things go wrong, all in one process, on a
// ZooKeeper in memory: two services hold a lock each and wait for the other's, so waiters gather, a queue
// grows, and a job fails.
//
//	go run ./examples/night
//
// It prints the page's address and runs until Ctrl-C. Buttons are on: ask a holder to release, pause the
// job, and see what changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address of the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		log.Fatal(err)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, listen string) error {
	zk, err := zktest.New()
	if err != nil {
		return err
	}
	defer zk.Close()
	n := &night{zk: zk}
	defer n.end()
	if err := n.begin(ctx); err != nil {
		return err
	}
	client, err := n.connect(ctx, "page")
	if err != nil {
		return err
	}
	page, err := ui.New(client, ui.WithRoot("/apps"), ui.WithActions())
	if err != nil {
		return err
	}
	defer page.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("The page is at http://%s/\nIn half a minute it shows a deadlock, a queue that grows and a job "+
		"that fails.\nCtrl-C ends it.\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// connect connects a process of the night.
func (n *night) connect(ctx context.Context, name string) (*framework.Client, error) {
	client, err := framework.Connect(ctx, framework.Config{Servers: n.zk.Servers(), Identity: name},
		append([]framework.Option{framework.WithDialer(n.zk.Link(name).DialContext),
			framework.WithLogger(slog.New(slog.DiscardHandler))}, n.options...)...)
	if err == nil {
		n.clients = append(n.clients, client)
	}
	return client, err
}
