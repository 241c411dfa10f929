package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// held is the journal of a good run with one kill.
func held() *journal {
	j := newJournal(options{job: job{Workers: 2, Items: 10, Effort: time.Second}})
	j.asked = 1
	j.reported.Rounds = 1
	j.reported.Sum = 3*385 + 10
	j.kills = []kill{{"worker-1.1", true}}
	j.terms = []term{{Leader: "worker-1.1", Token: 5}, {Leader: "worker-2.1", Token: 9}}
	for p := range phases {
		j.plans[p], j.results[p] = 10, 10
	}
	return j
}

func TestAGoodRun(t *testing.T) { require.NoError(t, held().verdict()) }

func TestWhatMustNotHappen(t *testing.T) {
	for want, spoil := range map[string]func(*journal){
		"the sum is 1164, but must be 1165":    func(j *journal) { j.reported.Sum-- },
		"0 workers were killed, but 1 had to":  func(j *journal) { j.kills = nil },
		`11 items of "triple" were put`:        func(j *journal) { j.plans[1]++ },
		`11 results of "add one" were stored`:  func(j *journal) { j.results[2]++ },
		"token 5 follows 5: it did not rise":   func(j *journal) { j.terms[1].Token = 5 },
		"token 5 follows 100: it did not rise": func(j *journal) { j.terms[0].Token, j.terms[1].Token = 100, 5 },
	} {
		j := held()
		spoil(j)
		require.ErrorContains(t, j.verdict(), want)
		j.begin(2)
		require.ErrorContains(t, j.verdict(), want)
	}
}

func TestMomentsLeaveTheLastQuarterOut(t *testing.T) {
	for range 100 {
		picked := moments(6, 24)
		require.Len(t, picked, 6)
		require.IsNonDecreasing(t, picked)
		require.GreaterOrEqual(t, picked[0], 1)
		require.LessOrEqual(t, picked[5], 18)
	}
}
