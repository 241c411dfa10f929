package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// told is the story of a good play.
func told() *story {
	return &story{
		out: io.Discard, fenced: true, timeout: 2 * time.Second, takeover: 3 * time.Second, balance: 115,
		grants: []grant{{"ann", 5}, {"bob", 9}, {"ann", 12}},
		late:   &event{Kind: refused, Reason: "refused: token 5 is older than 9"},
	}
}

func TestAGoodPlay(t *testing.T) {
	require.NoError(t, told().verdict())
	require.Equal(t, summary{
		Fenced: true, Grants: []grant{{"ann", 5}, {"bob", 9}, {"ann", 12}}, LateWrite: "refused: token 5 is older than 9",
		Balance: 115, Expected: 115, TakeoverMs: 3000, SessionTimeout: 2000,
	}, told().summary())
}

func TestWhatMustNotHappen(t *testing.T) {
	for want, spoil := range map[string]func(*story){
		"the late write was not refused": func(s *story) { s.late.Kind = written },
		"the late write was":             func(s *story) { s.late = nil },
		"the balance is 110, want 115":   func(s *story) { s.balance = 110 },
		"token 9 follows 9":              func(s *story) { s.grants[0].Token = 9 },
		"token 9 follows 10":             func(s *story) { s.grants[0].Token = 10 },
	} {
		s := told()
		spoil(s)
		require.ErrorContains(t, s.verdict(), want)
	}
}
