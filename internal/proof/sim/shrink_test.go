package sim

import (
	"slices"
	"time"
)

// shrink reduces a plan while it still breaks the same rule: fewer workloads, fewer faults, less
// time.
func shrink(p plan, rule string, breaks func(plan) (result, bool)) result {
	s := &shrinker{rule: rule, run: breaks, tries: maxTries}
	s.best, _ = breaks(p)
	s.shortenProgram()
	s.dropParts(func(p *plan) int { return len(p.workloads) },
		func(p *plan, from, to int) { p.workloads = slices.Delete(slices.Clone(p.workloads), from, to) })
	s.dropParts(func(p *plan) int { return len(p.faults) },
		func(p *plan, from, to int) { p.faults = slices.Delete(slices.Clone(p.faults), from, to) })
	s.shortenProgram()
	return s.best
}

// maxTries bounds how often a plan is run to reduce it.
const maxTries = 200

type shrinker struct {
	rule  string
	run   func(plan) (result, bool)
	tries int
	best  result
}

// try runs a smaller plan and keeps it if it still fails.
func (s *shrinker) try(p plan) bool {
	if s.tries == 0 {
		return false
	}
	s.tries--
	r, broken := s.run(p)
	if broken {
		s.best = r
	}
	return broken
}

// shortenProgram ends the program soon after the violation.
func (s *shrinker) shortenProgram() {
	for _, v := range s.best.violations {
		if p := s.best.plan; v.rule == s.rule && v.at+time.Second < p.duration {
			p.duration = v.at + time.Second
			p.faults = slices.Clone(p.faults)
			p.faults = slices.DeleteFunc(p.faults, func(f fault) bool { return f.at > p.duration })
			s.try(p)
			return
		}
	}
}

// dropParts removes parts of a list, large ones first.
func (s *shrinker) dropParts(size func(*plan) int, without func(p *plan, from, to int)) {
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
