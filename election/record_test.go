package election

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// The bytes that each release has written; they are never changed, only added to.
const (
	goldenTerm    = `{"id":"host-1","metadata":{"address":"10.0.0.1:80"},"node":"_c_0-latch-0000000007","number":3,"since":"2026-11-21T10:00:00.5Z","token":4711,"v":1}`
	goldenWaiting = `{"id":"host-2","metadata":{"zone":"b"},"stable_ms":30000,"v":1}`
	goldenMember  = `{"id":"host-3","v":1}`

	// What this release writes.
	writtenTerm    = `{"v":1,"number":3,"token":4711,"node":"_c_0-latch-0000000007","id":"host-1","since":"2026-11-21T10:00:00.5Z","metadata":{"address":"10.0.0.1:80"}}`
	writtenWaiting = `{"v":1,"id":"host-2","metadata":{"zone":"b"},"stable_ms":30000}`
	writtenMember  = `{"v":1,"id":"host-3"}`
)

func TestTheRecordsOfEachReleaseAreRead(t *testing.T) {
	since := time.Date(2026, 11, 21, 10, 0, 0, 5e8, time.UTC)
	for _, stored := range []string{goldenTerm, writtenTerm} {
		term, err := decodeTerm([]byte(stored))
		require.NoError(t, err)
		require.Equal(t, termRecord{Number: 3, Token: 4711, Node: "_c_0-latch-0000000007", ID: "host-1", Since: since,
			Metadata: map[string]string{"address": "10.0.0.1:80"}, unknown: recipe.Unknown{}}, term)
		written, err := term.encode()
		require.NoError(t, err)
		require.Equal(t, writtenTerm, string(written))
	}
	for _, m := range []struct {
		stored []string
		want   waitingRecord
	}{
		{[]string{writtenWaiting, goldenWaiting},
			waitingRecord{ID: "host-2", Metadata: map[string]string{"zone": "b"}, StableMS: 30_000}},
		{[]string{writtenMember, goldenMember}, waitingRecord{ID: "host-3"}},
	} {
		for _, stored := range m.stored {
			got, ours, err := decodeWaiting([]byte(stored))
			require.NoError(t, err)
			require.True(t, ours)
			require.Equal(t, m.want, got)
			written, err := got.encode()
			require.NoError(t, err)
			require.Equal(t, m.stored[0], string(written))
		}
	}
}

// TestATermOfAnyTimeIsFollowedByTheNext: other clients may have written any time.
func TestATermOfAnyTimeIsFollowedByTheNext(t *testing.T) {
	for _, since := range []string{"0000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"} {
		term, err := decodeTerm([]byte(`{"v":1,"number":1,"since":"` + since + `"}`))
		require.NoError(t, err)
		_, err = term.encode()
		require.NoError(t, err)
	}
}

func TestAnIDIsText(t *testing.T) {
	require.NoError(t, checkID("a\uFFFD"))
	require.ErrorContains(t, checkID("a\xff"), `"a\xff" is not UTF-8`)
}

func TestUnknownFieldsSurviveARewriting(t *testing.T) {
	term, err := decodeTerm([]byte(`{"v":1,"number":1,"later":{"a":[1]}}`))
	require.NoError(t, err)
	term.Number = 2
	written, err := term.encode()
	require.NoError(t, err)
	require.Contains(t, string(written), `"later":{"a":[1]}`)
}

func TestRecordsThatCannotBeReadAreRefused(t *testing.T) {
	for data, says := range map[string]string{
		"":                                       "cannot be read",
		"null":                                   "it is null",
		"[]":                                     "cannot be read",
		`{"number":1}`:                           "no version",
		`{"v":"1"}`:                              "its version",
		`{"v":1}`:                                "number is 0",
		`{"v":1,"number":-4}`:                    "number is -4",
		`{"v":1,"number":"x"}`:                   "number",
		`{"v":1,"number":1,"metadata":{"a":1}}`:  "metadata",
		`{"v":1,"number":1,"since":"yesterday"}`: "yesterday",
	} {
		_, err := decodeTerm([]byte(data))
		require.ErrorIs(t, err, framework.ErrBadRecord, data)
		require.ErrorContains(t, err, says)
	}
	_, err := decodeTerm([]byte(`{"v":2,"number":{}}`))
	require.ErrorIs(t, err, framework.ErrNewer)
	require.ErrorContains(t, err, "version 2")
	_, _, err = decodeWaiting([]byte(`{"v":2}`))
	require.ErrorIs(t, err, framework.ErrNewer)
	for _, foreign := range []string{"", "192.0.2.1", "{}", `{"v":0}`} {
		_, ours, err := decodeWaiting([]byte(foreign))
		require.NoError(t, err)
		require.False(t, ours)
	}
}

func TestPrioritiesAreReadFromNames(t *testing.T) {
	require.Equal(t, 7, priorityOf("_c_x-"+waitingName(7)))
	for _, foreign := range []string{"", "-p", "-p-1", "-p1001", "-px", "p5", "_c_x-member"} {
		require.Zero(t, priorityOf(foreign), foreign)
	}
}

func FuzzTermRecord(f *testing.F) {
	f.Add([]byte(goldenTerm))
	f.Add([]byte(`{"v":1,"number":9223372036854775807,"since":"9999-12-31T23:59:59-23:59"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeTerm(data)
		if err != nil {
			return
		}
		if r.Number < 1 {
			t.Fatal(r.Number)
		}
		written, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeTerm(written)
		if err != nil || !again.saysSame(r) {
			t.Fatalf("%s became %s: %v", data, written, err)
		}
	})
}

func FuzzMemberRecord(f *testing.F) {
	f.Add([]byte(goldenMember), "_c_x-p7")
	f.Add([]byte(goldenWaiting), "")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if p := priorityOf(name); p < 0 || p > MaxPriority {
			t.Fatal(p)
		}
		m, ours, err := decodeWaiting(data)
		if err != nil || !ours {
			return
		}
		if m.stableTime() < 0 || m.stableTime() > maxStable {
			t.Fatal(m.stableTime())
		}
		written, err := m.encode()
		if err != nil || !json.Valid(written) {
			t.Fatal(err)
		}
	})
}

func TestTermNumbersDoNotOverflow(t *testing.T) {
	r := termRecord{Number: math.MaxInt64}
	data, err := r.encode()
	require.NoError(t, err)
	_, err = decodeTerm(data)
	require.ErrorIs(t, err, framework.ErrBadRecord)
}
