package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"
)

// result is one line of output. Rates and latencies that were not measured are null.
type result struct {
	Peer      string         `json:"peer"`
	Workload  string         `json:"workload"`
	Params    map[string]any `json:"params"`
	N         int            `json:"n"`
	Seconds   float64        `json:"seconds"`
	OpsPerS   *float64       `json:"ops_per_s"`
	P50       *float64       `json:"p50_ms"`
	P99       *float64       `json:"p99_ms"`
	Requests  *float64       `json:"requests_per_cycle,omitempty"`
	Self      *int           `json:"self,omitempty"`
	Least     *int           `json:"least,omitempty"`
	Most      *int           `json:"most,omitempty"`
	PerHand   *float64       `json:"ms_per_handoff,omitempty"`
	QueueingS *float64       `json:"queueing_s,omitempty"`
}

// newResult fills in what every workload has.
func newResult(s settings, peer string, params map[string]any, n int, took time.Duration, laps []time.Duration) *result {
	r := &result{Peer: peer, Workload: s.workload, Params: params, N: n, Seconds: took.Seconds()}
	if r.Params == nil {
		r.Params = map[string]any{}
	}
	if n > 0 && took > 0 {
		r.OpsPerS = of(float64(n) / took.Seconds())
	}
	slices.Sort(laps)
	if len(laps) > 0 {
		r.P50, r.P99 = of(ms(laps[len(laps)/2])), of(ms(laps[min(len(laps)*99/100, len(laps)-1)]))
	}
	return r
}

// requests adds the growth of the servers' counters per cycle, if they could be read.
func (r *result) requests(before, after int, ok bool) *result {
	if ok && r.N > 0 {
		r.Requests = of(float64(after-before) / float64(r.N))
	}
	return r
}

// stdout is where results go.
var stdout io.Writer = os.Stdout

func (r *result) print() error { return json.NewEncoder(stdout).Encode(r) }

func of[T any](v T) *T { return &v }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
