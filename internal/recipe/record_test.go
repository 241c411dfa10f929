package recipe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

type stored struct {
	Name  string    `json:"name"`
	Count int       `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Plain int
}

func TestRecordKeepsUnknownFields(t *testing.T) {
	var r stored
	unknown, err := recipe.Decode(
		[]byte(`{"later":{"b":[1, 2]},"v":2,"name":"n","NAME":"another","Plain":3,"also":null}`), 3, &r)
	require.NoError(t, err)
	require.Equal(t, stored{Name: "n", Plain: 3}, r)
	r.Count = 7
	data, err := unknown.Encode(3, r)
	require.NoError(t, err)
	require.Equal(t, `{"v":3,"name":"n","count":7,"Plain":3,"NAME":"another","also":null,"later":{"b":[1, 2]}}`,
		string(data))
}

func TestObjectWithinARecordKeepsUnknownFields(t *testing.T) {
	var r struct {
		A int `json:"a,omitempty"`
	}
	unknown, err := recipe.DecodeFields([]byte(`{"a":1,"b":2}`), &r)
	require.NoError(t, err)
	r.A = 0
	data, err := unknown.EncodeFields(r)
	require.NoError(t, err)
	require.Equal(t, `{"b":2}`, string(data))
	data, err = recipe.Unknown(nil).EncodeFields(r)
	require.NoError(t, err)
	require.Equal(t, `{}`, string(data))
}

func TestUnreadableRecord(t *testing.T) {
	for text, want := range map[string]error{
		"":     framework.ErrBadRecord,
		"null": framework.ErrBadRecord, "[]": framework.ErrBadRecord, "{}": framework.ErrBadRecord,
		`{"v":0}`:  framework.ErrBadRecord,
		`{"v":-1}`: framework.ErrBadRecord, `{"v":"1"}`: framework.ErrBadRecord, `{"v":1,"name":1}`: framework.ErrBadRecord,
		`{"v":1} `: nil,
		`{"v":2}`:  framework.ErrNewer, `{"v":2,"name":1}`: framework.ErrNewer,
	} {
		var r stored
		_, err := recipe.Decode([]byte(text), 1, &r)
		require.ErrorIs(t, err, want, text)
	}
	var r stored
	_, err := recipe.Decode([]byte(`{"v":2,"name":"n"}`), 1, &r)
	require.EqualError(t, err, "written by a newer release: it has version 2, this release reads versions up to 1")
	require.Equal(t, "n", r.Name)
	_, err = recipe.DecodeFields([]byte("null"), &r)
	require.ErrorIs(t, err, framework.ErrBadRecord)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"v":1,"name":"n","count":1,"since":"2026-11-22T00:00:00Z","x":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, again stored
		unknown, err := recipe.Decode(data, 1, &r)
		if err != nil {
			return
		}
		encoded, err := unknown.Encode(1, r)
		if err != nil {
			return // JSON has no form for this time
		}
		rest, err := recipe.Decode(encoded, 1, &again)
		require.NoError(t, err)
		require.Equal(t, r.Name, again.Name)
		require.Equal(t, r.Count, again.Count)
		require.True(t, r.Since.Equal(again.Since))
		require.Len(t, rest, len(unknown))
	})
}
