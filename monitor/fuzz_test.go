package monitor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzRecord: any data of the node is a record that can be written again, or an error.
func FuzzRecord(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", `{"v":1}`, `{"v":2,"root":"/"}`, `{"v":1,"root":"/","findings":null,"more":[1]}`,
		`{"v":1,"root":"/","findings":[{"problem":"orphan","path":"/a","text":"\u202e","id":"5-1","began":"2026-01-01T00:00:00Z","told":true}]}`,
		`{"v":1,"root":"/","findings":[{"problem":"orphan","path":"/a","id":"5-1"},{"problem":"orphan","path":"/a","id":"5-2"}]}`,
		`{"v":1,"root":"/","findings":[{"problem":"x","path":"/a","id":"1","began":"9999-12-31T23:59:59-23:59"}]}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r recordAtVersion
		var err error
		if r.findingsRecord, r.unknown, err = decodeRecord(data); err != nil {
			require.True(t, errors.Is(err, framework.ErrBadRecord) || errors.Is(err, framework.ErrNewer), "%v", err)
			return
		}
		again, err := r.encodeRecord()
		require.NoError(t, err)
		same, unknown, err := decodeRecord(again)
		require.NoError(t, err)
		require.Equal(t, len(r.unknown), len(unknown))
		require.Equal(t, r.Root, same.Root)
		require.Equal(t, len(r.Findings), len(same.Findings))
	})
}

// TestTheRecordIsStoredAsItWas: what releases have stored stays readable, whatever Finding becomes.
func TestTheRecordIsStoredAsItWas(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := recordAtVersion{findingsRecord: findingsRecord{Root: "/app", Findings: []openFinding{
		{Finding{ProblemWaiters, "/a&b", "/a&b/n", at, "5 > 3"}, "1-1", at.Add(time.Second), true, at.Add(time.Minute)},
		{Finding: Finding{Problem: ProblemOrphan, Path: "/c"}, ID: "1-2", Began: at},
	}}}
	data, err := r.encodeRecord()
	require.NoError(t, err)
	require.Equal(t, `{"v":1,"root":"/app","findings":[`+
		`{"problem":"many waiters","path":"/a&b","node":"/a&b/n","since":"2026-01-02T03:04:05Z","text":"5 > 3","id":"1-1",`+
		`"began":"2026-01-02T03:04:06Z","told":true,"ended":"2026-01-02T03:05:05Z"},`+
		`{"problem":"orphan","path":"/c","text":"","id":"1-2","began":"2026-01-02T03:04:05Z"}]}`, string(data))
	back, _, err := decodeRecord(data)
	require.NoError(t, err)
	require.Equal(t, r.findingsRecord, back)
	for _, p := range problems {
		require.Contains(t, problemTexts, p)
	}
}
