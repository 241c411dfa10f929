package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
)

// web is a replica's HTTP handlers.
type web struct {
	client   *framework.Client
	shop     *shop
	receipts *queue.Queue[int64]
	election *election.Election
}

func newWeb(client *framework.Client, s *shop, receipts *queue.Queue[int64], tel *telemetry) http.Handler {
	w := &web{client, s, receipts, election.New(client, electionPath)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", w.help)
	mux.HandleFunc("POST /orders", w.order)
	mux.HandleFunc("GET /status", w.status)
	mux.Handle("GET /metrics", tel.page)
	return http.TimeoutHandler(mux, 10*time.Second, "too late\n")
}

// help answers with what to try.
func (w *web) help(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(rw, "%s, a replica of the shop. Try:\n\n", w.client.Config().Identity)
	for _, try := range [][2]string{{"curl -L -X POST http://%s/orders", "the next number, from the leader"},
		{"curl http://%s/status", "whether this replica leads, and the leader's address"},
		{"curl http://%s/metrics", "this replica's metrics, for Prometheus"}} {
		fmt.Fprintf(rw, "  %-48s %s\n", fmt.Sprintf(try[0], r.Host), try[1])
	}
}

// order answers with a number and queues its receipt, or redirects the client to the leader. A
// number whose receipt was not queued remains unused.
func (w *web) order(rw http.ResponseWriter, r *http.Request) {
	n, err := w.shop.order(r.Context())
	if errors.Is(err, errNotLeading) {
		w.redirect(rw, r)
		return
	}
	if err == nil {
		err = w.receipts.Put(r.Context(), n)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(rw, n)
}

// redirect sends the client to the leader's address.
func (w *web) redirect(rw http.ResponseWriter, r *http.Request) {
	leader, err := w.election.Leader(r.Context())
	if err != nil || leader.Metadata["address"] == "" {
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, "no replica leads at the moment", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(rw, r, "http://"+leader.Metadata["address"]+r.URL.Path, http.StatusTemporaryRedirect)
}

// status answers probes with the session's state, the leader, and whether this replica leads. It is
// 503 while the leader cannot be read.
func (w *web) status(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	leader, err := w.election.Leader(ctx)
	rw.Header().Set("Content-Type", "application/json")
	if err != nil && !errors.Is(err, election.ErrNoLeader) {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{ // the requester may have gone
		"session": w.client.Status().State.String(), "leading": err == nil && leader.ID == w.client.Config().Identity,
		"term": leader.Number, "address": leader.Metadata["address"]})
}

// serveWeb serves the pages from the application's start to its stop.
func serveWeb(lc fx.Lifecycle, l net.Listener, h http.Handler, c *framework.Client, log *slog.Logger,
	stop fx.Shutdowner) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			log.Info("listening", "address", l.Addr().String(), "id", c.Config().Identity)
			go func() {
				if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					log.Error("the server has failed", "error", err)
					_ = stop.Shutdown(fx.ExitCode(demo.ExitBroken)) // fails only if it is stopping
				}
			}()
			return nil
		},
		OnStop: server.Shutdown,
	})
}
