package members

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzRecords: any data of a member's node is a member with an ID, and any data of a cordon's node
// keeps the member out of service.
func FuzzRecords(f *testing.F) {
	for _, data := range []string{"", "null", "{}", `{"v":1,"id":"a","load":1}`, `{"v":9,"id":"a"}`,
		`{"v":1,"id":"a","request":"r","drain":true,"answers":{"n":{"state":"drained"}}}`,
		`{"v":2,"id":"a","request":"r","until":7,"answers":{"n":{"state":"cordoned","at":7},"m":null}}`} {
		f.Add("_c_1-member", []byte(data))
		f.Add("_cordon_a%2Fb", []byte(data))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		r := decodeMember(name, data)
		require.True(t, r.ID != "" || name == "")
		c := decodeCordon(name, data, framework.Stat{})
		require.NotEqual(t, Active, c.stateOf([]string{"n"}))
		if c.Drain {
			require.NotEmpty(t, c.request, "answers name it")
		}
		again, err := c.toRecord().encode()
		require.NoError(t, err)
		twice, err := decodeCordon(name, again, framework.Stat{}).toRecord().encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(twice))
	})
}

// TestNamesOfCordonsAreValid: a cordon of any ID has a valid node name, from which the ID can be
// read.
func TestNamesOfCordonsAreValid(t *testing.T) {
	for _, id := range []string{"a", "a/b", ".", "..", "ü\u202e\x01", "_cordon_x", "100%", " "} {
		require.NoError(t, framework.ValidatePath("/g/"+cordonName(id)), "%q", id)
		require.Equal(t, id, decodeCordon(cordonName(id), nil, framework.Stat{}).ID)
	}
}

// TestAnswersAreStoredAsTheyWere: what releases have stored stays readable, whatever Answer
// becomes.
func TestAnswersAreStoredAsTheyWere(t *testing.T) {
	for stored, answer := range map[string]Answer{
		`{"state":"failed","error":"disk"}`: {State: Failed, Error: "disk"},
		`{"state":"cordoned"}`:              {State: Cordoned},
		`{"state":"drained"}`:               {State: Drained},
	} {
		data, err := cordonRecord{ID: "a", Request: "r", Drain: true}.withAnswer("n", answer, []string{"n"})
		require.NoError(t, err)
		require.Equal(t, `{"v":1,"id":"a","request":"r","drain":true,"answers":{"n":`+stored+`}}`, string(data))
		require.Equal(t, map[string]Answer{"n": answer}, decodeRecord(data).decodedAnswers())
	}
}
