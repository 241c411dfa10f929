package sim

import (
	"slices"
	"time"
)

// shrink makes a plan smaller for as long as it still breaks the same rule: fewer scenes, fewer faults, less
// time. What is left is what somebody has to read.
func shrink(p plan, rule string, breaks func(plan) (result, bool)) result {
	s := &shrinking{rule: rule, breaks: breaks, tries: mostTries}
	s.best, _ = breaks(p)
	s.cutShort()
	s.drop(func(p *plan) int { return len(p.scenes) }, func(p *plan, from, to int) { p.scenes = slices.Delete(slices.Clone(p.scenes), from, to) })
	s.drop(func(p *plan) int { return len(p.faults) }, func(p *plan, from, to int) { p.faults = slices.Delete(slices.Clone(p.faults), from, to) })
	s.cutShort()
	return s.best
}

// mostTries bounds how often a plan is run to make it smaller.
const mostTries = 200

type shrinking struct {
	rule   string
	breaks func(plan) (result, bool)
	tries  int
	best   result
}

// try runs a smaller plan and keeps it if it still fails.
func (s *shrinking) try(p plan) bool {
	if s.tries == 0 {
		return false
	}
	s.tries--
	r, broken := s.breaks(p)
	if broken {
		s.best = r
	}
	return broken
}

// cutShort ends the program soon after the rule was broken.
func (s *shrinking) cutShort() {
	for _, v := range s.best.violations {
		if p := s.best.plan; v.rule == s.rule && v.at+time.Second < p.length {
			p.length = v.at + time.Second
			p.faults = slices.Clone(p.faults)
			p.faults = slices.DeleteFunc(p.faults, func(f fault) bool { return f.at > p.length })
			s.try(p)
			return
		}
	}
}

// drop leaves parts of a list out, large ones first.
func (s *shrinking) drop(size func(*plan) int, without func(p *plan, from, to int)) {
	for step := size(&s.best.plan); step > 0; step /= 2 {
		for from := 0; from < size(&s.best.plan); {
			p := s.best.plan
			without(&p, from, min(from+step, size(&p)))
			if !s.try(p) {
				from += step
			}
		}
	}
}
