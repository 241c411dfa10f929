package ui

import "github.com/lockstep-go/lockstep/barrier"

type barriersView struct {
	List list[barrier.Report]
}

func buildBarriers(u *UI, q request, s *snapshot) (built, error) {
	rows := listOf(q.query, s.barriers, nil, func(r barrier.Report, wanted string) bool {
		return containsAny(wanted, r.Path, string(r.Kind))
	})
	return built{"Barriers, gates and latches", barriersView{rows}, s.barriers}, nil
}
