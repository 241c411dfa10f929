package scheduler

import "time"

// plan is what is to be done about a job's due ticks: a state to write, and perhaps a tick to run.
type plan struct {
	schedule Schedule
	state    State
	tick     time.Time // to be claimed and run; zero: none
	missed   []Gap
}

// plan decides about the ticks that are due. going: a run of the job goes on somewhere. late: why the ticks
// before the latest were not run when they were due.
func (j *job) plan(st State, now time.Time, going bool, late Reason) plan {
	p := plan{schedule: j.schedule, state: st.clone()}
	if st.Running != nil && !going {
		p.runnerLost()
	}
	d := j.schedule.dueTicks(st.since(), now)
	switch {
	case d.count == 0:
		return p
	case going:
		p.miss(Gap{From: d.first, To: d.latest, Count: d.count, Reason: ReasonOverlap})
	case now.Sub(d.latest) > j.Deadline:
		p.miss(Gap{From: d.first, To: d.latest, Count: d.count, Reason: late})
	default:
		if d.count > 1 {
			before := j.schedule.latest(st.since(), d.latest.Add(-time.Second))
			p.miss(Gap{From: d.first, To: before, Count: d.count - 1, Reason: late})
		}
		p.tick = d.latest
		p.state.Fired++
	}
	p.state.Last, p.state.Held = d.latest, time.Time{}
	return p
}

// idle tells that there is nothing to write.
func (p *plan) idle() bool { return p.tick.IsZero() && len(p.missed) == 0 }

// runnerLost takes a run without a claim or an outcome for missed.
func (p *plan) runnerLost() {
	tick := p.state.Running.Tick
	p.state.Running = nil
	p.state.Fired--
	p.miss(Gap{From: tick, To: tick, Count: 1, Reason: ReasonRunnerLost})
}

// miss records a gap, in one row with the latest if it goes on.
func (p *plan) miss(g Gap) {
	p.missed = append(p.missed, g)
	s := &p.state
	s.Missed[g.Reason] += g.Count
	if n := len(s.Gaps); n > 0 && s.Gaps[n-1].Reason == g.Reason && p.schedule.Next(s.Gaps[n-1].To).Equal(g.From) {
		s.Gaps[n-1].To = g.To
		s.Gaps[n-1].Count += g.Count
		return
	}
	s.Gaps = append(s.Gaps, g)
	if over := len(s.Gaps) - maxGaps; over > 0 {
		s.Gaps = s.Gaps[over:]
	}
}
