package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

// goodRun returns the recorder of a run without a violation.
func goodRun() *recorder {
	return &recorder{
		Log: demo.Log{Out: io.Discard}, fenced: true, timeout: 2 * time.Second, takeover: 3 * time.Second, balance: 115,
		grants: []grant{{"ann", 5}, {"bob", 9}, {"ann", 12}},
		late:   &event{Kind: refused, Reason: "refused: token 5 is older than 9"},
	}
}

func TestVerdictOfGoodRun(t *testing.T) {
	require.NoError(t, goodRun().verdict())
	require.Equal(t, summary{
		Fenced: true, Grants: []grant{{"ann", 5}, {"bob", 9}, {"ann", 12}},
		LateWrite: "refused: token 5 is older than 9",
		Balance:   115, Expected: 115, TakeoverMs: 3000, SessionTimeout: 2000,
	}, goodRun().summary())
}

func TestVerdictNamesEachViolation(t *testing.T) {
	for want, spoil := range map[string]func(*recorder){
		"the late write was not refused": func(s *recorder) { s.late.Kind = written },
		"the late write was":             func(s *recorder) { s.late = nil },
		"the balance is 110, want 115":   func(s *recorder) { s.balance = 110 },
		"token 9 follows 9":              func(s *recorder) { s.grants[0].Token = 9 },
		"token 9 follows 10":             func(s *recorder) { s.grants[0].Token = 10 },
	} {
		s := goodRun()
		spoil(s)
		require.ErrorContains(t, s.verdict(), want)
	}
}
