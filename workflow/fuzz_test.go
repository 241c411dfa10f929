package workflow

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// FuzzRecords: anyone may write below a ledger.
func FuzzRecords(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", `{"v":1}`, `{"v":2,"kind":"ledger"}`, `{"v":1,"kind":"ledger","id":"x"}`,
		`{"v":1,"result":null,"token":7,"attempts":1,"ms":5,"by":"x"}`, `{"v":1,"result":{"a":[1]},"token":-1}`,
		`{"v":1,"result":"\u202e"}`, `{"v":2,"failure":{"error":"no","is":["a"]},"token":7,"attempts":1,"ms":5,"by":"x"}`,
		`{"v":2,"failure":{},"result":1}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		known := func(err error) {
			require.True(t, errors.Is(err, framework.ErrBadRecord) ||
				errors.Is(err, framework.ErrNewer) || errors.Is(err, errForeign), "%v", err)
		}
		header, err := parseLedger("/a", data)
		if err != nil {
			known(err)
		} else {
			again, err := encodeRecord(header)
			require.NoError(t, err)
			same, err := parseLedger("/a", again)
			require.NoError(t, err)
			require.Equal(t, header, same)
		}
		step, err := parseStep("/a/step-a", data)
		if err != nil {
			known(err)
			return
		}
		again, err := step.encode()
		require.NoError(t, err)
		same, err := parseStep("/a/step-a", again)
		require.NoError(t, err)
		if step.Failure == nil {
			require.JSONEq(t, string(step.Result), string(same.Result))
		}
		require.Equal(t, step.Failure, same.Failure)
		require.Equal(t, step.Token, same.Token)
	})
}

// TestStoredSteps: a result has the bytes of the first release, which refuses a failure.
func TestStoredSteps(t *testing.T) {
	for stored, r := range map[string]stepRecord{
		`{"v":1,"result":7,"token":3,"attempts":1,"ms":5,"by":"x"}`: {Result: []byte("7"), Token: 3, Attempts: 1,
			Millis: 5, By: "x"},
		`{"v":1,"result":null,"token":3,"attempts":1,"ms":5,"by":"x","turn":2,"claim":1}`: {Result: []byte("null"),
			Token: 3, Attempts: 1, Millis: 5, By: "x", runClaim: runClaim{2, 1}},
		`{"v":2,"failure":{"error":"sold out"},"token":3,"attempts":1,"ms":5,"by":"x"}`: {
			Failure: &stepFailure{Text: "sold out"}, Token: 3, Attempts: 1, Millis: 5, By: "x"},
		`{"v":2,"failure":{"error":"7: sold out","is":["sold out"]},"token":3,"attempts":1,"ms":5,"by":"x"}`: {
			Failure: &stepFailure{Text: "7: sold out", Is: []string{"sold out"}}, Token: 3, Attempts: 1, Millis: 5,
			By: "x"},
	} {
		data, err := r.encode()
		require.NoError(t, err)
		require.Equal(t, stored, string(data))
		again, err := parseStep("/a/step-a", data)
		require.NoError(t, err)
		require.Equal(t, r, again)
		_, err = recipe.Decode(data, 1, &stepRecord{})
		require.Equal(t, r.Failure != nil, errors.Is(err, framework.ErrNewer))
	}
}

// TestStatesAreStoredAsTheyWere: what releases have stored stays readable, whatever State becomes.
func TestStatesAreStoredAsTheyWere(t *testing.T) {
	for text, state := range map[string]State{"active": Active, "waiting": Waiting, "done": Done, "failed": Failed,
		"cancelled": Cancelled} {
		data, err := runRecord{Kind: runKind, UUID: "u", Workflow: "a", State: state, ItemNumber: 1,
			Input: json.RawMessage("1")}.encode()
		require.NoError(t, err)
		require.Equal(t, `{"v":1,"kind":"run","id":"u","workflow":"a","state":"`+text+`","turn":1,"input":1}`, string(data))
		back, err := parseRun("/a", data)
		require.NoError(t, err)
		require.Equal(t, state, back.State)
	}
}

// FuzzRuns: anyone may write below the runs.
func FuzzRuns(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", `{"v":2}`,
		`{"v":1,"kind":"run","id":"x","workflow":"a","state":"waiting","turn":3,` +
			`"input":{"a":1},"waits":[{"signal":"s","until":5}]}`,
		`{"v":1,"kind":"run","id":"x","workflow":"a","state":"done","turn":1,"input":null,"result":1,"new":2}`,
		`{"v":1,"ms":-1}`, `{"v":1,"ms":60000}`, `{"v":1,"data":1}`, `{"v":1,"timedOut":true}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		known := func(err error) {
			require.True(t, err == nil || errors.Is(err, framework.ErrBadRecord) ||
				errors.Is(err, framework.ErrNewer) || errors.Is(err, errForeign), "%v", err)
		}
		_, err := parseTimer("/a", data)
		known(err)
		_, err = parseSignal("/a", data)
		known(err)
		run, err := parseRun("/a", data)
		if known(err); err != nil {
			return
		}
		again, err := run.encode()
		require.NoError(t, err)
		same, err := parseRun("/a", again)
		require.NoError(t, err)
		once, err := same.encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(once))
	})
}
