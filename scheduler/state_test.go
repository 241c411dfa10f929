package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

func golden(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/state-v1.json")
	require.NoError(t, err)
	return []byte(strings.TrimSpace(string(data)))
}

func fullState(t testing.TB) jobState {
	return jobState{
		Spec: "*/5 * * * *", Zone: "Europe/Berlin", Revision: 3, DeclaredSpec: "0 * * * *", DeclaredZone: "UTC",
		Since: at(t, "2026-05-04T08:00:00Z"), Paused: at(t, "2026-05-04T10:16:00Z"),
		Last:      at(t, "2026-05-04T10:15:00Z"),
		HoldUntil: at(t, "2026-05-04T10:20:00Z"), Number: 9,
		Running: []storedRun{{
			RunRecord: RunRecord{Number: 9, ID: "20260504T101500Z-9", Tick: at(t, "2026-05-04T10:15:00Z"), Attempt: 2,
				Runner:  "host-1",
				Started: at(t, "2026-05-04T10:15:00.25Z"), Stuck: true},
			Member: "ab-1", Replace: true,
		}},
		Pending: []pendingRun{{Tick: at(t, "2026-05-04T10:15:30Z"), Manual: true, Attempt: 1, Request: "r-2"}},
		LastRun: &storedRun{
			RunRecord: RunRecord{Number: 8, ID: "20260504T101000Z-8", Tick: at(t, "2026-05-04T10:10:00Z"), Manual: true,
				Attempt: 1, Token: 26,
				Runner: "host-2", Started: at(t, "2026-05-04T10:10:00Z"), Ended: at(t, "2026-05-04T10:11:00Z"),
				Outcome: Failed, Error: "no disk"},
			Request: "r-1",
		},
		Requests: []string{"r-1", "r-2"},
		Replaced: []replacedSchedule{{Spec: "0 * * * *", Zone: "UTC", Last: at(t, "2026-05-04T10:00:00Z")}},
		Fired:    7, Failures: 1, Missed: map[Reason]int64{ReasonOverlap: 2, ReasonNoLeader: 3},
		Gaps: []storedGap{
			{Gap: Gap{From: at(t, "2026-05-04T09:00:00Z"), To: at(t, "2026-05-04T09:10:00Z"), Count: 3,
				Reason: ReasonNoLeader}},
			{Gap: Gap{From: at(t, "2026-05-04T09:30:00Z"), To: at(t, "2026-05-04T09:35:00Z"), Count: 2,
				Reason: ReasonOverlap}},
		},
	}
}

func TestStateIsStoredAsThisReleaseWritesIt(t *testing.T) {
	data, err := fullState(t).encode()
	require.NoError(t, err)
	require.Equal(t, string(golden(t)), string(data))
	s, err := decodeState(golden(t))
	require.NoError(t, err)
	view := s.publicState("j")
	require.Equal(t, int64(12), view.Due())
	require.Equal(t, []Run{{Job: "j", Tick: at(t, "2026-05-04T10:15:30Z"), Manual: true, Attempt: 1}}, view.Pending)
	require.Equal(t, ReasonOverlap, s.Gaps[1].Reason)
	require.Equal(t, Failed, view.LastRun.Outcome)
	again, err := s.encode()
	require.NoError(t, err)
	require.Equal(t, string(data), string(again), "nothing is lost")
	require.Empty(t, s.unknown)
}

func TestUnknownFieldsSurviveRewriting(t *testing.T) {
	stored := `{"v":1,"spec":"* * * * *","zone":"UTC","mood":{"by":"me"},"Spec":"not ours","fired":1,"number":1,
		"running":[{"n":1,"id":"x","tick":"2026-05-04T10:15:00Z","attempt":1,"colour":3}],
		"gaps":[{"from":"2026-05-04T09:00:00Z","to":"2026-05-04T09:00:00Z","count":1,"reason":"moon","note":"n"}]}`
	s, err := decodeState([]byte(stored))
	require.NoError(t, err)
	require.Equal(t, "* * * * *", s.Spec)
	s.recordEnd(s.Running[0])
	data, err := s.encode()
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	require.Equal(t, map[string]any{"by": "me"}, m["mood"])
	require.Equal(t, "not ours", m["Spec"])
	require.NotContains(t, m, "running")
	require.EqualValues(t, 3, m["lastRun"].(map[string]any)["colour"])
	require.Equal(t, "n", m["gaps"].([]any)[0].(map[string]any)["note"])
}

func TestUnreadableStateIsRefused(t *testing.T) {
	_, err := decodeState([]byte(`{"v":2,"spec":{"new":"shape"}}`))
	require.ErrorIs(t, err, framework.ErrNewer)
	require.ErrorContains(t, err, "version 2")
	for _, data := range []string{"", "null", "[]", "7", "garbage", "{}", `{"v":0}`, `{"v":-1}`, `{"v":"1"}`,
		`{"v":1.5}`, `{"v":1,"fired":-1}`,
		`{"v":1,"missed":{"x":-1}}`, `{"v":1,"last":"yesterday"}`, `{"v":1,"last":"1899-01-01T00:00:00Z"}`,
		`{"v":1,"gaps":[{"from":"0000-01-01T00:00:00+01:00"}]}`, `{"v":1,"running":{}}`, `{"v":1,"number":-1}`,
		`{"v":1} x`, "\x00\x01"} {
		_, err := decodeState([]byte(data))
		require.ErrorIs(t, err, framework.ErrBadRecord, "%q", data)
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte(`{"v":1,"gaps":[{"x":1}],"running":[{"id":"a","y":null}],"pending":[{}],"z":[1,2]}`))
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

func FuzzDecodeRun(f *testing.F) {
	f.Add([]byte(`{"v":1,"n":3,"tick":"2026-05-04T10:15:00Z","outcome":"failed","x":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRun(data)
		if err != nil {
			return
		}
		once, err := encodeRun(r)
		require.NoError(t, err)
		again, err := decodeRun(once)
		require.NoError(t, err)
		twice, err := encodeRun(again)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func FuzzDecodeMember(f *testing.F) {
	data, err := member{id: "a", labels: map[string]string{"zone": "b"}, keys: []uint32{0, 7, 1<<32 - 1}}.encode()
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"v":1,"jobs":"AAAA"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMember("n", data)
		if err != nil {
			return
		}
		require.True(t, slices.IsSorted(m.keys))
		once, err := m.encode()
		require.NoError(t, err)
		again, err := decodeMember("n", once)
		require.NoError(t, err)
		require.Equal(t, m.keys, again.keys)
		require.Equal(t, m.id, again.id)
	})
}

func FuzzDecodeChanges(f *testing.F) {
	f.Add([]byte(`{"v":1,"changes":[{"n":1,"job":"a"},{"n":2}]}`), int32(0), int32(2))
	f.Fuzz(func(t *testing.T, data []byte, seen, now int32) {
		c, err := decodeChanges(data)
		if err != nil {
			return
		}
		c.changedSince(seen, now)
		once, err := c.withChange("b", now).encode()
		require.NoError(t, err)
		_, err = decodeChanges(once)
		require.NoError(t, err)
	})
}

func TestChangesNameChangedJobsOrAll(t *testing.T) {
	c := changeLog{}
	for i := range int32(40) {
		c = c.withChange(fmt.Sprint("j", i+1), i)
	}
	require.Len(t, c.Latest, maxChanges)
	jobs, all := c.changedSince(38, 40)
	require.Equal(t, []string{"j39", "j40"}, jobs)
	require.False(t, all)
	jobs, all = c.changedSince(40, 40)
	require.Empty(t, jobs)
	require.False(t, all)
	_, all = c.changedSince(7, 40)
	require.True(t, all, "too long ago")
	_, all = c.changedSince(50, 40)
	require.True(t, all, "the node was deleted")
	_, all = c.withChange("", 40).changedSince(40, 41)
	require.True(t, all)
}

func TestErrorTextsAreStoredShortAndValid(t *testing.T) {
	require.Empty(t, errorText(nil))
	require.NotEmpty(t, errorText(errors.New("")))
	long := errorText(errors.New(strings.Repeat("é", 5000) + "\xff"))
	require.LessOrEqual(t, len(long), maxErrorText+3)
	data, err := jobState{LastRun: &storedRun{RunRecord: RunRecord{Error: errorText(errors.New("a\xffb"))}}}.encode()
	require.NoError(t, err)
	require.True(t, json.Valid(data))
}
