package reportjson_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// TestReportsAsJSON: programs read these forms, also from the command line's --json.
func TestReportsAsJSON(t *testing.T) {
	minutely := scheduler.State{Name: "j", Spec: "* * * * *", Zone: "UTC", Jitter: 1500 * time.Millisecond,
		Registered: noon, Last: noon, Fired: 1, Missed: map[scheduler.Reason]int64{scheduler.ReasonLate: 2},
		Pending: []scheduler.Run{{Job: "j", Tick: noon, Manual: true, Attempt: 1}},
		Running: []scheduler.RunRecord{{Number: 7, ID: "i", Tick: noon, Attempt: 1, Runner: "a", Started: noon}},
		Gaps:    []scheduler.Gap{{From: noon, To: noon, Count: 1, Reason: scheduler.ReasonLate}}}
	for name, c := range map[string]struct {
		report any
		want   string
	}{
		"lock": {locks.Report{Path: "/l", Kind: locks.MutexLock, Count: 1, Holders: []locks.Entry{{Node: "/l/n",
			Owner: "a\xff", Host: "h", PID: 5, Since: noon, Session: 0x10, Token: 3}}},
			`{"path":"/l","kind":"mutex","holders":[{"node":"/l/n","owner":"a\ufffd","host":"h","pid":5,
			"since":"2026-05-04T12:00:00Z","session":"0x10","token":3,"owner_base64":"Yf8="}],"waiters":null,
			"count":1}`},
		"double barrier": {barrier.Report{Path: "/b", Kind: barrier.KindDoubleBarrier, Needed: 3, Missing: 2,
			Waiting: []barrier.Member{{Node: "/b/m", Owner: "a\xff", Since: noon, Session: 0x10}}},
			`{"path":"/b","kind":"double barrier","needed":3,"missing":2,"waiting":[{"node":"/b/m","owner":"a\ufffd",
			"since":"2026-05-04T12:00:00Z","owner_base64":"Yf8=","session":"0x10"}]}`},
		"gate": {barrier.Report{Path: "/g", Kind: barrier.KindGate,
			RaisedBy: barrier.Member{Node: "/g", Owner: "a", Host: "h\xff", PID: 5}},
			`{"path":"/g","kind":"gate","missing":0,"raised_by":{"node":"/g","owner":"a","host":"h\ufffd","pid":5,
			"host_base64":"aP8="}}`},
		"candidate": {election.Candidate{ID: "a\xff", Token: 3, Node: "/e/n", Session: 0x10, Number: 2, Since: noon,
			Metadata: map[string]string{"k": "v"}, Trace: map[string]string{"traceparent": "t"}},
			`{"id":"a\ufffd","token":3,"node":"/e/n","term":2,"since":"2026-05-04T12:00:00Z","metadata":{"k":"v"},
			"id_base64":"Yf8=","session":"0x10"}`},
		"queue": {queue.Report{Path: "/q", Counts: queue.Counts{Items: 2, Delayed: 1, Dead: 3}, Oldest: noon,
			Retried: queue.Retried{Items: 1, Attempts: 4}},
			`{"path":"/q","items":2,"delayed":1,"dead":3,"oldest":"2026-05-04T12:00:00Z","paused":false,
			"retried":{"items":1,"attempts":4}}`},
		"claim": {queue.InFlightItem{Node: "/q/i", ID: "x", Session: 0x10, Owner: "a\xff", Since: noon, Enqueued: noon,
			Attempt: 1, Data: []byte("d\xff")},
			`{"item":"d\ufffd","item_base64":"ZP8=","node":"/q/i","id":"x","since":"2026-05-04T12:00:00Z",
			"enqueued":"2026-05-04T12:00:00Z","owner":"a\ufffd","attempt":1,"owner_base64":"Yf8=","session":"0x10"}`},
		"dead letter": {queue.DeadLetter{Node: "/q/d", Attempts: 2, LastError: "no", Data: []byte("d"), Buried: noon},
			`{"item":"d","node":"/q/d","attempts":2,"last_error":"no","buried":"2026-05-04T12:00:00Z"}`},
		"instance": {registry.Instance{Service: "s", ID: "i", Address: "h", Port: 80, SSLPort: 443, Weight: 1,
			Registered: noon, Payload: json.RawMessage(`{"k":1}`)},
			`{"service":"s","id":"i","address":"h","port":80,"ssl_port":443,"weight":1,
			"registered":"2026-05-04T12:00:00Z","payload":{"k":1}}`},
		"change of a member": {members.Change{Kind: members.Joined, Zxid: 9, Member: members.Member{ID: "m",
			Node: "/g/n", Session: 0x10, Joined: noon, State: members.Draining,
			Info:   members.Info{Version: "1", Load: 0.5},
			Cordon: &members.Cordon{ID: "m", Drain: true, Reason: "r", By: "b", Since: noon}}},
			`{"event":"joined","member":{"id":"m","node":"/g/n","joined":"2026-05-04T12:00:00Z","state":"draining",
			"cordon":{"id":"m","drain":true,"reason":"r","by":"b","since":"2026-05-04T12:00:00Z"},"session":"0x10",
			"version":"1","load":0.5},"zxid":9}`},
		"record of a value": {config.Record{Version: 7, Written: noon, By: "b", Note: "n", Data: []byte("")},
			`{"version":7,"written":"2026-05-04T12:00:00Z","by":"b","note":"n","text":""}`},
		"bytes of a value":  {config.Record{Version: 7, Data: []byte("\xff")}, `{"version":7,"bytes":"/w=="}`},
		"unreadable record": {config.Record{Version: 7, Err: errors.New("why")}, `{"version":7,"error":"why"}`},
		"job": {scheduler.Report{State: minutely, Path: "/s", At: noon.Add(time.Second),
			Members: []scheduler.Member{{ID: "a"}}, Owner: &scheduler.Member{ID: "a"},
			Findings: []scheduler.Finding{{Problem: scheduler.ProblemStuck, Since: noon, Text: "it hangs"}}},
			`{"job_path":"/s/j","name":"j","spec":"* * * * *","zone":"UTC","revision":0,"words":"every minute",
			"jitter_seconds":1.5,"registered":"2026-05-04T12:00:00Z","last":"2026-05-04T12:00:00Z","next":"2026-05-04T12:01:00Z",
			"number":0,"fired":1,"triggered":0,"failures":0,"missed":{"late":2},"pending":1,
			"pending_runs":[{"job":"j","tick":"2026-05-04T12:00:00Z","manual":true,"attempt":1}],
			"running":[{"number":7,"id":"i","tick":"2026-05-04T12:00:00Z","manual":false,"attempt":1,"runner":"a",
			"started":"2026-05-04T12:00:00Z","outcome":"running"}],
			"gaps":[{"from":"2026-05-04T12:00:00Z","to":"2026-05-04T12:00:00Z","count":1,"reason":"late"}],
			"path":"/s","at":"2026-05-04T12:00:01Z","owner":"a","members":["a"],
			"findings":[{"problem":"stuck","since":"2026-05-04T12:00:00Z","text":"it hangs"}]}`},
		"finding": {monitor.Finding{Problem: monitor.ProblemHold, Path: "/l", Since: noon, Text: "t"},
			`{"problem":"long hold","path":"/l","since":"2026-05-04T12:00:00Z","text":"t"}`},
	} {
		data, err := json.Marshal(c.report)
		require.NoError(t, err, name)
		require.JSONEq(t, c.want, string(data), "%s: %s", name, data)
	}
}

// TestRunsAreReadAgain as they were written: programs may decode what the command line prints.
func TestRunsAreReadAgain(t *testing.T) {
	for _, outcome := range []scheduler.Outcome{scheduler.Running, scheduler.TimedOut} {
		want := scheduler.RunRecord{Number: 3, ID: "i", Tick: noon, Started: noon, Outcome: outcome, Stuck: true}
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got scheduler.RunRecord
		require.NoError(t, json.Unmarshal(data, &got))
		require.Equal(t, want, got)
	}
}

// TestFarYearsBreakNoReport: any client may have stored them.
func TestFarYearsBreakNoReport(t *testing.T) {
	far := time.UnixMilli(9000000000000000)
	for _, report := range []any{
		locks.Entry{Since: far}, barrier.Member{Since: far}, election.Candidate{Since: far},
		queue.Report{Oldest: far}, queue.InFlightItem{Since: far, Enqueued: far},
		queue.DeadLetter{Enqueued: far, Buried: far},
		registry.Instance{Registered: far}, members.Member{Joined: far, Changed: far},
		members.Member{Cordon: &members.Cordon{Since: far}}, config.Record{Written: far},
	} {
		_, err := json.Marshal(report)
		require.NoError(t, err, "%T", report)
	}
}
