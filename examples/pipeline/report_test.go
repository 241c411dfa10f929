package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goodRun returns the recorder of a run without a violation. It has one kill.
func goodRun() *recorder {
	j := newRecorder(options{job: job{Workers: 2, Items: 10, Effort: time.Second}})
	j.wantedKills = 1
	j.reported.Rounds = 1
	j.reported.Sum = 3*385 + 10
	j.kills = []kill{{"worker-1.1", true}}
	j.terms = []term{{Leader: "worker-1.1", Token: 5}, {Leader: "worker-2.1", Token: 9}}
	for p := range phases {
		j.plans[p], j.results[p] = 10, 10
	}
	return j
}

func TestVerdictOfGoodRun(t *testing.T) { require.NoError(t, goodRun().verdict()) }

func TestVerdictNamesEachViolation(t *testing.T) {
	for want, spoil := range map[string]func(*recorder){
		"the sum is 1164, but must be 1165":    func(j *recorder) { j.reported.Sum-- },
		"0 workers were killed, but 1 had to":  func(j *recorder) { j.kills = nil },
		`11 items of "triple" were put`:        func(j *recorder) { j.plans[1]++ },
		`11 results of "add one" were stored`:  func(j *recorder) { j.results[2]++ },
		"token 5 follows 5: it did not rise":   func(j *recorder) { j.terms[1].Token = 5 },
		"token 5 follows 100: it did not rise": func(j *recorder) { j.terms[0].Token, j.terms[1].Token = 100, 5 },
	} {
		j := goodRun()
		spoil(j)
		require.ErrorContains(t, j.verdict(), want)
		j.beginRound(2)
		require.ErrorContains(t, j.verdict(), want)
	}
}

func TestNoKillInLastQuarter(t *testing.T) {
	for range 100 {
		picked := drawKills(6, 24)
		require.Len(t, picked, 6)
		require.IsNonDecreasing(t, picked)
		require.GreaterOrEqual(t, picked[0], 1)
		require.LessOrEqual(t, picked[5], 18)
	}
}
