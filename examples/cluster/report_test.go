package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/scheduler"
)

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func second(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }

// goodRun returns the recorder of a run without a violation: ten ticks were due, two of them were
// missed.
func goodRun() *recorder {
	j := &recorder{
		terms: []term{{"a", 5}, {"b", 9}}, ticks: map[time.Time]int64{}, takeover: time.Second,
		timeout: 2 * time.Second,
		state: scheduler.State{
			Registered: noon.Add(300 * time.Millisecond), Last: second(10), Fired: 8,
			Missed: map[scheduler.Reason]int64{scheduler.ReasonNoLeader: 2},
		},
	}
	for n := 1; n <= 8; n++ {
		j.ticks[second(n)]++
	}
	return j
}

func TestVerdictOfGoodRun(t *testing.T) {
	require.NoError(t, goodRun().verdict())
	require.Equal(t, summary{
		Due: 10, Fired: 8, Missed: 2, TakeoverMs: 1000, SessionTimeout: 2000, Terms: []term{{"a", 5}, {"b", 9}},
	}, goodRun().summary())
}

func TestVerdictNamesEachViolation(t *testing.T) {
	for want, spoil := range map[string]func(*recorder){
		"fired more than once":      func(j *recorder) { j.ticks[second(8)]++ },
		"token 9 follows 9":         func(j *recorder) { j.terms[0].Token = 9 },
		"token 9 follows 10":        func(j *recorder) { j.terms[0].Token = 10 },
		"10 ticks were due, but 11": func(j *recorder) { j.state.Missed[scheduler.ReasonLate]++ },
		"12 ticks were due, but 10": func(j *recorder) { j.state.Last = second(12) },
		"the members reported 7":    func(j *recorder) { delete(j.ticks, second(3)) },
		"no member took over":       func(j *recorder) { j.takeover = 0 },
	} {
		j := goodRun()
		j.stopping = true
		spoil(j)
		require.ErrorContains(t, j.verdict(), want)
	}
}
