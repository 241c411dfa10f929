package barrier

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// golden are the records of release 1: later ones must read them.
var golden = map[string]nodeRecord{
	`{"v":1,"kind":"double barrier","size":8,"in":"in-6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e"}`: {Kind: doubleKind,
		Size: 8, In: "in-6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e"},
	`{"v":1,"kind":"round"}`: {Kind: roundKind},
	`{"v":1,"kind":"round","phase":7,"base":32,"numbers":[24,25,27,31]}`: {Kind: roundKind, Phase: 7, Base: 32,
		Numbers: []int32{24, 25, 27, 31}},
	`{"v":1,"kind":"round","phase":-2147483647,"base":1,"numbers":[-1,0]}`: {Kind: roundKind, Phase: -2147483647,
		Base: 1, Numbers: []int32{-1, 0}},
	`{"v":1,"kind":"latch","size":3}`: {Kind: latchKind, Size: 3},
	`{"v":1,"kind":"gate","owner":"o","host":"h","pid":5,"since":"2026-11-21T00:00:00Z"}`: {
		Kind: gateKind, Owner: recipe.Owner{Identity: "o", Host: "h", PID: 5},
		Since: new(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))},
	`{"v":1,"kind":"member","id":"i","owner":"o"}`: {Kind: memberKind, ID: "i", Owner: recipe.Owner{Identity: "o"}},
}

func TestRecordsAreWrittenAndReadAsBefore(t *testing.T) {
	for text, r := range golden {
		require.Equal(t, text, string(r.encode()))
		got, err := parseRecord("/x", r.Kind, []byte(text))
		require.NoError(t, err)
		require.Empty(t, got.unknown)
		got.unknown = nil
		require.Equal(t, r, got)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	r, err := parseBarrierRecord("/x",
		[]byte(`{"v":1,"kind":"double barrier","size":8,"in":"in-6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e","label":{"a":[1]}}`))
	require.NoError(t, err)
	r.Size = 9
	require.Contains(t, string(r.encode()), `"label":{"a":[1]}`)
}

func TestBadRecordsAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"": errForeign, "x": errForeign, "[]": errForeign, `{"kind":"latch","size":1}`: errForeign,
		`{"v":0,"kind":"latch","size":1}`: errForeign,
		`{"v":1,"kind":"gate","size":1}`:  errForeign, `{"v":2,"kind":"latch","size":1}`: framework.ErrNewer,
		`{"v":1,"kind":"latch"}`:           errForeign,
		`{"v":1,"kind":"latch","size":-1}`: errForeign, `{"v":1,"kind":"latch","size":1e9}`: errForeign,
	} {
		_, err := parseSizedRecord("/x", latchKind, []byte(text), 1000)
		require.ErrorIs(t, err, want, text)
		require.ErrorContains(t, err, "/x")
	}
}

// TestNamesOfDirectories: a record that was written by hand names no other node.
func TestNamesOfDirectories(t *testing.T) {
	require.True(t, isDirectoryName(newDirectoryName()))
	for _, name := range []string{"", "in", "in-", "in-1", "round", "in-../../locks",
		newDirectoryName() + "/m-0000000000", "in-{6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e}",
		"in-6a0d1c9e0c4e4c629d7f3b5a5b1c2d3e"} {
		_, err := parseBarrierRecord("/x", nodeRecord{Kind: doubleKind, Size: 2, In: name}.encode())
		require.ErrorIs(t, err, errForeign, name)
		require.ErrorContains(t, err, "/x")
	}
}

func TestNumbersWrap(t *testing.T) {
	for name, want := range map[string]int32{"m-0000000000": 0, "m-2147483647": 2147483647,
		"m--2147483648": -2147483648, "m--000000001": -1} {
		n, ok := parseMemberNumber("/x/" + name)
		require.True(t, ok, name)
		require.Equal(t, want, n)
		require.Equal(t, "/x/"+name, memberDirectory{in: "/x"}.memberPath(n))
	}
	state := barrierState{base: 2147483647}
	require.True(t, state.admitsNumber(-2147483648, 2))
	require.False(t, state.admitsNumber(-2147483647, 2))
}

func FuzzRecord(f *testing.F) {
	for text := range golden {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{gateKind, doubleKind, roundKind, latchKind} {
			r, err := parseRecord("/x", kind, data)
			if err != nil {
				continue
			}
			again, err := parseRecord("/x", kind, r.encode())
			require.NoError(t, err)
			require.True(t, slices.Equal(r.Numbers, again.Numbers))
			require.True(t, json.Valid(r.encode()))
		}
	})
}

func TestImpossibleNodeNames(t *testing.T) {
	for _, name := range []string{"", "m-", "m-7", "m-00000000000", "m-+000000001", "m-2147483648", "x-0000000001",
		"m-000000000a"} {
		_, ok := parseMemberNumber("/x/" + name)
		require.False(t, ok, name)
	}
}

func FuzzNumber(f *testing.F) {
	f.Add("m-0000000007")
	f.Add("m--2147483648")
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := parseMemberNumber("/x/" + name); ok && !strings.Contains(name, "/") {
			require.Equal(t, "/x/"+name, memberDirectory{in: "/x"}.memberPath(n))
		}
	})
}
