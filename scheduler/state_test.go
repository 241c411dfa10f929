package scheduler

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func golden(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/state-v1.json")
	require.NoError(t, err)
	return []byte(strings.TrimSpace(string(data)))
}

func fullState(t testing.TB) State {
	return State{
		Spec: "*/5 * * * *", Zone: "Europe/Berlin",
		Last: at(t, "2026-05-04T10:15:00Z"), Held: at(t, "2026-05-04T10:20:00Z"),
		Running: &RunRecord{ID: "20260504T101500Z-1a", Tick: at(t, "2026-05-04T10:15:00Z"), Token: 26, Runner: "host-1",
			Started: at(t, "2026-05-04T10:15:00.25Z")},
		LastRun: &RunRecord{ID: "20260504T101000Z-1a", Tick: at(t, "2026-05-04T10:10:00Z"), Token: 26, Runner: "host-2",
			Started: at(t, "2026-05-04T10:10:00Z"), Ended: at(t, "2026-05-04T10:11:00Z"), Error: "no disk"},
		Fired: 7, Missed: map[Reason]int64{ReasonOverlap: 2, ReasonNoLeader: 3},
		Gaps: []Gap{
			{From: at(t, "2026-05-04T09:00:00Z"), To: at(t, "2026-05-04T09:10:00Z"), Count: 3, Reason: ReasonNoLeader},
			{From: at(t, "2026-05-04T09:30:00Z"), To: at(t, "2026-05-04T09:35:00Z"), Count: 2, Reason: ReasonOverlap},
		},
	}
}

func TestStateIsStoredAsThisReleaseWritesIt(t *testing.T) {
	data, err := fullState(t).encode()
	require.NoError(t, err)
	require.Equal(t, string(golden(t)), string(data))
	s, err := decodeState(golden(t))
	require.NoError(t, err)
	require.Equal(t, int64(12), s.Due())
	require.Equal(t, ReasonOverlap, s.Gaps[1].Reason)
	require.Equal(t, fullState(t).Running.Started, s.Running.Started)
}

func TestUnknownFieldsSurviveRewriting(t *testing.T) {
	stored := `{"v":1,"spec":"* * * * *","zone":"UTC","paused":{"by":"me"},"Spec":"not ours","fired":1,
		"running":{"id":"x","tick":"2026-05-04T10:15:00Z","token":1,"attempt":3},
		"gaps":[{"from":"2026-05-04T09:00:00Z","to":"2026-05-04T09:00:00Z","count":1,"reason":"moon","note":"n"}]}`
	s, err := decodeState([]byte(stored))
	require.NoError(t, err)
	require.Equal(t, "* * * * *", s.Spec)
	s = s.finished(at(t, "2026-05-04T10:16:00Z"), nil)
	data, err := s.encode()
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	require.Equal(t, map[string]any{"by": "me"}, m["paused"])
	require.Equal(t, "not ours", m["Spec"])
	require.NotContains(t, m, "running")
	require.EqualValues(t, 3, m["lastRun"].(map[string]any)["attempt"])
	require.Equal(t, "n", m["gaps"].([]any)[0].(map[string]any)["note"])
}

func TestStatesThatCannotBeReadAreRefused(t *testing.T) {
	_, err := decodeState([]byte(`{"v":2,"spec":{"new":"shape"}}`))
	require.ErrorIs(t, err, ErrNewerState)
	require.ErrorContains(t, err, "version 2")
	for _, data := range []string{"", "null", "[]", "7", "garbage", "{}", `{"v":0}`, `{"v":-1}`, `{"v":"1"}`, `{"v":1.5}`, `{"v":1,"fired":-1}`,
		`{"v":1,"missed":{"x":-1}}`, `{"v":1,"last":"yesterday"}`, `{"v":1,"last":"1899-01-01T00:00:00Z"}`,
		`{"v":1,"gaps":[{"from":"0000-01-01T00:00:00+01:00"}]}`, `{"v":1,"running":[]}`, `{"v":1} x`, "\x00\x01"} {
		_, err := decodeState([]byte(data))
		require.ErrorIs(t, err, ErrBadState, "%q", data)
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte(`{"v":1,"gaps":[{"x":1}],"running":{"id":"a","y":null},"z":[1,2]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeState(data)
		if err != nil {
			return
		}
		once, err := s.encode()
		require.NoError(t, err)
		again, err := decodeState(once)
		require.NoError(t, err)
		twice, err := again.encode()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func TestErrorTextsAreStoredShortAndValid(t *testing.T) {
	require.Empty(t, errorText(nil))
	require.NotEmpty(t, errorText(errorString("")))
	long := errorText(errorString(strings.Repeat("é", 5000) + "\xff"))
	require.Less(t, len(long), maxErrorText+10)
	data, err := State{}.finishedFor(t, errorString("a\xffb")).encode()
	require.NoError(t, err)
	require.True(t, json.Valid(data))
}

type errorString string

func (e errorString) Error() string { return string(e) }

func (s State) finishedFor(t testing.TB, err error) State {
	s.Running = &RunRecord{ID: "x", Tick: at(t, "2026-05-04T10:15:00Z")}
	return s.finished(at(t, "2026-05-04T10:16:00Z"), err)
}

func minuteJob(t testing.TB, deadline time.Duration) *job {
	t.Helper()
	j, err := newJob(Job{Name: "j", Spec: "* * * * *", Deadline: deadline, Run: nop})
	require.NoError(t, err)
	return j
}

func TestPlans(t *testing.T) {
	base := at(t, "2026-05-04T10:00:00Z")
	minute := func(n int) time.Time { return base.Add(time.Duration(n) * time.Minute) }
	running := &RunRecord{ID: "r", Tick: minute(0)}
	for name, c := range map[string]struct {
		state   State
		now     time.Time
		going   bool
		tick    time.Time
		missed  []Gap
		fired   int64
		running bool
	}{
		"nothing is due before the registration": {state: State{Registered: minute(5)}, now: minute(5)},
		"nothing is due":                         {state: State{Last: base}, now: minute(1).Add(-1)},
		"a tick is due":                          {state: State{Last: base}, now: minute(1), tick: minute(1), fired: 1},
		"the clock was set back":                 {state: State{Last: base}, now: minute(-50)},
		"the latest of a gap": {state: State{Last: base}, now: minute(10), tick: minute(10), fired: 1,
			missed: []Gap{{From: minute(1), To: minute(9), Count: 9, Reason: ReasonNoLeader}}},
		"all are too old": {state: State{Last: base}, now: minute(2).Add(31 * time.Second),
			missed: []Gap{{From: minute(1), To: minute(2), Count: 2, Reason: ReasonNoLeader}}},
		"young enough": {state: State{Last: base}, now: minute(1).Add(30 * time.Second), tick: minute(1), fired: 1},
		"overlap": {state: State{Last: base, Running: running, Fired: 1}, now: minute(2), going: true, fired: 1, running: true,
			missed: []Gap{{From: minute(1), To: minute(2), Count: 2, Reason: ReasonOverlap}}},
		"the runner was lost, nothing due": {state: State{Last: base, Running: running, Fired: 1}, now: base,
			missed: []Gap{{From: base, To: base, Count: 1, Reason: ReasonRunnerLost}}},
		"the runner was lost": {state: State{Last: base, Running: running, Fired: 1}, now: minute(1), tick: minute(1), fired: 1,
			missed: []Gap{{From: base, To: base, Count: 1, Reason: ReasonRunnerLost}}},
	} {
		p := minuteJob(t, 30*time.Second).plan(c.state, c.now, c.going, ReasonNoLeader)
		require.Equal(t, c.tick, p.tick, name)
		require.Equal(t, c.missed, p.missed, name)
		require.Equal(t, c.fired, p.state.Fired, name)
		require.Equal(t, c.running, p.state.Running != nil, name)
		require.Equal(t, c.tick.IsZero() && c.missed == nil, p.idle(), name)
	}
}

func TestGapsThatGoOnAreOneRowAndTheRowsAreBounded(t *testing.T) {
	j := minuteJob(t, 0)
	s := State{Last: at(t, "2026-05-04T10:00:00Z")}
	for i := range 30 {
		s = j.plan(s, s.Last.Add(time.Minute), true, ReasonLate).state
		require.Len(t, s.Gaps, 1)
		require.EqualValues(t, i+1, s.Gaps[0].Count)
	}
	for range 300 {
		s = j.plan(s, s.Last.Add(time.Minute), true, ReasonLate).state
		s = j.plan(s, s.Last.Add(time.Minute), false, ReasonLate).state
	}
	require.Len(t, s.Gaps, maxGaps)
	require.EqualValues(t, 330, s.Missed[ReasonOverlap])
	require.EqualValues(t, 300, s.Fired)
	require.EqualValues(t, 630, s.Due())
}
