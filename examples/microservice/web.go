package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lockstep-go/lockstep/election"
)

// handler is the replica's pages.
func (r *replica) handler() http.Handler {
	short := http.NewServeMux()
	short.HandleFunc("GET /{$}", r.help)
	short.HandleFunc("POST /orders", r.order)
	short.HandleFunc("GET /status", r.status)
	short.Handle("GET /livez", r.health)
	short.Handle("GET /readyz", r.health)
	short.Handle("GET /metrics", r.tel.page)
	all := http.NewServeMux()
	all.Handle("/", http.TimeoutHandler(short, 10*time.Second, "too late\n"))
	all.Handle("/lockstep/", r.page) // whose open pages follow changes for as long as they like
	return all
}

// help answers with what to try.
func (r *replica) help(w http.ResponseWriter, asked *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "%s, a replica of the shop. Try:\n\n", r.client.Config().Identity)
	for _, try := range [][2]string{{"curl -L -X POST http://%s/orders", "the next number, from the leader"},
		{"curl http://%s/status", "who leads, and if this one does"},
		{"curl http://%s/readyz", "if this one is ready, or why not"},
		{"curl http://%s/metrics", "its metrics, for Prometheus"},
		{"http://%s/lockstep/", "the web page, for a browser"}} {
		fmt.Fprintf(w, "  %-45s %s\n", fmt.Sprintf(try[0], asked.Host), try[1])
	}
}

// order answers with a number and queues its receipt, or redirects the client to the leader. A
// number whose receipt was not queued remains unused.
func (r *replica) order(w http.ResponseWriter, asked *http.Request) {
	n, err := r.shop.order(asked.Context())
	if errors.Is(err, errNotLeading) {
		r.redirect(w, asked)
		return
	}
	if err == nil {
		err = r.receipts.Put(asked.Context(), n)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, n)
}

// redirect sends the client to the leader's address.
func (r *replica) redirect(w http.ResponseWriter, asked *http.Request) {
	leader, err := r.election.Leader(asked.Context())
	if err != nil || leader.Metadata["address"] == "" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no replica leads at the moment", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, asked, "http://"+leader.Metadata["address"]+asked.URL.Path, http.StatusTemporaryRedirect)
}

// status answers probes with the session's state, the leader, and whether this replica leads. It is
// 503 while the leader cannot be read.
func (r *replica) status(w http.ResponseWriter, asked *http.Request) {
	ctx, cancel := context.WithTimeout(asked.Context(), time.Second)
	defer cancel()
	leader, err := r.election.Leader(ctx)
	w.Header().Set("Content-Type", "application/json")
	if err != nil && !errors.Is(err, election.ErrNoLeader) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // the requester may have gone
		"session": r.client.Status().State.String(), "leading": err == nil && leader.ID == r.client.Config().Identity,
		"term": leader.Number, "address": leader.Metadata["address"]})
}
