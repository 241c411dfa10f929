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
	Peer     string         `json:"peer"`
	Workload string         `json:"workload"`
	Params   map[string]any `json:"params"`
	N        int            `json:"n"`
	Seconds  float64        `json:"seconds"`
	OpsPerS  *float64       `json:"ops_per_s"`
	P50      *float64       `json:"p50_ms"`
	P99      *float64       `json:"p99_ms"`

	Requests    *float64           `json:"requests_per_cycle,omitempty"`
	ByOperation map[string]float64 `json:"requests_by_operation,omitempty"` // per cycle, with -trace

	Self       *int      `json:"self,omitempty"`   // acquires by the last holder
	Least      *int      `json:"least,omitempty"`  // cycles of the least served contender
	Most       *int      `json:"most,omitempty"`   // and of the most served one
	Shares     []float64 `json:"shares,omitempty"` // of the cycles, by process
	PerHandoff *float64  `json:"ms_per_handoff,omitempty"`
	QueueingS  *float64  `json:"queueing_s,omitempty"`

	Bytes      *int `json:"bytes_per_waiter,omitempty"` // heap and stack
	HeapBytes  *int `json:"heap_bytes_per_waiter,omitempty"`
	StackBytes *int `json:"stack_bytes_per_waiter,omitempty"`
	JobBytes   *int `json:"bytes_per_job,omitempty"` // heap and stack, of one member
	Goroutines *int `json:"goroutines,omitempty"`    // of the whole process

	Writes    *float64 `json:"writes_per_client_s,omitempty"` // that the ensemble agreed on
	ServerCPU *float64 `json:"server_cpu_ms_per_s,omitempty"` // of all servers; on Linux, if they run on this machine

	AnswerBytes *int  `json:"answer_bytes_per_client,omitempty"`
	Held        *bool `json:"held,omitempty"` // the holder of the line has kept its lease

	Worst       *float64 `json:"max_ms,omitempty"`
	Arming      *float64 `json:"watchdog_armed_p50_ms,omitempty"`    // from its start
	WatchdogKiB *int     `json:"watchdog_rss_anon_kib,omitempty"`    // the most of one
	WatchdogCPU *float64 `json:"watchdog_idle_cpu_max_ms,omitempty"` // in the second or two before the leader's end
}

// newResult fills in what every workload has.
func newResult(s settings, peer string, params map[string]any, n int, took time.Duration,
	laps []time.Duration) *result {
	r := &result{Peer: peer, Workload: s.workload, Params: params, N: n, Seconds: took.Seconds()}
	if n > 0 && took > 0 {
		r.OpsPerS = ptr(float64(n) / took.Seconds())
	}
	slices.Sort(laps)
	if len(laps) > 0 {
		r.P50, r.P99 = ptr(ms(laps[len(laps)/2])), ptr(ms(laps[min(len(laps)*99/100, len(laps)-1)]))
	}
	return r
}

// requests adds the requests per cycle to the result.
func (r *result) requests(t traffic) *result { return r.requestsOf(t, r.N) }

// requestsOf adds the requests per cycle to the result. The traffic is that of n cycles; the result
// may be about a part of them.
func (r *result) requestsOf(t traffic, n int) *result {
	if n == 0 {
		return r
	}
	if t.Received >= 0 {
		r.Requests = ptr(float64(t.Received) / float64(n))
	}
	for op, sent := range t.Sent {
		if sent == 0 {
			continue
		}
		if r.ByOperation == nil {
			r.ByOperation = map[string]float64{}
		}
		r.ByOperation[op] = float64(sent) / float64(n)
	}
	return r
}

// stdout is where results go.
var stdout io.Writer = os.Stdout

func (r *result) print() error { return json.NewEncoder(stdout).Encode(r) }

func ptr[T any](v T) *T { return &v }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
