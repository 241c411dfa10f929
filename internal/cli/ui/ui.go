// Package ui has the subcommand that serves the web page.
package ui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/doctor"
	"github.com/lockstep-go/lockstep/internal/terminal"
	pages "github.com/lockstep-go/lockstep/ui"
)

// uiCommand is the subcommand that serves the web page.
type uiCommand struct {
	cli.ConnectionFlags
	listen       string
	open         bool
	allowActions bool
	hideData     bool
	unprotected  bool
	hosts        []string
	zone         string
	interval     cli.DurationFlag
	tlsCert      string
	tlsKey       string
}

// maxConnections is how many connections the page's server has at once.
const maxConnections = 1000

// Command is the subcommand of this package.
func Command(streams *cli.Streams) *cobra.Command {
	c := &uiCommand{interval: cli.DurationFlag(time.Second)}
	cmd := &cobra.Command{
		Use:   "ui [ROOT] [flags]",
		Short: "Serve a web page of what is wrong, and of all locks, elections, jobs, queues and workflows",
		Long: `Serve a web page of what is at and below ROOT (default /, which is --root), until a signal comes: first what
has stopped or is at risk, with what to do; then locks, elections, jobs, queues, barriers and workflows,
live. The page reads the cluster once for all who have it open, and not while nobody has.

It only shows, unless --allow-actions is given: then it has buttons that ask for a lock's release, take a
lock away, transfer a lead, run, pause and resume jobs, pause and resume queues, put dead letters back and
delete them, cancel, retry and signal workflows, cordon and drain members, and roll values back. Each is
confirmed, refused if what was shown has changed, and logged.

The page knows no users. So --listen takes an address that only this machine can reach, unless --unprotected
is given, too: then whoever reaches it sees everything, and can use --allow-actions. Put a proxy that knows
its users before it, and name it with --host. --hide-data hides data of items and locks, metadata, inputs,
results and errors.`,
		Example: `  lockstep ui --open
  lockstep ui /apps --listen 127.0.0.1:9000 --allow-actions
  lockstep ui --listen 0.0.0.0:8443 --tls-cert page.crt --tls-key page.key --host ops.example --unprotected`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return cli.EndQuietlyOnSignal(cmd.Context(), c.serve(cmd, args))
	})
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	f := cmd.Flags()
	f.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 is a free one")
	f.BoolVar(&c.open, "open", false, "open the page in a browser")
	f.BoolVar(&c.allowActions, "allow-actions", false, "have buttons that change something")
	f.BoolVar(&c.hideData, "hide-data", false, "hide what applications have written")
	f.BoolVar(&c.unprotected, "unprotected", false, "listen on an address that other machines can reach")
	f.StringArrayVar(&c.hosts, "host", nil, "host name by which browsers reach the page (repeatable)")
	f.StringVar(&c.zone, "zone", "Local", "time zone of the page")
	f.Var(&c.interval, "interval", "pause between two scans while the page is open")
	f.StringVar(&c.tlsCert, "tls-cert", "", "certificate of the page, a file")
	f.StringVar(&c.tlsKey, "tls-key", "", "its key, a file")
	cli.OfferFiles(cmd, "tls-cert")
	cli.OfferFiles(cmd, "tls-key")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return cmd
}

func (c *uiCommand) serve(cmd *cobra.Command, args []string) error {
	root, err := cli.RootArgument(args, "ROOT", "/")
	if err != nil {
		return err
	}
	options, err := c.pageOptions(root)
	if err != nil {
		return err
	}
	scheme, config := "http", (*tls.Config)(nil)
	if c.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
		if err != nil {
			return cli.UsageError("--tls-cert %s, --tls-key %s: %w", c.tlsCert, c.tlsKey, err)
		}
		scheme, config = "https", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}}
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(c.Streams, client)
	page, err := pages.New(client, append(options, pages.WithExamination(func(ctx context.Context) (all []pages.Check,
		err error) {
		err = doctor.Examine(ctx, client, root, func(check string, ok bool, text, advice string) {
			all = append(all, pages.Check{Name: check, OK: ok, Text: text, Advice: advice})
		})
		return all, err
	}))...)
	if err != nil {
		return cli.UsageError("%w", err)
	}
	defer page.Close()
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return cli.ExitWith(cli.ExitNoSession, err, "choose another address with --listen; port 0 is a free one")
	}
	address := scheme + "://" + listener.Addr().String() + "/"
	if err := c.printWelcome(address); err != nil {
		return errors.Join(err, listener.Close())
	}
	if c.open { // the address is printed anyway
		if err := terminal.OpenBrowser(address); err != nil {
			c.PrintWarning("--open: %v", err)
		}
	}
	return serveUntil(cmd.Context(), listener, config, page)
}

// pageOptions are the flags as options, or a usage error.
func (c *uiCommand) pageOptions(root string) ([]pages.Option, error) {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil {
		return nil, cli.UsageError("--listen %q is not host:port: %w", c.listen, err)
	}
	if resolved, err := net.ResolveTCPAddr("tcp", c.listen); err != nil {
		return nil, cli.UsageError("--listen %q: %w", c.listen, err)
	} else if !resolved.IP.IsLoopback() && !c.unprotected {
		return nil, cli.UsageError("--listen %q: other machines can reach it, and the page knows no users: give "+
			"--unprotected, too, if something else protects it", c.listen)
	}
	zone, err := time.LoadLocation(c.zone)
	if err != nil {
		return nil, cli.UsageError("--zone %q: %w", c.zone, err)
	}
	hosts := c.hosts
	if host != "" && net.ParseIP(host) == nil {
		hosts = append(hosts, host)
	}
	options := []pages.Option{pages.WithRoot(root), pages.WithZone(zone), pages.WithHosts(hosts...),
		pages.WithInterval(c.interval.AsDuration())}
	if c.allowActions {
		options = append(options, pages.WithActions())
	}
	if c.hideData {
		options = append(options, pages.WithHideData())
	}
	return options, nil
}

func (c *uiCommand) printWelcome(address string) error {
	if c.JSON {
		return cli.PrintResult(c.Out, true, map[string]string{"url": address})
	}
	if c.unprotected && c.allowActions {
		c.PrintWarning("whoever reaches %s can use the page's buttons", address)
	}
	_, err := fmt.Fprintf(c.Out, "The page is at %s\nCtrl-C ends it.\n", terminal.For(c.Out).Bold(address))
	return err
}

// serveUntil serves until ctx ends, by TLS if there is a config. Streams of open pages end with
// their requests' contexts.
func serveUntil(ctx context.Context, listener net.Listener, config *tls.Config, handler http.Handler) error {
	listener = &limitedListener{listener, make(chan struct{}, maxConnections)}
	if config != nil { // outermost: net/http serves HTTP/2 only on a connection that it sees to be of TLS
		listener = tls.NewListener(listener, config)
	}
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return requests }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// limitedListener accepts a limited number of connections at once.
type limitedListener struct {
	net.Listener
	free chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.free })}, nil
}

// limitedConn frees its place when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
